"""Latency of one update with its delta, from Python: its distribution, and its course over the stream."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, row_of
from benchmarks.store import Result

TITLE = "Latency: one row in, its delta out, through the Python interface"
WORKLOADS = ("three_hop", "four_hop_project", "star")
QUANTILES = ("p50", "p90", "p99", "max")
COLUMNS = {f"{name}_us": f"{name}, µs" for name in QUANTILES} | {"rows_per_update": "delta rows per update"}


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in context.workloads or WORKLOADS:
        outcome = context.run("crown_latency", workload, context.data.fifo(workload))
        found = outcome.details.get("quantiles", {})
        shown = {f"{name}_us": 1e6 * found[name] for name in QUANTILES if name in found}
        rows.append(row_of(outcome, "crown", workload, **outcome.details, **shown))
    return Result("latency", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    for row in result.rows:
        if "median_over_time" not in row:
            continue
        places = range(1, len(row["median_over_time"]) + 1)
        median = [1e6 * seconds for seconds in row["median_over_time"]]
        (line,) = axes.plot(places, median, marker=".", label=f"{row['workload']}, median")
        highest = [1e6 * seconds for seconds in row["p99_over_time"]]
        axes.plot(places, highest, linestyle=":", color=line.get_color(), label=f"{row['workload']}, 99%")
    axes.set_xlabel("twentieths of the stretch measured")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("microseconds")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.legend(fontsize=8, ncols=3)
