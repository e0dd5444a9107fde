"""Crown's embedded view with deltas: net for each batch, or one delta for each update when the batch is 0."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import crown
from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome, note_progress
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS

STATE_EVERY = 20  # batches between two looks at the size of the state
HELD_ROWS = 4_000_000  # of a delta that are taken before they are judged


def view_of(job: Job, **options: Any) -> crown.View:
    workload = WORKLOADS[job.workload]
    return crown.View(workload.text(job.filter), workload.schema, threads=job.threads, **options)


def signed_weights(delta: pa.RecordBatch | pa.Table) -> np.ndarray:
    signs = np.where(is_delete(delta), -1, 1)
    if "_multiplicity" in delta.schema.names:
        signs = signs * delta["_multiplicity"].to_numpy(zero_copy_only=False)
    return np.asarray(signs)


def run(job: Job) -> Outcome:
    """With `options={"samples": {...}}` (see `Stream.samples`) only the samples count, each a refresh."""
    view = view_of(job)
    stream = Stream.load(job.folder)
    totals = Outcome(version=crown.__version__, seconds=0.0, inserted=0, deleted=0)
    width = len(view.schema)
    mark_sum = 0
    peak = 0

    def judge(deltas: list[pa.RecordBatch]) -> None:
        nonlocal mark_sum
        for delta in deltas:
            weights = signed_weights(delta)
            totals.add_delta(weights)
            if done <= stream.mark:
                mark_sum = (mark_sum + checksum(delta.columns[:width], weights)) % 2**64

    for step, (done, changes, timed) in enumerate(job.batches(stream)):
        # Counting and hashing in numpy is the judge's work, not the engine's. The engine goes on a
        # few blocks ahead of its reader, so the judge stops the clock as seldom as memory allows:
        # else work done meanwhile would be lost.
        judged = 0.0
        held: list[pa.RecordBatch] = []
        rows = 0
        started = time.perf_counter()
        deltas = view.apply(changes, stream=len(changes) <= len(stream.names), per_update=job.batch == 0)
        for delta in deltas.to_batches() if isinstance(deltas, pa.Table) else deltas:
            held.append(delta)
            rows += delta.num_rows
            if rows >= HELD_ROWS:
                before = time.perf_counter()
                judge(held)
                held, rows = [], 0
                judged += time.perf_counter() - before
        seconds = time.perf_counter() - started - judged
        judge(held)
        if timed:
            totals.add_time(seconds)
            totals.updates += sum(len(table) for _, table in changes)
        late = totals.late(job.seconds) and done < len(stream)
        if step % STATE_EVERY == 0 or late or done in (stream.mark, len(stream)):
            stats = view.stats()
            peak = max(peak, stats["bytes"])
            totals.details = {
                "state_bytes": stats["bytes"],
                "peak_state_bytes": peak,
                "counter_changes_per_update": stats["counter_changes_per_update"],
            }
        note_progress(totals)
        if late:
            totals.status = f"not done in {job.seconds:.0f} s"
            break
    totals.checksum = mark_sum if done >= stream.mark else None
    return totals
