"""Crown's view without delta maintenance: the full result is pulled every tenth of the stream."""

from __future__ import annotations

import time

import crown
from benchmarks.engines.crown import view_of
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream

PULLS = 10


def run(job: Job) -> Outcome:
    view = view_of(job, deltas=False)
    stream = Stream.load(job.folder)
    rows = 0
    pulling = 0.0
    started = time.perf_counter()
    for _, changes in stream.batches(max(1, len(stream) // PULLS)):
        view.apply(changes)
        before = time.perf_counter()
        rows += view.to_arrow(multiplicity=True).num_rows
        pulling += time.perf_counter() - before
    seconds = time.perf_counter() - started
    details = {"pull_seconds": pulling, "rows_pulled": rows}
    return Outcome(seconds=seconds, updates=len(stream), version=crown.__version__, details=details)
