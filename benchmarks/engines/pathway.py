"""Pathway: its Rust engine (differential dataflow) from Python, fed with a timed stream of changes.

Timing runs end in `pw.io.null`; with `options={"collect": True}` (small streams) a subscription reads the answer back.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.checksum import checksum
from benchmarks.engines import pathway_plans
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS

UNUSED = ("_change_type", "created", "length")  # by any query
RENAMED = {"id": "key"}  # Pathway has an `id` of its own
OPTIONAL = ("reply_of",)


def run(job: Job) -> Outcome:
    try:
        import pathway as pw
    except ImportError:
        return Outcome(status="not installed: see benchmarks/README.md")
    stream = Stream.load(job.folder)
    threshold = WORKLOADS[job.workload].filter if job.filter is None else job.filter
    tables = {name: _table(pw, stream, number, job.batch or 1) for number, name in enumerate(stream.names)}
    query = job.workload + job.options.get("variant", "")
    result = pathway_plans.plan(pw, query, tables, threshold)
    if result is None:
        return Outcome(status=f"no Pathway program for {query}")
    outcome = Outcome(version=pw.__version__, updates=len(stream))
    collected: list[tuple[Any, ...]] = []
    weights: list[int] = []
    if job.options.get("collect"):

        def on_change(key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
            collected.append(tuple(row.values()))
            weights.append(1 if is_addition else -1)

        pw.io.subscribe(result, on_change)
    else:
        pw.io.null.write(result)
    loaded = _note_when_loaded()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    outcome.seconds = time.perf_counter() - loaded[-1]
    if job.options.get("collect"):
        columns = [pa.chunked_array([pa.array(values)]) for values in zip(*collected, strict=True)]
        signed = np.array(weights)
        outcome.checksum = checksum(columns, signed)
        outcome.inserted, outcome.deleted = int((signed > 0).sum()), int((signed < 0).sum())
    return outcome


def _note_when_loaded() -> list[float]:
    """The time now, and later that at which each table was made: only inside of `pw.run` does Pathway turn rows into
    objects, one by one in Python, and loading is not counted for any engine.
    """
    from pathway.internals import api

    make, loaded = api.static_table_from_pandas, [time.perf_counter()]

    def make_and_note(*arguments: Any, **options: Any) -> Any:
        table = make(*arguments, **options)
        loaded.append(time.perf_counter())
        return table

    api.static_table_from_pandas = make_and_note
    return loaded


def _table(pw: Any, stream: Stream, number: int, batch: int) -> Any:
    """One table of the stream; an update's time is that of its batch, and times are even."""
    table = stream.tables[number].drop_columns([c for c in UNUSED if c in stream.tables[number].column_names])
    table = table.rename_columns([RENAMED.get(name, name) for name in table.column_names])
    columns = {}
    for field in table.schema:
        kind: Any = str if pa.types.is_string(field.type) else int
        # With a key, so that a deletion removes what was inserted; an edge is its own key.
        is_key = field.name == "key" or "key" not in table.column_names
        columns[field.name] = pw.column_definition(
            dtype=kind | None if field.name in OPTIONAL else kind, primary_key=is_key
        )
    rows = table.to_pandas(integer_object_nulls=True)
    rows["__time__"] = 2 * (np.flatnonzero(stream.order == number) // batch)
    rows["__diff__"] = np.where(is_delete(stream.tables[number]), -1, 1)
    return pw.debug.table_from_pandas(rows, schema=pw.schema_builder(columns))
