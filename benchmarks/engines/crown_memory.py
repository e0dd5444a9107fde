"""Crown's view: bytes of state along the stream, against the live rows."""

from __future__ import annotations

import time

import numpy as np

import crown
from benchmarks.engines.crown import view_of
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete

POINTS = 40


def run(job: Job) -> Outcome:
    stream = Stream.load(job.folder)
    view = view_of(job)
    live = 0
    points = []
    seconds = 0.0
    for done, changes in stream.batches(max(1, len(stream) // POINTS)):
        started = time.perf_counter()
        for _ in view.apply(changes, stream=True):
            pass
        seconds += time.perf_counter() - started
        live += sum(int(np.where(is_delete(table), -1, 1).sum()) for table in changes.values())
        points.append({"updates": done, "live_rows": live, "bytes": view.stats()["bytes"]})
    return Outcome(seconds=seconds, updates=len(stream), version=crown.__version__, details={"points": points})
