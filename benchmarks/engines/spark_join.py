"""Spark's own stream-stream join, as its users have it: insertions only, since it takes no deletes.

The stream's rows are cut into files, one micro-batch each; the full 3-Hop is a chain of two inner joins with unbounded
state in RocksDB. Timing runs end in Spark's no-op sink; with `options={"collect": True}`, on the first part of a
stream, the result is written as Parquet files and read back.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

from benchmarks.checksum import checksum
from benchmarks.job import SPARK_START_UP_SECONDS, Job, Outcome
from benchmarks.stream import Stream, is_delete
from benchmarks.workloads import WORKLOADS

FILES = 8


def run(job: Job) -> Outcome:
    try:
        import pyspark
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as F
    except ImportError:
        return Outcome(status="not installed: pip install pyspark")
    if job.workload != "three_hop":
        return Outcome(status="written for 3-Hop only: every further query would need another chain of joins")
    stream = Stream.load(job.folder)
    table = stream.tables[0]
    if is_delete(table).any():
        return Outcome(status="takes no deletions")
    inserted = table.drop_columns(["_change_type"])
    threshold = WORKLOADS[job.workload].filter if job.filter is None else job.filter
    spark = (
        SparkSession.builder.master(f"local[{job.threads}]")
        .config("spark.sql.shuffle.partitions", job.threads)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", f"{max(1, (job.memory >> 30) - 1)}g")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "edges"
        source.mkdir()
        size = max(1, -(-len(inserted) // FILES))
        for number in range(FILES):
            parquet.write_table(inserted.slice(number * size, size), source / f"{number:03}.parquet")
        schema = spark.read.parquet(str(source)).schema
        edges = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        first = edges.select(F.col("src").alias("a"), F.col("dst").alias("b"))
        second = edges.select(F.col("src").alias("b"), F.col("dst").alias("c"))
        third = edges.where(F.col("dst") > threshold).select(F.col("src").alias("c"), F.col("dst").alias("d"))
        result = first.join(second, "b").join(third, "c")
        started = time.perf_counter()
        writer = result.select("a", "b", "c", "d").writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        if job.options.get("collect"):
            writer = writer.format("parquet").option("path", f"{folder}/answer")
        else:
            writer = writer.format("noop")
        query = writer.trigger(availableNow=True).start()
        finished = query.awaitTermination(int(job.seconds + SPARK_START_UP_SECONDS))
        seconds = time.perf_counter() - started
        # Each row is read three times, once for each side of the self-join.
        done = sum(progress["numInputRows"] for progress in query.recentProgress) // 3
        query.stop()
        outcome = Outcome(seconds=seconds, updates=done, version=pyspark.__version__)
        if not finished:
            outcome.status = f"not done in {job.seconds:.0f} s"
        elif job.options.get("collect"):
            answer = spark.read.parquet(f"{folder}/answer").toArrow()
            outcome.inserted = len(answer)
            outcome.checksum = checksum(answer.columns, np.ones(len(answer), dtype=np.int64))
    spark.stop()
    return outcome
