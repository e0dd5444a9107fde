"""Insertions only, which is all that Spark's own stream-stream join takes."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, compare, judge, row_of
from benchmarks.experiments.bars import draw
from benchmarks.store import Result

TITLE = "Insertions only: 3-Hop on the first edges of the graph"
WORKLOAD = "three_hop"
MOST = 80_000


def run(context: Context) -> Result:
    stream = context.data.insertions(WORKLOAD, MOST)
    rows: list[dict[str, Any]] = []
    for engine in ("crown", "pairwise", "duckdb", *context.peers):
        checked = judge.agreement(context, engine, engine, WORKLOAD, stream) if engine in judge.BLIND else None
        rows.append(row_of(context.run(engine, WORKLOAD, stream), engine, WORKLOAD, answer=checked))
    compare(rows)
    return Result("insertions", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", y="insertions per second")
