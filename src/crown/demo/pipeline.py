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
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

import crown.spark
from crown.changes import CHANGE_TYPE, INSERT
from crown.demo.network import SQL, Network
from crown.spark.flow.maintained import views_of
from crown.spark.pipeline.console import PipelineSource
from crown.spark.pipeline.description import PipelineDescription, PipelineView, Sink, TableSource
from crown.spark.pipeline.figures import NodeFigures
from crown.spark.pipeline.progress import Batches
from crown.workload.log import SEQUENCE

Answer = Counter[tuple[Any, ...]]

# In a process of half a minute, Java's second compiler takes more time than its code saves, and so
# do threads that collect garbage. Both ways to the answer run in this process, Crown's and Spark's
# batch SQL.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class BatchFigures:
    """One batch: how long it took, its changes, and the state after it."""

    seconds: float
    updates: int
    bytes: int


@dataclass
class DemoProgress:
    """What has happened so far; `answer` is the view's content, folded from its deltas alone."""

    batches: int = 0
    updates: int = 0
    deltas: int = 0
    state_bytes: int = 0
    seconds: float = 0.0
    answer: Answer = field(default_factory=Counter)
    history: list[BatchFigures] = field(default_factory=list)


def start_spark(cells: int) -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("crown demo").master(f"local[{cells}]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.driver.extraJavaOptions", _SHORT_LIVED)
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
        # The schema of a file, without the Spark job that would find it out.
        schema = from_arrow_schema(pq.read_schema(folder / name / "00000.parquet"))
        tables[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
    return tables


def run(
    spark: SparkSession, tables: Mapping[str, DataFrame], checkpoint: Path, shown: PipelineSource, *, cells: int
) -> Iterator[DemoProgress]:
    """Maintain the view until the files are used up; yields the progress now and then, and once at the end.

    `shown` is passed to the console.
    """
    progress = DemoProgress()

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
    shown.follow(Batches(query, None, figures=NodeFigures(views_of(deltas)[0])))
    try:
        while not query.awaitTermination(1):
            _read(query, progress, started)
            yield progress
    finally:
        if query.isActive:
            query.stop()
    _read(query, progress, started)
    shown.ended = "the stream has ended"
    progress.answer = +progress.answer
    yield progress


def _read(query: StreamingQuery, progress: DemoProgress, started: float) -> None:
    """Spark's progress reports of the completed batches."""
    done = [p for p in query.recentProgress if p.get("observedMetrics", {}).get("crown")]
    progress.batches = len(done)
    progress.history = [_step(p) for p in done]
    progress.updates = sum(step.updates for step in progress.history)
    progress.state_bytes = progress.history[-1].bytes if done else 0
    progress.seconds = monotonic() - started


def _step(progress: Any) -> BatchFigures:
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    return BatchFigures(seconds, int(progress["numInputRows"]), int(progress["observedMetrics"]["crown"]["bytes"] or 0))


def batch_answer(spark: SparkSession, network: Network) -> tuple[Answer, float]:
    """Return the result of Spark's batch SQL over the final tables, and how many seconds it takes when warm.

    It uses neither the view nor the engine.
    """
    for name, rows in network.final_tables().items():
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    answer = rows_of(spark.sql(SQL))
    started = monotonic()
    rows_of(spark.sql(SQL))
    return answer, monotonic() - started


def description(network: Network, folder: Path, *, cells: int) -> PipelineDescription:
    """Return the pipeline as a file would describe it, for the console."""
    tables = tuple(TableSource(name, "parquet", path=str(folder / name)) for name in (*network.static, *network.stream))
    checkpoint = str(folder / "checkpoint")
    view = PipelineView("crown demo", SQL, Sink("foreachBatch"), "query")
    return PipelineDescription((view,), checkpoint, tables, cells=cells, name="crown demo")


def rows_of(frame: DataFrame) -> Answer:
    return Counter(tuple(row) for row in frame.collect())
