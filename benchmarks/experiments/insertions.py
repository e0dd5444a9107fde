"""Insertions only, which is all that Spark's own stream-stream join takes."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.bars import draw
from benchmarks.store import Result

TITLE = "Insertions only: 3-Hop on the first edges of the graph"
WORKLOAD = "three_hop"
MOST = 80_000


def run(request: Request) -> Result:
    stream = request.data.insertions(WORKLOAD, MOST)
    rows: list[dict[str, Any]] = []
    for engine in ("crown", "pairwise", "duckdb", *request.peers):
        checked = judge.agreement(request, engine, engine, WORKLOAD, stream) if engine in judge.BLIND else None
        rows.append(row_of(request.run(engine, WORKLOAD, stream), engine, WORKLOAD, answer=checked))
    compare(rows)
    return Result("insertions", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", y="insertions per second")
