"""The demonstration's pipeline: files of changes in, a maintained view, and Spark's batch SQL over the same tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import crown.spark
from crown.changes import CHANGE_TYPE, INSERT
from crown.demo.network import SQL, Network
from crown.workload.log import SEQUENCE

Answer = Counter[tuple[Any, ...]]


@dataclass
class Progress:
    """What has happened so far; `answer` is the view's content, folded from its deltas alone."""

    batches: int = 0
    updates: int = 0
    deltas: int = 0
    state_bytes: int = 0
    seconds: float = 0.0
    answer: Answer = field(default_factory=Counter)


def start_spark(cells: int) -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("crown demo").master(f"local[{cells}]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    return crown.spark.configure(builder, cells=cells).getOrCreate()


def write_changes(network: Network, folder: Path, batches: int) -> None:
    """One file per batch and table, so that a trigger that takes one file of each sees the batches as they were."""
    for name, rows in network.static.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(rows, folder / name / "00000.parquet")
    for number, batch in enumerate(network.batches(batches)):
        changed = dict(batch)
        for name, changes in network.stream.items():
            part = changed.get(name, changes.slice(0, 0)).drop_columns([SEQUENCE])
            words = part[CHANGE_TYPE].cast(pa.string())
            part = part.set_column(part.schema.get_field_index(CHANGE_TYPE), CHANGE_TYPE, words)
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(part, folder / name / f"{number:05d}.parquet")


def open_tables(spark: SparkSession, network: Network, folder: Path) -> dict[str, DataFrame]:
    """Streams of the files that `write_changes` left; those of static tables have one file of inserts."""
    tables = {}
    for name in (*network.static, *network.stream):
        path = str(folder / name)
        schema = spark.read.parquet(path).schema
        tables[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
    return tables


def run(spark: SparkSession, tables: Mapping[str, DataFrame], checkpoint: Path, *, cells: int) -> Iterator[Progress]:
    """Maintain the view until the files are used up; yields the progress now and then, and once at the end."""
    progress = Progress()

    def fold(delta: DataFrame, batch: int) -> None:
        changed = delta.toArrow()
        words = changed[CHANGE_TYPE].to_pylist()
        rows = zip(*(column.to_pylist() for column in changed.drop_columns([CHANGE_TYPE]).columns), strict=True)
        for word, row in zip(words, rows, strict=True):
            progress.answer[row] += 1 if word == INSERT else -1
        progress.deltas += changed.num_rows

    started = monotonic()
    deltas = crown.spark.maintain(spark, SQL, tables, cells=cells)
    writer = deltas.writeStream.foreachBatch(fold).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        while not query.awaitTermination(1):
            _read(query, progress, started)
            yield progress
    finally:
        if query.isActive:
            query.stop()
    _read(query, progress, started)
    progress.answer = +progress.answer
    yield progress


def _read(query: StreamingQuery, progress: Progress, started: float) -> None:
    """Spark's own account of the batches that are done."""
    done = [p for p in query.recentProgress if p.get("observedMetrics", {}).get("crown")]
    progress.batches = len(done)
    progress.updates = sum(int(p["numInputRows"]) for p in done)
    if done:
        progress.state_bytes = int(done[-1]["observedMetrics"]["crown"]["bytes"] or 0)
    progress.seconds = monotonic() - started


def batch_answer(spark: SparkSession, network: Network) -> Answer:
    """Return what Spark's batch SQL says of the final tables; it never saw the view nor the engine."""
    for name, rows in network.final_tables().items():
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    return rows_of(spark.sql(SQL))


def rows_of(frame: DataFrame) -> Answer:
    return Counter(tuple(row) for row in frame.collect())
