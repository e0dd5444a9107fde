"""Pathway: its Rust engine (differential dataflow) from Python, fed with a timed stream of changes.

Timing runs end in `pw.io.null`; with `options={"collect": True}` (small streams) a subscription reads the answer back.
"""

from __future__ import annotations

import time

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
    schema = pw.schema_from_types(src=int, dst=int)
    table = stream.tables[0]
    times = 2 * (np.arange(len(table)) // (job.batch or 1))
    rows = list(
        zip(
            table["src"].to_pylist(),
            table["dst"].to_pylist(),
            times.tolist(),
            np.where(is_delete(table), -1, 1).tolist(),
            strict=True,
        )
    )
    edges = pw.debug.table_from_rows(schema, rows, is_stream=True)
    first, second, third, fourth = (edges.copy() for _ in range(4))
    match job.workload:
        case "three_hop":
            last = edges.filter(pw.this.dst > threshold)
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            result = pairs.join(last, pairs.c == last.src).select(pairs.a, pairs.b, pairs.c, d=last.dst)
        case "four_hop_project":
            pairs = first.join(second, first.dst == second.src).select(b=second.src, c=second.dst)
            triples = pairs.join(third, pairs.c == third.src).select(pairs.b, pairs.c, d=third.dst)
            joined = triples.join(fourth, triples.d == fourth.src).select(triples.b, triples.c, triples.d)
            result = joined.groupby(joined.b, joined.c, joined.d).reduce(joined.b, joined.c, joined.d)
        case "star" if job.options.get("variant"):
            counts = edges.groupby(edges.src).reduce(edges.src, n=pw.reducers.count())
            result = counts.select(counts.src, n=counts.n * counts.n * counts.n * counts.n)
        case "star":
            pairs = first.join(second, first.src == second.src).select(s=first.src)
            triples = pairs.join(third, pairs.s == third.src).select(pairs.s)
            joined = triples.join(fourth, triples.s == fourth.src).select(triples.s)
            result = joined.groupby(joined.s).reduce(joined.s, n=pw.reducers.count())
        case other:
            return Outcome(status=f"no Pathway program for {other}")
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
