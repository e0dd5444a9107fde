"""An application with a stream to each kind of sink, which kills itself, JVM and all, at a given point: a script.

A point is `SINK:WHEN:BATCH`. `before` is before the sink does anything for the batch, `written` is when all is written
but not committed, `committed` is after the sink's own commit and before Spark's, `after` is after Spark's commit, when
the next batch begins. The third sink appends rows to files as they come, and so repeats those of a batch that is run
again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import Row, SparkSession

from crown.spark import configure, maintain, materialize
from crown.spark.sinks import parquet, postgres
from tests.spark.streams import run_to_end, stream


def die(group: int) -> None:
    """Kill the driver and its JVM, which are one process group, at once.

    Were the JVM killed first, its death would end this process (if a worker) before it could kill the driver too.
    """
    os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class Appending:
    """A writer for `foreach`: a line per row, repeated when Spark repeats the batch."""

    def __init__(self, directory: str, point: tuple[str, str, int], group: int) -> None:
        self.directory, self.point, self.group = directory, point, group

    def open(self, partition: int, batch: int) -> bool:
        self.batch, self.rows = batch, 0
        self.file = open(f"{self.directory}/{partition}-{batch}-{os.getpid()}", "a")  # noqa: SIM115
        return True

    def process(self, row: Row) -> None:
        self.file.write(json.dumps(row.asDict()) + "\n")
        self.file.flush()
        self.rows += 1
        if self.point == ("append", "written", self.batch) and self.rows == 2:
            die(self.group)

    def close(self, error: Exception | None) -> None:
        self.file.close()


def inject(point: tuple[str, str, int], group: int) -> None:
    """Wrap what the sinks do, so that this process dies at the point."""
    sink, when, at = point
    if sink == "append":
        return
    running = {"batch": -1}
    target: Any = postgres.PostgresTarget if sink == "postgres" else parquet.ParquetTarget
    apply = target.apply

    def applied(self: Any, deltas: Any, batch: int) -> None:
        running["batch"] = batch
        if (when, at) in (("before", batch), ("after", batch - 1)):
            die(group)
        apply(self, deltas, batch)
        if (when, at) == ("committed", batch):
            die(group)

    target.apply = applied
    if when == "written":
        owner: Any = psycopg.Connection if sink == "postgres" else parquet._Store
        name = "commit" if sink == "postgres" else "write"
        inner: Callable[..., None] = getattr(owner, name)

        def written(self: Any, *arguments: Any) -> None:
            if running["batch"] == at:
                die(group)
            inner(self, *arguments)

        setattr(owner, name, written)


def main(directory: str, sql: str, connection: str, point: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("crown-sinks")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    spark = configure(builder, cells=2).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    sink, when, batch = point.split(":")
    gateway: Any = spark.sparkContext._gateway
    group = os.getpgid(gateway.proc.pid)
    assert group == os.getpgrp()
    inject((sink, when, int(batch)), group)
    write_all(spark, Path(directory), sql, connection, (sink, when, int(batch)), group)
    spark.stop()


def write_all(
    spark: SparkSession, base: Path, sql: str, connection: str, point: tuple[str, str, int], group: int
) -> None:
    """Run the streams to their end."""

    def deltas(**options: Any) -> Any:
        tables = {path.name: stream(spark, path, by_name=True) for path in (base / "in").iterdir()}
        return maintain(spark, sql, tables, cells=2, **options)

    rows = Appending(str(base / "appended"), point, group)

    def writer(kind: str) -> Any:
        checkpoint = str(base / f"c-{kind}")
        if kind == "postgres":
            return materialize(deltas(), checkpoint=checkpoint, postgres=connection, table="killed")
        if kind == "parquet":
            return materialize(deltas(), checkpoint=checkpoint, parquet=str(base / "table"))
        return deltas(batch=True).writeStream.foreach(rows).option("checkpointLocation", checkpoint)

    # The one that is to be killed goes first.
    for kind in sorted(["append", "parquet", "postgres"], key=lambda kind: kind != point[0]):
        run_to_end(writer(kind).trigger(availableNow=True))


if __name__ == "__main__":
    main(*sys.argv[1:5])
