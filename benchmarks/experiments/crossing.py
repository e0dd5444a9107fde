"""Recomputing against maintaining: how many updates must lie between two refreshes before DuckDB is cheaper?"""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result

TITLE = "The crossing: cost of one refresh, by the number of updates since the last one"
INTERVALS = (1, 10, 100, 1_000, 10_000, 50_000, 200_000)
WORKLOAD = "three_hop"


def run(context: Context) -> Result:
    stream = context.data.fifo(WORKLOAD)
    rows: list[dict[str, Any]] = []
    for interval in INTERVALS:
        for engine in ("crown", "duckdb"):
            outcome = context.run(engine, WORKLOAD, stream, batch=interval)
            per_update = outcome.seconds / outcome.updates if outcome.seconds and outcome.updates else None
            refresh = per_update and per_update * interval
            rows.append(row_of(outcome, engine, WORKLOAD, parameter=interval, seconds_per_refresh=refresh))
    compare(rows)
    return Result(
        "crossing", context.command, context.data.describe(), context.limits, rows, {"crossing": crossing(rows)}
    )


def crossing(rows: list[dict[str, Any]]) -> float:
    """The largest interval measured at which maintaining is still the cheaper one."""
    cost = {(row["engine"], row["parameter"]): row["seconds_per_refresh"] for row in rows}
    won = [
        i
        for i in INTERVALS
        if cost.get(("crown", i)) and cost.get(("duckdb", i)) and cost["crown", i] < cost["duckdb", i]
    ]
    return float(max(won, default=0))


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="seconds_per_refresh", x="updates between refreshes", y="seconds per refresh")
