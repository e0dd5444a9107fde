"""Crown's view, one update at a time from Python: how long until its delta is there."""

from __future__ import annotations

import time

import numpy as np

import crown
from benchmarks.engines.crown import view_of
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete

SAMPLES = 20_000
WINDOWS = 20  # the stretch measured is shown as this many points over time


def run(job: Job) -> Outcome:
    stream = Stream.load(job.folder)
    view = view_of(job)
    table = stream.tables[0]
    name = stream.names[0]
    warm = max(0, stream.mark - SAMPLES)
    view.apply(stream.between(0, warm))
    rows = list(zip(*(table[column].to_pylist()[warm : stream.mark] for column in ("src", "dst")), strict=True))
    deletes = is_delete(table)[warm : stream.mark]
    taken = np.empty(len(rows))
    produced = np.empty(len(rows), dtype=np.int64)
    started = time.perf_counter()
    for position, (row, delete) in enumerate(zip(rows, deletes, strict=True)):
        before = time.perf_counter()
        delta = view.delete(name, [row]) if delete else view.insert(name, [row])
        taken[position] = time.perf_counter() - before
        produced[position] = delta.num_rows
    seconds = time.perf_counter() - started
    quantiles = {f"p{q}": float(np.quantile(taken, q / 100)) for q in (50, 90, 99)} | {"max": float(taken.max())}
    parts = np.array_split(taken, WINDOWS)
    details = {
        "quantiles": quantiles,
        "median_over_time": [float(np.median(part)) for part in parts],
        "p99_over_time": [float(np.quantile(part, 0.99)) for part in parts],
        "rows_per_update": float(produced.mean()),
    }
    return Outcome(seconds=seconds, updates=len(rows), version=crown.__version__, details=details)
