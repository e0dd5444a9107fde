"""Cost of one update as the data grows ten-fold: it should not grow with it.

The window grows with the data. What each update changes in the result may grow too, so it is shown beside the cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiments import Request, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result

TITLE = "Scale: cost of one update as data and window grow ten-fold"
COLUMNS = {"microseconds": "µs per update", "result_rows": "result rows per update"}
FACTORS = (0.1, 0.2, 0.5, 1.0)
WORKLOADS = ("star", "snb_q4", "snb_q1")


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in request.workloads or WORKLOADS:
        for factor in FACTORS:
            # Generated data only: a part of a real graph is another graph, not a smaller one.
            data = replace(request.data, scale=request.data.scale * factor, graph=None, social=None)
            outcome = replace(request, data=data).run("crown", workload, data.fifo(workload), batch=1000)
            row = row_of(outcome, f"crown, {workload}", workload, parameter=data.scale)
            if outcome.seconds and outcome.updates:
                changed = (outcome.inserted or 0) + (outcome.deleted or 0)
                row |= {
                    "microseconds": outcome.seconds / outcome.updates * 1e6,
                    "result_rows": changed / outcome.updates,
                }
            rows.append(row)
    compare(rows)
    return Result("scale", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="microseconds", x="scale (1: 500K edges)", y="microseconds per update", log_y=False)
