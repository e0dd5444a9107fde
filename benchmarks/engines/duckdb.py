"""DuckDB recomputing the query at each refresh: the rival that keeps no state beyond the tables."""

from __future__ import annotations

import time

import duckdb
import numpy as np
import sqlglot

from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream
from benchmarks.workloads import WORKLOADS


def run(job: Job) -> Outcome:
    workload = WORKLOADS[job.workload]
    connection = duckdb.connect(config={"threads": job.threads})
    for statement in sqlglot.transpile(workload.schema, read="spark", write="duckdb"):
        connection.execute(statement.replace("PRIMARY KEY", ""))
    query = sqlglot.transpile(workload.text(job.filter), read="spark", write="duckdb")[0]
    stream = Stream.load(job.folder)
    outcome = Outcome(version=duckdb.__version__)
    refreshes = 0
    started = time.perf_counter()
    judged = 0.0
    for done, changes in stream.batches(job.batch or 1):
        for name, table in changes.items():
            connection.register("changes", table)
            columns = [column for column in table.column_names if column != "_change_type"]
            names = ", ".join(columns)
            # The streams hold no duplicates, so a row that leaves and comes in one batch may be taken in this order.
            connection.execute(
                f"DELETE FROM {name} WHERE ({names}) IN (SELECT {names} FROM changes WHERE _change_type = 'delete')"
            )
            connection.execute(
                f"INSERT INTO {name} SELECT {names} FROM changes WHERE _change_type = 'insert' "
                f"AND ({names}) NOT IN (SELECT {names} FROM changes WHERE _change_type = 'delete')"
            )
            connection.unregister("changes")
        refreshes += 1
        answer = connection.sql(query).to_arrow_table()
        outcome.updates = done
        if done == stream.mark:
            before = time.perf_counter()
            outcome.checksum = checksum(answer.columns, np.ones(len(answer), dtype=np.int64))
            judged += time.perf_counter() - before
        if time.perf_counter() - started - judged > job.seconds:
            outcome.status = f"not done in {job.seconds:.0f} s"
            break
    outcome.seconds = time.perf_counter() - started - judged
    outcome.details = {"refreshes": refreshes}
    return outcome
