"""Flink SQL through PyFlink: a changelog source (Debezium JSON lines in a file), heap state, the workload's own SQL.

Timing runs end in Flink's `blackhole` sink, the cheapest there is. With `options={"collect": True}`, on the first part
of a stream, the changelog is made a plain table by Flink's `TO_CHANGELOG`, written as CSV files and read back.
`options={"multi_join": True}` asks for Flink's multi-way join, `{"variant": "_rewritten"}` for the SQL that a careful
user would write by hand.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from benchmarks.checksum import checksum
from benchmarks.job import Job, Outcome
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS

TYPES = {"int64": "BIGINT", "string": "STRING"}
_ON_TRIANGLE = "SELECT a.src FROM G a, G b, G c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src"
_FRIENDS = """SELECT k1.p1 AS a, k1.p2 AS b, k2.p2 AS c, t.id AS tag, m.id AS message
FROM knows k1 JOIN knows k2 ON k1.p2 = k2.p1 JOIN message m ON m.creator = k2.p2
JOIN message_tag mt ON m.id = mt.message JOIN tag t ON mt.tag = t.id
WHERE m.reply_of IS NULL AND k1.p1 < {filter}"""
REWRITTEN = {
    "star": "SELECT src, n * n * n * n AS n FROM (SELECT src, COUNT(*) AS n FROM G GROUP BY src)",
    "four_hop_project": "SELECT G2.src AS B, G3.src AS C, G3.dst AS D FROM G G2, G G3 "
    "WHERE G2.dst = G3.src AND G2.src IN (SELECT dst FROM G) AND G3.dst IN (SELECT src FROM G)",
    "dumbbell_project": "SELECT DISTINCT G4.src AS P, G4.dst AS Q FROM G G4 "
    f"WHERE G4.src IN ({_ON_TRIANGLE}) AND G4.dst IN ({_ON_TRIANGLE})",
    # Flink joins in the order of FROM unless told otherwise, and the paper's begins with tag and
    # message, which share nothing: here the filtered table comes first and each next one is joined
    # with what is there.
    "snb_q2": _FRIENDS,
    "snb_q3": _FRIENDS + " AND k2.p2 <> k1.p1",
    "snb_q4": "SELECT t.name, t.id AS tag, COUNT(DISTINCT m.id) AS messages FROM knows k "
    "JOIN message m ON m.creator = k.p2 JOIN message_tag mt ON m.id = mt.message JOIN tag t ON mt.tag = t.id "
    "WHERE m.reply_of IS NULL AND k.p1 < {filter} GROUP BY t.name, t.id",
}


def run(job: Job) -> Outcome:
    try:
        import pyflink.version
        from pyflink.table import EnvironmentSettings, TableEnvironment
    except ImportError:
        return Outcome(status="not installed: see benchmarks/README.md")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", f"-Xmx{max(1, (job.memory >> 30) - 1)}g")
    stream = Stream.load(job.folder)
    _write_changelog(stream, job.folder)
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = environment.get_config()
    settings.set("parallelism.default", str(job.threads))
    settings.set("state.backend.type", "hashmap")
    settings.set("python.executable", sys.executable)
    if job.options.get("multi_join"):
        settings.set("table.optimizer.multi-join.enabled", "true")
    for name, table in zip(stream.names, stream.tables, strict=True):
        columns = ", ".join(f"{f.name} {TYPES[str(f.type)]}" for f in table.schema if f.name != "_change_type")
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'debezium-json', "
            f"'path' = 'file://{job.folder}/{name}.debezium')"
        )
    workload = WORKLOADS[job.workload]
    if job.options.get("variant"):
        workload = replace(workload, sql=REWRITTEN[job.workload])
    query = workload.text(job.filter)
    environment.execute_sql(f"CREATE TEMPORARY VIEW answer AS {query}")
    schema = environment.from_path("answer").get_schema()
    names = schema.get_field_names()
    fields = ", ".join(
        f"`{name}` {'STRING' if 'CHAR' in str(kind).upper() else 'BIGINT'}"
        for name, kind in zip(names, schema.get_field_data_types(), strict=True)
    )
    outcome = Outcome(version=pyflink.version.__version__)
    if not job.options.get("collect"):
        environment.execute_sql(f"CREATE TABLE sink ({fields}) WITH ('connector' = 'blackhole')")
        _execute(environment.execute_sql("INSERT INTO sink SELECT * FROM answer"), job, stream, outcome)
        return outcome
    with tempfile.TemporaryDirectory() as folder:
        environment.execute_sql(
            f"CREATE TABLE sink (op STRING, {fields}) "
            f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{folder}/answer')"
        )
        insertion = "INSERT INTO sink SELECT * FROM TO_CHANGELOG(input => TABLE answer)"
        if not _execute(environment.execute_sql(insertion), job, stream, outcome):
            return outcome
        changes = _read_back(Path(folder) / "answer", names)
    signed = np.where(np.isin(changes["op"].to_pylist(), ("DELETE", "UPDATE_BEFORE")), -1, 1)
    outcome.checksum = checksum([changes[name] for name in names], signed)
    outcome.inserted, outcome.deleted = int((signed > 0).sum()), int((signed < 0).sum())
    return outcome


def _execute(running: Any, job: Job, stream: Stream, outcome: Outcome) -> bool:
    """Waits for the job within its limit. Its own net time counts: planning and the start of the cluster do not."""
    from py4j.protocol import Py4JJavaError

    try:
        running.wait(int(job.seconds * 1000))
    except Py4JJavaError as error:
        if "TimeoutException" not in str(error.java_exception):
            raise
        outcome.status = f"not done in {job.seconds:.0f} s"
        return False
    outcome.seconds = running.get_job_client().get_job_execution_result().result().get_net_runtime() / 1000
    outcome.updates = len(stream)
    return True


def _read_back(folder: Path, names: list[str]) -> pa.Table:
    options = csv.ReadOptions(column_names=["op", *names])
    # Part files of a job that has ended may still carry the name of parts in progress; each row is
    # in one of them.
    parts = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size and "part-" in path.name]
    if not parts:
        return pa.table({name: pa.array([], pa.string() if name == "op" else pa.int64()) for name in ("op", *names)})
    return pa.concat_tables(csv.read_csv(path, read_options=options) for path in parts)


def _write_changelog(stream: Stream, folder: Path) -> None:
    for name, table in zip(stream.names, stream.tables, strict=True):
        path = folder / f"{name}.debezium"
        if path.exists():
            continue
        columns = [column for column in table.column_names if column != "_change_type"]
        values = [table[column].to_pylist() for column in columns]
        partial = path.with_suffix(".new")
        with partial.open("w") as file:
            for delete, *row in zip(is_delete(table), *values, strict=True):
                image = json.dumps(dict(zip(columns, row, strict=True)))
                file.write(
                    f'{{"before":{image},"after":null,"op":"d"}}\n'
                    if delete
                    else f'{{"before":null,"after":{image},"op":"c"}}\n'
                )
        partial.replace(path)
