"""Cost of one update as the data grows ten-fold: it should not grow with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result

TITLE = "Scale: cost of one update as the data grows (star and SNB Q4; result size per update grows little)"
FACTORS = (0.1, 0.3, 1.0)
WORKLOADS = ("star", "snb_q4")


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    for factor in FACTORS:
        data = replace(context.data, scale=context.data.scale * factor, graph=None, social=None)
        for workload in WORKLOADS:
            outcome = context.run("crown", workload, data.fifo(workload), batch=1000)
            cost = outcome.seconds / outcome.updates * 1e6 if outcome.seconds and outcome.updates else None
            rows.append(row_of(outcome, f"crown, {workload}", workload, parameter=factor, microseconds=cost))
    compare(rows)
    return Result("scale", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="microseconds", x="scale factor", y="microseconds per update")
