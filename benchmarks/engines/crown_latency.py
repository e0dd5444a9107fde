"""Crown's view, one update at a time from Python: how long until its delta is there."""

from __future__ import annotations

import time

import crown
from benchmarks.engines.crown import view_of
from benchmarks.engines.crown_pulled import answer_checksum
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete


def run(job: Job) -> Outcome:
    """The last `options={"singles": n}` updates before the mark are timed one by one."""
    stream = Stream.load(job.folder)
    view = view_of(job)
    (table,), (name,) = stream.tables, stream.names
    warm = max(0, stream.mark - job.options["singles"])
    view.apply(stream.between(0, warm))
    rows = list(zip(*(table[column].to_pylist()[warm : stream.mark] for column in ("src", "dst")), strict=True))
    deletes = is_delete(table)[warm : stream.mark]
    laps = []
    produced = 0
    for row, delete in zip(rows, deletes, strict=True):
        before = time.perf_counter()
        delta = view.delete(name, [row]) if delete else view.insert(name, [row])
        laps.append(time.perf_counter() - before)
        produced += delta.num_rows
    details = {"laps": laps, "rows_per_update": produced / len(rows)}
    return Outcome(
        seconds=sum(laps),
        updates=len(rows),
        checksum=answer_checksum(view, view.to_arrow(multiplicity=True)),
        version=crown.__version__,
        details=details,
    )
