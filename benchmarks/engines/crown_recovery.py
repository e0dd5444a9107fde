"""Crown's view: saved at the stream's mark and loaded again, a few times."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import crown
from benchmarks.engines.crown import view_of
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream

LOADS = 5


def run(job: Job) -> Outcome:
    stream = Stream.load(job.folder)
    view = view_of(job)
    for _ in view.apply(stream.between(0, stream.mark), stream=True):
        pass
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "view.crown"
        started = time.perf_counter()
        view.save(path)
        save_seconds = time.perf_counter() - started
        times = []
        for _ in range(LOADS):
            started = time.perf_counter()
            loaded = crown.View.load(path)
            times.append(time.perf_counter() - started)
        size = path.stat().st_size
    before, after = view.stats(), loaded.stats()
    rows = sum(node["rows"] for stage in after["stages"] for node in stage.get("nodes", []))
    details = {
        "save_seconds": save_seconds,
        "load_seconds": statistics.median(times),
        "state_rows": rows,
        "file_bytes": size,
        "bytes_before": before["bytes"],
        "bytes_after": after["bytes"],
    }
    seconds = save_seconds + statistics.median(times)
    return Outcome(seconds=seconds, updates=stream.mark, version=crown.__version__, details=details)
