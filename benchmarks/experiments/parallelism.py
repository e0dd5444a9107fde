"""The same stream with one thread and with as many as the machine has cores."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result

TITLE = "Parallelism: HyperCube cells inside one view"
WORKLOADS = ("three_hop", "four_hop_project", "star")


def run(context: Context) -> Result:
    cores = os.cpu_count() or 1
    counts = [threads for threads in (1, 2, 4, 8, 16, 32) if threads <= cores]
    rows: list[dict[str, Any]] = []
    for workload in WORKLOADS:
        stream = context.data.fifo(workload)
        for threads in counts:
            outcome = context.run("crown", workload, stream, batch=20_000, threads=threads)
            rows.append(row_of(outcome, f"crown, {workload}", workload, parameter=threads))
        for engine in (peer for peer in context.peers if peer in ("dbsp", "differential")):
            for threads in counts:
                outcome = context.run(engine, workload, stream, batch=20_000, threads=threads)
                rows.append(row_of(outcome, f"{engine}, {workload}", workload, parameter=threads))
    compare([{**row, "parameter": None} for row in rows])
    return Result("parallelism", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", x="threads", y="updates per second", log_x=False)
