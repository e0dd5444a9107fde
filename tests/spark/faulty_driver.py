"""A whole application that tests kill: reads a feed, maintains a query, writes parquet. Run as a script."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from crown.spark import configure, maintain
from tests.spark.streams import stream


def straggle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Be slow in the first attempt of one task, so that Spark runs a second one beside it."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0 and context.partitionId() == 0:
        time.sleep(3)
    yield from batches


def main(master: str, directory: str, sql: str, cells: int, options: list[str]) -> None:
    builder = SparkSession.builder.master(master).appName("crown-faults")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        **dict(option.split("=", 1) for option in options),
    }.items():
        builder = builder.config(name, value)
    spark = configure(builder, cells=cells).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    base = Path(directory)
    tables = {path.name: stream(spark, path, by_name=True) for path in (base / "in").iterdir()}
    deltas = maintain(spark, sql, tables, cells=cells)
    if os.environ.get("STRAGGLE"):
        deltas = deltas.mapInArrow(straggle, deltas.schema)
    writer = deltas.writeStream.format("parquet").option("path", str(base / "out"))
    query = writer.option("checkpointLocation", str(base / "checkpoint")).trigger(availableNow=True).start()
    print("started", flush=True)
    query.awaitTermination()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:])
