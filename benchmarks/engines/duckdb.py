"""DuckDB recomputing the query at each refresh: the rival that keeps no state beyond the tables."""

from __future__ import annotations

import time

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot

from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome, note_progress
from benchmarks.stream import Stream
from benchmarks.workloads import WORKLOADS


def run(job: Job) -> Outcome:
    """With `options={"samples": {...}}` (see `Stream.samples`) only the samples count, each a refresh."""
    workload = WORKLOADS[job.workload]
    connection = duckdb.connect(config={"threads": job.threads})
    for statement in sqlglot.transpile(workload.schema, read="spark", write="duckdb"):
        connection.execute(statement.replace("PRIMARY KEY", ""))
    query = sqlglot.transpile(workload.text(job.filter), read="spark", write="duckdb")[0]
    stream = Stream.load(job.folder)
    outcome = Outcome(version=duckdb.__version__, seconds=0.0)
    laps: list[float] = []
    querying = 0.0
    for done, changes, timed in job.batches(stream):
        started = time.perf_counter()
        _change(connection, changes)
        if timed or done == stream.mark:
            before = time.perf_counter()
            answer = connection.sql(query).to_arrow_table()
            ended = time.perf_counter()
        if timed:
            laps.append(ended - started)
            outcome.updates += sum(len(table) for _, table in changes)
            outcome.add_time(ended - started)
            querying += ended - before
            outcome.details = {"laps": laps, "query_seconds": querying}
        if done == stream.mark:
            outcome.checksum = checksum(answer.columns, np.ones(len(answer), dtype=np.int64))
        note_progress(outcome)
        if outcome.late(job.seconds) and done < len(stream):
            outcome.status = f"not done in {job.seconds:.0f} s"
            break
    return outcome


def _change(connection: duckdb.DuckDBPyConnection, changes: list[tuple[str, pa.Table]]) -> None:
    """The streams hold no duplicates, so what leaves and comes in one batch is left out on both sides."""
    for name, table in changes:
        connection.register("changes", table)
        columns = [column for column in table.column_names if column != "_change_type"]
        names = ", ".join(columns)
        # Not IN: rows hold NULLs.
        same = " AND ".join(f"kept.{column} IS NOT DISTINCT FROM gone.{column}" for column in columns)
        gone = f"(SELECT {names} FROM changes WHERE _change_type = 'delete') AS gone"
        connection.execute(f"DELETE FROM {name} AS kept USING {gone} WHERE {same}")
        connection.execute(
            f"INSERT INTO {name} ({names}) SELECT {names} FROM changes AS kept WHERE _change_type = 'insert' "
            f"AND NOT EXISTS (SELECT 1 FROM {gone} WHERE {same})"
        )
        connection.unregister("changes")
