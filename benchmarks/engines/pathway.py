"""Pathway: its Rust engine (differential dataflow) from Python, fed with a timed stream of changes.

Timing runs end in `pw.io.null`; with `options={"collect": True}` (small streams) a subscription reads the answer back.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS


def run(job: Job) -> Outcome:
    try:
        import pathway as pw
    except ImportError:
        return Outcome(status="not installed: see benchmarks/README.md")
    stream = Stream.load(job.folder)
    threshold = WORKLOADS[job.workload].filter if job.filter is None else job.filter
    tables = {name: _table(pw, stream, number, job.batch or 1) for number, name in enumerate(stream.names)}
    result = _plan(pw, job.workload + job.options.get("variant", ""), tables, threshold)
    if result is None:
        return Outcome(status=f"no Pathway program for {job.workload}")
    outcome = Outcome(version=pw.__version__, updates=len(stream))
    collected: list[tuple[int, ...]] = []
    weights: list[int] = []
    if job.options.get("collect"):

        def on_change(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
            collected.append(tuple(row.values()))
            weights.append(1 if is_addition else -1)

        pw.io.subscribe(result, on_change)
    else:
        pw.io.null.write(result)
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    outcome.seconds = time.perf_counter() - started
    if job.options.get("collect"):
        columns = [pa.chunked_array([pa.array(values)]) for values in zip(*collected, strict=True)]
        signed = np.array(weights)
        outcome.checksum = checksum(columns, signed)
        outcome.inserted, outcome.deleted = int((signed > 0).sum()), int((signed < 0).sum())
    return outcome


def _table(pw: Any, stream: Stream, number: int, batch: int) -> Any:
    """One table of the stream; an update's time is that of its batch, and times are even."""
    table = stream.tables[number]
    times = 2 * (np.flatnonzero(stream.order == number) // batch)
    names = [name for name in table.column_names if name != "_change_type"]
    signs = np.where(is_delete(table), -1, 1)
    rows = zip(*(table[name].to_pylist() for name in names), times.tolist(), signs.tolist(), strict=True)
    return pw.debug.table_from_rows(pw.schema_from_types(**dict.fromkeys(names, int)), list(rows), is_stream=True)


def _plan(pw: Any, query: str, tables: dict[str, Any], threshold: int) -> Any:
    """The query as a chain of binary joins, as Pathway's users write it; `_rewritten`: pre-aggregated by hand."""
    if "G" not in tables:
        return None
    edges = tables["G"]
    first, second, third, fourth = (edges.copy() for _ in range(4))
    match query:
        case "three_hop":
            last = edges.filter(pw.this.dst > threshold)
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            return pairs.join(last, pairs.c == last.src).select(pairs.a, pairs.b, pairs.c, d=last.dst)
        case "four_hop":
            last = edges.filter(pw.this.dst > threshold)
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            triples = pairs.join(third, pairs.c == third.src).select(pairs.a, pairs.b, pairs.c, d=third.dst)
            joined = triples.join(last, triples.d == last.src)
            return joined.select(triples.a, triples.b, triples.c, triples.d, e=last.dst)
        case "four_hop_project":
            pairs = first.join(second, first.dst == second.src).select(b=second.src, c=second.dst)
            triples = pairs.join(third, pairs.c == third.src).select(pairs.b, pairs.c, d=third.dst)
            joined = triples.join(fourth, triples.d == fourth.src).select(triples.b, triples.c, triples.d)
            return joined.groupby(joined.b, joined.c, joined.d).reduce(joined.b, joined.c, joined.d)
        case "two_comb":
            starts, ends = tables["V1"], tables["V2"]
            left = first.join(starts, first.src == starts.v).select(a=first.src, b=first.dst)
            right = third.join(ends, third.dst == ends.v).select(c=third.src, d=third.dst)
            pairs = left.join(second, left.b == second.src).select(left.a, left.b, c=second.dst)
            return pairs.join(right, pairs.c == right.c).select(pairs.a, pairs.b, pairs.c, right.d)
        case "star":
            pairs = first.join(second, first.src == second.src).select(s=first.src)
            triples = pairs.join(third, pairs.s == third.src).select(pairs.s)
            joined = triples.join(fourth, triples.s == fourth.src).select(triples.s)
            return joined.groupby(joined.s).reduce(joined.s, n=pw.reducers.count())
        case "star_rewritten":
            counts = edges.groupby(edges.src).reduce(edges.src, n=pw.reducers.count())
            return counts.select(counts.src, n=counts.n * counts.n * counts.n * counts.n)
        case _:
            return None
