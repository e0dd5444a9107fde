"""Crown on Spark: `crown.spark.maintain` with as many cells as the job has threads, the stream in a few micro-batches.

The first micro-batch starts workers and compiles, so its time does not count. Timing runs end in Spark's no-op sink;
with `options={"collect": True}`, on the first part of a stream, the deltas are written as Parquet files and read back.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

import crown
from benchmarks.checksum import checksum
from benchmarks.engines.crown import signed_weights
from benchmarks.job import SPARK_START_UP_SECONDS, Job, Outcome
from benchmarks.stream import Stream
from benchmarks.workloads import WORKLOADS

MICRO_BATCHES = 6


def run(job: Job) -> Outcome:
    try:
        import pyspark
        from pyspark.sql import SparkSession

        from crown.spark import configure, maintain
    except ImportError:
        return Outcome(status="not installed: pip install 'crown-ivm[spark]'")
    stream = Stream.load(job.folder)
    if len(stream.names) > 1:
        return Outcome(status="measured on queries of one table only")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{job.threads}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(map(os.path.abspath, sys.path)))
    spark = configure(builder.config("spark.driver.memory", "2g"), cells=job.threads).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    (name,) = stream.names
    with tempfile.TemporaryDirectory() as folder:
        source = _write(stream.tables[0], Path(folder) / "changes")
        schema = spark.read.parquet(str(source)).schema
        changes = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        deltas = maintain(spark, WORKLOADS[job.workload].text(job.filter), {name: changes}, cells=job.threads)
        writer: Any = deltas.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        collect = job.options.get("collect")
        writer = writer.format("parquet").option("path", f"{folder}/deltas") if collect else writer.format("noop")
        query = writer.trigger(availableNow=True).start()
        finished = query.awaitTermination(int(job.seconds + SPARK_START_UP_SECONDS))
        counted = [batch for batch in query.recentProgress if batch.numInputRows][1:]
        query.stop()
        outcome = Outcome(
            seconds=sum(batch.durationMs["triggerExecution"] for batch in counted) / 1000,
            updates=sum(batch.numInputRows for batch in counted),
            version=f"{crown.__version__} on Spark {pyspark.__version__}",
        )
        if not finished:
            outcome.status = f"not done in {job.seconds:.0f} s"
        elif collect:
            answer = spark.read.parquet(f"{folder}/deltas").toArrow()
            weights = signed_weights(answer)
            width = [column for column in answer.column_names if not column.startswith("_")]
            outcome.checksum = checksum([answer[column] for column in width], weights)
            outcome.inserted, outcome.deleted = int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())
    spark.stop()
    return outcome


def _write(table: pa.Table, folder: Path) -> Path:
    """One file for each micro-batch, read in the order of their times."""
    folder.mkdir()
    plain = table.set_column(
        table.column_names.index("_change_type"), "_change_type", table["_change_type"].cast(pa.string())
    )
    size = max(1, -(-len(plain) // MICRO_BATCHES))
    for number in range(MICRO_BATCHES):
        path = folder / f"{number:03}.parquet"
        parquet.write_table(plain.slice(number * size, size), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder
