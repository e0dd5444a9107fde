"""The same stream with one thread, or cell, and with as many as the machine has cores."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.bars import draw
from benchmarks.store import Result

TITLE = "Parallelism: threads in one view, cells on Spark"
WORKLOADS = ("three_hop", "four_hop_project", "star")
PEERS = ("differential", "dbsp")
BATCH = 20_000


def run(request: Request) -> Result:
    cores = os.cpu_count() or 1
    counts = [threads for threads in (1, 2, 4, 8, 16, 32) if threads <= cores]
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    for workload in request.workloads or WORKLOADS:
        stream = request.data.fifo(workload)
        rates: dict[tuple[str, int], float] = {}
        answer = judge.agreement(request, "crown on Spark", "crown_spark", workload, stream, threads=counts[-1])
        for engine, name, unit in (
            ("crown", "crown", "threads"),
            ("crown_spark", "crown on Spark", "cells"),
            *((peer, peer, "threads") for peer in request.asked(PEERS)),
        ):
            for count in counts:
                label = f"{name}, {count} {unit if count > 1 else unit[:-1]}"
                outcome = request.run(engine, workload, stream, batch=BATCH, threads=count, label=label)
                row = row_of(outcome, label, workload, answer=answer if engine == "crown_spark" else None)
                rates[name, count] = row["updates_per_second"]
                rows.append(row)
        for name in ("crown", "crown on Spark"):
            if rates[name, 1] and rates[name, counts[-1]]:
                ratios[f"{workload}: {name}, {counts[-1]} to 1"] = rates[name, counts[-1]] / rates[name, 1]
    compare(rows)
    return Result("parallelism", request.command, request.data.describe(), request.limits, rows, ratios)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", y="updates per second")
