"""Crown's view without delta maintenance (the tree with linked deltas off), whole result pulled at each refresh."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import crown
from benchmarks.checksum import checksum
from benchmarks.engines.crown import view_of
from benchmarks.job import Job, Outcome, note_progress
from benchmarks.stream import Stream


def run(job: Job) -> Outcome:
    """With `options={"samples": {...}}` (see `Stream.samples`) only the samples count, each a refresh."""
    view = view_of(job, deltas=False)
    stream = Stream.load(job.folder)
    outcome = Outcome(version=crown.__version__, seconds=0.0)
    pulling = 0.0
    pulled = 0
    for done, changes, timed in job.batches(stream):
        started = time.perf_counter()
        view.apply(changes)
        if timed or done == stream.mark:
            before = time.perf_counter()
            answer = view.to_arrow(multiplicity=True)
            ended = time.perf_counter()
        if timed:
            outcome.updates += sum(len(table) for _, table in changes)
            outcome.add_time(ended - started)
            pulling += ended - before
            pulled += answer.num_rows
            outcome.details = {"pull_seconds": pulling, "rows_pulled": pulled}
        if done == stream.mark:
            outcome.checksum = answer_checksum(view, answer)
        note_progress(outcome)
        if outcome.late(job.seconds) and done < len(stream):
            outcome.status = f"not done in {job.seconds:.0f} s"
            break
    return outcome


def answer_checksum(view: crown.View, answer: pa.Table) -> int:
    """Of the whole answer, with multiplicities where rows repeat."""
    counted = "_multiplicity" in answer.column_names
    weights = answer["_multiplicity"].to_numpy() if counted else np.ones(len(answer), np.int64)
    return checksum(answer.columns[: len(view.schema)], weights)
