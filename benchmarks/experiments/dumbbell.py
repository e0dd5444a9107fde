"""Dumbbell: Crown's bags and tree against the old plan, a chain of pairwise change-propagating joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.store import Result

TITLE = "Dumbbell, full and project, against a chain of pairwise joins on the same kernel tables"


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    data = context.data if context.data.graph else replace(context.data, scale=context.data.scale * 0.2)
    for workload in ("dumbbell", "dumbbell_project"):
        stream = data.fifo(workload)
        for engine in ("crown", "pairwise", *(peer for peer in context.peers if peer in ("dbsp", "differential"))):
            if workload == "dumbbell_project" and engine not in ("crown", "pairwise"):
                continue
            outcome = context.run(engine, workload, stream, batch=100)
            state = outcome.details.get("state", {})
            rows.append(row_of(outcome, engine, workload, state_bytes=state.get("bytes")))
    compare(rows)
    return Result("dumbbell", context.command, data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    rows = [row for row in result.rows if row["updates_per_second"]]
    axes.bar([f"{row['workload']}\n{row['engine']}" for row in rows], [row["updates_per_second"] for row in rows])
    axes.set_yscale("log")
    axes.set_ylabel("updates per second")
