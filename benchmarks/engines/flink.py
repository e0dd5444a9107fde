"""Flink SQL through PyFlink: a changelog source (Debezium JSON lines in a file), heap state, exact SQL text.

Timing runs end in Flink's `blackhole` sink: reading tens of millions of rows back into Python would measure Python.
With `options={"collect": True}` (small streams) the changelog is read back and the answer compared.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS

TYPES = {"int64": "BIGINT", "string": "STRING"}


def _write_changelog(stream: Stream, folder: Path) -> None:
    for name, table in zip(stream.names, stream.tables, strict=True):
        path = folder / f"{name}.debezium"
        if path.exists():
            continue
        columns = [column for column in table.column_names if column != "_change_type"]
        values = [table[column].to_pylist() for column in columns]
        with path.open("w") as file:
            for delete, *row in zip(is_delete(table), *values, strict=True):
                image = json.dumps(dict(zip(columns, row, strict=True)))
                file.write(
                    f'{{"before":{image},"after":null,"op":"d"}}\n'
                    if delete
                    else f'{{"before":null,"after":{image},"op":"c"}}\n'
                )


def run(job: Job) -> Outcome:
    try:
        import pyflink.version
        from pyflink.table import EnvironmentSettings, Schema, TableDescriptor, TableEnvironment
    except ImportError:
        return Outcome(status="not installed: pip install apache-flink in the benchmarks' environment")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", f"-Xmx{max(1, (job.memory >> 30) - 1)}g")
    stream = Stream.load(job.folder)
    _write_changelog(stream, job.folder)
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = environment.get_config()
    settings.set("parallelism.default", str(job.threads))
    settings.set("taskmanager.memory.process.size", f"{max(2, (job.memory >> 30) - 1)}g")
    settings.set("python.executable", sys.executable)
    if job.options.get("multi_join"):
        settings.set("table.optimizer.multi-join.enabled", "true")
    for name, table in zip(stream.names, stream.tables, strict=True):
        columns = ", ".join(f"{f.name} {TYPES[str(f.type)]}" for f in table.schema if f.name != "_change_type")
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'debezium-json', "
            f"'path' = 'file://{job.folder}/{name}.debezium')"
        )
    query = job.options.get("sql") or WORKLOADS[job.workload].text(job.filter)
    outcome = Outcome(version=pyflink.version.__version__, updates=len(stream))
    started = time.perf_counter()
    if job.options.get("collect"):
        rows, weights = [], []
        with environment.execute_sql(query).collect() as results:
            for row in results:
                rows.append(tuple(row))
                weights.append(-1 if row.get_row_kind().name in ("DELETE", "UPDATE_BEFORE") else 1)
        columns_back = [pa.chunked_array([pa.array(values)]) for values in zip(*rows, strict=True)]
        signed = np.array(weights)
        outcome.checksum = checksum(columns_back, signed)
        outcome.inserted, outcome.deleted = int((signed > 0).sum()), int((signed < 0).sum())
    else:
        view = environment.sql_query(query)
        schema = view.get_schema()
        fields = Schema.new_builder().from_fields(schema.get_field_names(), schema.get_field_data_types()).build()
        view.execute_insert(TableDescriptor.for_connector("blackhole").schema(fields).build()).wait()
    outcome.seconds = time.perf_counter() - started
    return outcome
