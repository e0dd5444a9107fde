"""Latency of one update with its delta, from Python: its distribution, and its course over the stream."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, row_of
from benchmarks.store import Result

TITLE = "Latency: one row in, its delta out, through the Python interface"
WORKLOADS = ("three_hop", "four_hop_project", "star")


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in WORKLOADS:
        outcome = context.run("crown_latency", workload, context.data.fifo(workload))
        rows.append(row_of(outcome, "crown", workload, **outcome.details))
    return Result("latency", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    for row in result.rows:
        if "median_over_time" in row:
            axes.plot([1e6 * seconds for seconds in row["median_over_time"]], marker=".", label=row["workload"])
    axes.set_xlabel("twentieths of the stretch measured")
    axes.set_ylabel("median microseconds")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
