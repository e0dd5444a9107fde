"""Latency of one update with its delta: its distribution, and its course over the stream.

The window is full when the measuring begins. Crown's time is that of a call from Python, the Rust peers' that of a
step of their program, DuckDB's that of the change and the query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.runtime import REWRITTEN
from benchmarks.store import Result
from benchmarks.stream import Stream, head

TITLE = "Latency: one row in, its delta out"
WORKLOADS = ("three_hop", "four_hop_project", "star")
PEERS = ("differential", "dbsp")
SINGLES = 20_000  # updates measured, one by one
STRETCHES = 20  # the course over time is shown by this many points
QUANTILES = ("p50", "p90", "p99", "max")
COLUMNS = {f"{name}_us": f"{name}, µs" for name in QUANTILES} | {"rows_per_update": "delta rows per update"}


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    for workload in request.workloads or WORKLOADS:
        whole = Stream.load(folder := request.data.fifo(workload))
        window = len(whole) - whole.mark  # as many rows leave at the end as the window holds
        singles = min(SINGLES, whole.mark - window)
        part = head(folder, window + singles)
        own = _row(request, "crown", "crown_latency", workload, part, options={"singles": singles})
        rows.append(own)
        rivals = [_peer(request, peer, workload, part, singles) for peer in request.asked(PEERS)]
        samples = {"start": window, "places": 1, "repeat": singles}
        rivals.append(_row(request, "duckdb", "duckdb", workload, part, batch=1, options={"samples": samples}))
        for row in rivals:
            rows.append(row)
            if "p50_us" in row and "p50_us" in own:
                ratios[f"{workload}: {row['engine']}, p50"] = row["p50_us"] / own["p50_us"]
    compare(rows)
    return Result("latency", request.command, request.data.describe(), request.limits, rows, ratios)


def _peer(request: Request, peer: str, workload: str, stream: Path, singles: int) -> dict[str, Any]:
    """With the query rewritten by hand where its user would: as it is, some would not fill the window in time."""
    if peer in REWRITTEN.get(workload, ()):
        options = {"singles": singles, "variant": "_rewritten"}
        return _row(request, f"{peer}, rewritten by hand", peer, workload, stream, options=options)
    return _row(request, peer, peer, workload, stream, options={"singles": singles})


def _row(request: Request, name: str, engine: str, workload: str, stream: Path, **options: Any) -> dict[str, Any]:
    outcome = request.run(engine, workload, stream, label=name, **options)
    answer = judge.answer(request, outcome, name, engine, workload, stream, **options)
    laps = np.array(outcome.details.pop("laps", []))
    if not len(laps):
        return row_of(outcome, name, workload, answer=answer)
    # Filling the window is not in it.
    outcome.seconds, outcome.updates = float(laps.sum()), len(laps)
    quantiles = np.quantile(laps, (0.5, 0.9, 0.99, 1.0)) * 1e6
    stretches = np.array_split(laps, min(STRETCHES, len(laps)))
    return row_of(
        outcome,
        name,
        workload,
        answer=answer,
        **{f"{quantile}_us": float(value) for quantile, value in zip(QUANTILES, quantiles, strict=True)},
        rows_per_update=outcome.details.get("rows_per_update"),
        median_over_time=[float(np.median(stretch)) for stretch in stretches],
        p99_over_time=[float(np.quantile(stretch, 0.99)) for stretch in stretches],
    )


def chart(result: Result, axes: Any) -> None:
    """The first query; the table has the others."""
    first = result.rows[0]["workload"]
    for row in result.rows:
        if row["workload"] != first or "median_over_time" not in row:
            continue
        places = np.arange(1, len(row["median_over_time"]) + 1) * row["updates"] / len(row["median_over_time"])
        median = [1e6 * seconds for seconds in row["median_over_time"]]
        (line,) = axes.plot(places, median, marker=".", label=f"{row['engine']}, median")
        highest = [1e6 * seconds for seconds in row["p99_over_time"]]
        axes.plot(places, highest, linestyle=":", color=line.get_color(), label=f"{row['engine']}, 99%")
    axes.set_xlabel(f"updates since the window is full ({first})")
    axes.set_ylabel("microseconds")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.legend(fontsize=8, ncols=2)
