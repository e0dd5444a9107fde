"""Recomputing against maintaining: how many updates must lie between two refreshes before DuckDB is cheaper?

Each engine starts with a full window. Then come batches of the size in question, and after each the user has the
answer: Crown gives the delta, or (linked deltas off) the whole result; DuckDB applies the changes to its table and
recomputes. The engines take turns, and of each the fastest of `ROUNDS` runs counts: where the lines run side by side,
what else the machine does would decide.
"""

from __future__ import annotations

import math
import os
from typing import Any

from benchmarks.experiments import Request, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.job import Outcome
from benchmarks.store import Result
from benchmarks.stream import Stream

TITLE = "The crossing: cost of one refresh, by the number of updates since the last one"
COLUMNS = {"milliseconds": "ms per refresh"}
INTERVALS = (1, 100, 1_000, 10_000, 50_000, 100_000, 200_000)
ROUNDS = 3
PLACES = 8  # along the stream, since neither engine's cost is the same everywhere
WORKLOAD = "three_hop"


def run(request: Request) -> Result:
    folder = request.data.fifo(WORKLOAD)
    stream = Stream.load(folder)
    window = len(stream) - stream.mark  # as many rows leave at the end as the window holds
    rows: list[dict[str, Any]] = []
    engines = [("crown", "crown", 1), ("crown, linked deltas off", "crown_pulled", 1), ("duckdb", "duckdb", 1)]
    if (cores := os.cpu_count() or 1) > 1:
        engines.append((f"duckdb, {cores} threads", "duckdb", cores))
    for interval in INTERVALS:
        repeat = 3 if interval <= 1_000 else 1
        places = min(PLACES, (stream.mark - window) // (interval * repeat))
        if places == 0:
            continue
        samples = {"start": window, "places": places, "repeat": repeat}
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(ROUNDS):
            for name, engine, threads in engines:
                outcome = request.run(
                    engine, WORKLOAD, folder, batch=interval, threads=threads, options={"samples": samples}
                )
                found.setdefault(name, []).append(_row(outcome, name, interval))
        rows += [min(same, key=lambda row: row["seconds_per_refresh"] or math.inf) for same in found.values()]
    compare(rows)
    ratios = {f"updates at the crossing with {rival}": crossing(rows, rival) for rival, _, _ in engines[2:]}
    facts = request.data.describe() | {"window": window}
    return Result("crossing", request.command, facts, request.limits, rows, ratios)


def _row(outcome: Outcome, name: str, interval: int) -> dict[str, Any]:
    per_refresh = outcome.seconds / outcome.updates * interval if outcome.seconds and outcome.updates else None
    cost = {"seconds_per_refresh": per_refresh, "milliseconds": per_refresh and 1000 * per_refresh}
    return row_of(outcome, name, WORKLOAD, parameter=interval, **cost)


def crossing(rows: list[dict[str, Any]], rival: str) -> float:
    """Updates between refreshes above which the rival is cheaper than Crown's deltas.

    Between two measured intervals both costs are taken as straight lines in logarithms. When the rival is cheaper
    nowhere the largest interval measured is a lower bound, and is given; when everywhere, the smallest.
    """
    cost = {(row["engine"], row["parameter"]): row["seconds_per_refresh"] for row in rows}
    measured = [i for i in INTERVALS if cost.get(("crown", i)) and cost.get((rival, i))]
    # How much dearer the rival is, as a logarithm: it falls through 0 at the crossing.
    lead = {i: math.log(cost[rival, i] / cost["crown", i]) for i in measured}
    for below, above in zip(measured[-2::-1], measured[:0:-1], strict=True):
        if lead[above] > 0:
            return float(above)
        if lead[below] > 0:
            share = lead[below] / (lead[below] - lead[above])
            return float(below * (above / below) ** share)
    return float(measured[0]) if measured else 0.0


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="milliseconds", x="updates between refreshes", y="milliseconds per refresh")
    for (text, place), style in zip(result.ratios.items(), (":", "--"), strict=False):
        rival = text.removeprefix("updates at the crossing with ")
        axes.axvline(place, color="grey", linestyle=style, linewidth=1, label=f"crossing with {rival}: {place:,.0f}")
    axes.legend(fontsize=8, loc="lower right")
