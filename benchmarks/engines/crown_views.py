"""Crown's `Database` with many views.

With `options={"apart": True}` as many separate `View`s, with `{"joins": True}` each join is a view of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import crown
from benchmarks.checksum import checksum
from benchmarks.engines.crown import signed_weights
from benchmarks.job import Job, Outcome, note_progress
from benchmarks.many_views import SCHEMA, SHAPES, SHAPES_OVER_JOINS, joins, queries
from benchmarks.stream import Stream

CONTROL = ("_change_type", "_multiplicity")


def run(job: Job) -> Outcome:
    sqls = queries(job.options["views"], SHAPES_OVER_JOINS if job.options.get("joins") else SHAPES)
    stream = Stream.load(job.folder)
    totals = Outcome(version=crown.__version__, seconds=0.0, inserted=0, deleted=0)
    apply, state_bytes = (_apart if job.options.get("apart") else _together)(sqls, job.threads)
    # What pyarrow imports when it is first used (pandas, if it is installed) is not the engine's
    # memory.
    sample = pa.table({"x": [1], "_change_type": ["insert"]})
    _checksum(0, sample, signed_weights(sample))
    before = _resident()
    mark_sum = done = 0
    for done, changes, _ in job.batches(stream):
        started = time.perf_counter()
        deltas = list(apply(changes))
        totals.add_time(time.perf_counter() - started)
        totals.updates += sum(len(table) for _, table in changes)
        # Counting and hashing is the judge's work, not the engine's.
        for number, delta in enumerate(deltas):
            weights = signed_weights(delta)
            totals.add_delta(weights)
            if done <= stream.mark:
                mark_sum = (mark_sum + _checksum(number, delta, weights)) % 2**64
        del deltas
        if done == stream.mark:
            totals.details = {"growth_bytes": max(0, _resident() - before), "state_bytes": state_bytes()}
        note_progress(totals)
        if totals.late(job.seconds) and done < len(stream):
            totals.status = f"not done in {job.seconds:.0f} s"
            break
    totals.checksum = mark_sum if done >= stream.mark else None
    return totals


def _together(sqls: list[str], threads: int) -> tuple[Callable[[Any], Iterator[pa.Table]], Callable[[], int]]:
    named = {**joins(sqls), **{f"v{number}": sql for number, sql in enumerate(sqls)}}
    views = "".join(f";CREATE MATERIALIZED VIEW {name} AS {sql}" for name, sql in named.items())
    database = crown.Database(SCHEMA.rstrip().rstrip(";") + views, threads=threads)

    def apply(changes: Any) -> Iterator[pa.Table]:
        deltas = database.apply(changes)
        return (deltas[f"v{number}"] for number in range(len(sqls)))

    return apply, lambda: database.stats()["bytes"]


def _apart(sqls: list[str], threads: int) -> tuple[Callable[[Any], Iterator[pa.Table]], Callable[[], int]]:
    views = [crown.View(sql, SCHEMA, threads=threads) for sql in sqls]

    def apply(changes: Any) -> Iterator[pa.Table]:
        return (view.apply(changes) for view in views)

    return apply, lambda: sum(view.stats()["bytes"] for view in views)


def _checksum(number: int, delta: pa.Table, weights: np.ndarray) -> int:
    """Return the checksum of rows that begin with the number of their view."""
    columns = [delta[name] for name in delta.column_names if name not in CONTROL]
    return checksum([pa.chunked_array([pa.repeat(number, delta.num_rows)]), *columns], weights)


def _resident() -> int:
    """Return the resident memory of this process, in bytes; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
