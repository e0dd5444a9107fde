"""The paper's "old plan" on Crown's own kernel tables: a chain of pairwise joins, every intermediate view materialised.

It is written for full joins of integer tables, so queries with DISTINCT, aggregates or strings are not asked of it.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import crown
from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome, note_progress
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS
from crown._kernel import PairwiseBaseline

# Atoms in join order with their variables, the atoms of each table, and the result's columns in
# SQL's order. An atom in `filtered` takes only edges whose target is above the workload's
# threshold.
PLANS: dict[str, tuple[list[list[str]], dict[str, list[int]], list[str], set[int]]] = {
    "three_hop": ([["a", "b"], ["b", "c"], ["c", "d"]], {"G": [0, 1, 2]}, list("abcd"), {2}),
    "three_hop_tables": ([["a", "b"], ["b", "c"], ["c", "d"]], {"g1": [0], "g2": [1], "g3": [2]}, list("abcd"), set()),
    "four_hop": ([["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"]], {"G": [0, 1, 2, 3]}, list("abcde"), {3}),
    "two_comb": (
        [["a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d"]],
        {"G": [1, 2, 3], "V1": [0], "V2": [4]},
        list("abcd"),
        set(),
    ),
    "dumbbell": (
        [["p", "x"], ["x", "y"], ["y", "p"], ["p", "q"], ["q", "u"], ["u", "w"], ["w", "q"]],
        {"G": [0, 1, 2, 3, 4, 5, 6]},
        list("pxyquw"),
        set(),
    ),
}


def run(job: Job) -> Outcome:
    if job.workload not in PLANS:
        return Outcome(status="the old plan is written for full joins of integers only")
    atoms, by_table, output, filtered = PLANS[job.workload]
    threshold = WORKLOADS[job.workload].filter if job.filter is None else job.filter
    chain = PairwiseBaseline(atoms)
    stream = _signed(Stream.load(job.folder))
    outcome = Outcome(version=crown.__version__, inserted=0, deleted=0)
    running_sum, judged = 0, 0.0
    started = time.perf_counter()
    for done, changes, _ in job.batches(stream):
        for name, table in changes:
            plain = [atom for atom in by_table[name] if atom not in filtered]
            for some, rows in (
                (plain, table),
                ([*filtered], table.filter(pc.field("dst") > threshold) if filtered else None),
            ):
                if rows is None or not some:
                    continue
                delta = pa.table(chain.apply(some, rows))
                before = time.perf_counter()
                weights = delta["weight"].to_numpy()
                outcome.add_delta(weights)
                running_sum = (running_sum + checksum([delta[column] for column in output], weights)) % 2**64
                judged += time.perf_counter() - before
        outcome.updates = done
        outcome.seconds = time.perf_counter() - started - judged
        outcome.checksum = running_sum if done == stream.mark else outcome.checksum
        rows, held = chain.state()
        peak = max(held, outcome.details.get("peak_state_bytes", 0))
        # Where it stands: an experiment may stop others at the same update and compare.
        outcome.details = {"state_rows": rows, "state_bytes": held, "peak_state_bytes": peak, "checksum": running_sum}
        note_progress(outcome)
        if outcome.seconds > job.seconds and done < len(stream):
            outcome.status = f"not done in {job.seconds:.0f} s"
            break
    return outcome


def _signed(stream: Stream) -> Stream:
    """The stream with a weight instead of `_change_type` in its tables, before the clock starts."""
    tables = (
        table.drop_columns(["_change_type"]).append_column("weight", pa.array(np.where(is_delete(table), -1, 1)))
        for table in stream.tables
    )
    return replace(stream, tables=tuple(tables))
