"""What Spark costs: Crown's streaming and bounded runs against the same pipelines with nothing in them.

    python -m benchmarks.spark_overhead [--rows 400000] [--graph epinions.tsv] [--output result.json]

All ratios come from one run on one machine, each measure the median of a few repetitions. Needs an otherwise idle
machine to mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data import Data
from benchmarks.store import machine
from benchmarks.workloads import WORKLOADS
from crown.spark import configure, maintain, run_batch
from crown.spark.chunks import log_chunks, write_blob
from crown.spark.host.engines import rebuild

CELLS = 2
QUERIES = ("three_hop", "four_hop_project")


class Nothing:
    """An engine that takes changes and gives nothing: what is left is Spark, dispatch, host and state store."""

    def __init__(self, plan: str, *, deltas: bool = True) -> None:
        columns = json.loads(plan)["columns"]
        self._empty = _empty(columns)

    def apply(self, changes: Any, **options: Any) -> pa.Table:
        for _, data in changes:
            pa.table(data)
        return self._empty

    stream = apply

    def rows(self, **options: Any) -> pa.Table:
        return self._empty

    def save(self) -> list[bytes]:
        return [b"nothing"]

    @staticmethod
    def load(plan: str, chunks: list[bytes], *, deltas: bool = True) -> Nothing:
        return Nothing(plan)

    def stats(self) -> dict[str, Any]:
        # As many rows alive as were ever seen, so that no state is rewritten.
        return {"stages": [{"rows": 1 << 60}], "tables": [], "bytes": 0, "lambda": 0.0}


def _empty(columns: list[dict[str, Any]]) -> pa.Table:
    types = {"string": pa.string(), "float64": pa.float64()}
    fields = {column["name"]: pa.array([], types.get(column["type"], pa.int64())) for column in columns}
    return pa.table({**fields, "_change_type": pa.array([], pa.string()), "_multiplicity": pa.array([], pa.int64())})


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    builder = SparkSession.builder.master(f"local[{CELLS}]").appName("crown-overhead")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executorEnv.PYTHONPATH", path)
    builder = builder.config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
    spark = configure(builder.config("spark.driver.memory", "2g"), cells=CELLS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def drained(frame: DataFrame, directory: Path) -> float:
    """Rows per second of the batches after the first, which also starts workers and compiles."""
    checkpoint = tempfile.mkdtemp(dir=directory)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p.numInputRows][1:]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return sum(p.numInputRows for p in batches) / (sum(p.durationMs["triggerExecution"] for p in batches) / 1000)


def fixed_cost(frame: DataFrame, directory: Path) -> float:
    """Milliseconds of a micro-batch with almost nothing in it, when all is warm."""
    checkpoint = tempfile.mkdtemp(dir=directory)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    times = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows][3:]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return statistics.median(times)


def timed(frame: Callable[[], DataFrame]) -> float:
    started = time.monotonic()
    frame().write.format("noop").mode("overwrite").save()
    return time.monotonic() - started


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=400_000)
    arguments.add_argument("--graph", help="an edge list, e.g. SNAP's Epinions; generated when not given")
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--output", type=Path)
    options = arguments.parse_args()
    result = measure(options.rows, options.graph, options.repeat)
    text = json.dumps(result, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


def measure(rows: int, graph: str | None, repeat: int) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp(prefix="crown-overhead-"))
    edges = Data(graph=graph, scale=rows / 500_000).edges().slice(0, rows)
    write_files(edges, directory / "large", files=5)
    write_files(edges.slice(0, 400), directory / "small", files=20)
    measures: dict[str, Any] = {}
    try:
        for engine in ("crown", "nothing"):
            if engine == "nothing":
                os.environ["CROWN_SPARK_ENGINE"] = "benchmarks.spark_overhead:Nothing"
            spark = session()
            measures[engine] = _with_engine(spark, directory, engine, repeat)
            if engine == "crown":
                measures["plain"] = _plain(spark, directory, repeat)
            spark.stop()
            os.environ.pop("CROWN_SPARK_ENGINE", None)
        measures["recovery"] = {name: recovery(name, edges) for name in QUERIES}
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return {"machine": machine(), "rows": rows, "measures": measures, "ratios": _ratios(measures)}


def write_files(edges: pa.Table, path: Path, files: int) -> None:
    path.mkdir(parents=True)
    step = -(-edges.num_rows // files)
    for number in range(files):
        pyarrow.parquet.write_table(edges.slice(number * step, step), path / f"{number:03d}.parquet")
        os.utime(path / f"{number:03d}.parquet", (1_700_000_000 + number,) * 2)


def _source(spark: SparkSession, path: Path) -> DataFrame:
    return spark.readStream.schema("src BIGINT, dst BIGINT").option("maxFilesPerTrigger", 1).parquet(str(path))


def _with_engine(spark: SparkSession, directory: Path, engine: str, repeat: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    bounded = spark.read.parquet(str(directory / "large"))
    for name in QUERIES:
        sql = WORKLOADS[name].text()
        streaming = lambda path, sql=sql: maintain(spark, sql, {"G": _source(spark, path)}, cells=CELLS)  # noqa: E731
        found[name] = {
            "streaming_rows_per_second": statistics.median(
                drained(streaming(directory / "large"), directory) for _ in range(repeat)
            ),
            "bounded_seconds": statistics.median(
                timed(lambda sql=sql: run_batch(spark, sql, {"G": bounded}, cells=CELLS)) for _ in range(repeat + 1)
            ),
        }
        if engine == "crown":
            found[name]["micro_batch_ms"] = fixed_cost(streaming(directory / "small"), directory)
    return found


def _plain(spark: SparkSession, directory: Path, repeat: int) -> dict[str, float]:
    bounded = spark.read.parquet(str(directory / "large"))
    shuffled = lambda: bounded.repartition(CELLS, "src").mapInArrow(identity, "src BIGINT, dst BIGINT")  # noqa: E731
    scan = [drained(_source(spark, directory / "large"), directory) for _ in range(repeat)]
    return {
        "scan_rows_per_second": statistics.median(scan),
        "repartition_identity_seconds": statistics.median(timed(shuffled) for _ in range(repeat + 1)),
        "pass_through_micro_batch_ms": fixed_cost(_source(spark, directory / "small"), directory),
    }


def recovery(name: str, edges: pa.Table) -> float:
    """Rows rebuilt per second and cell from the log that the state holds, as the host does it."""
    plan = _plan(name)
    blobs = [("G", write_blob([batch], edges.schema)) for batch in edges.to_batches(max_chunksize=32_768)]
    chunks = list(log_chunks(1, blobs))
    started = time.monotonic()
    rebuild(plan, chunks, "raise")
    return edges.num_rows / (time.monotonic() - started)


def _plan(name: str) -> str:
    from crown.plan import plan, to_json
    from crown.sql import parse

    return to_json(plan(parse(WORKLOADS[name].text(), {"G": {"src": "int64", "dst": "int64"}})))


def _ratios(measures: dict[str, Any]) -> dict[str, dict[str, float]]:
    plain, crown, nothing = measures["plain"], measures["crown"], measures["nothing"]
    return {
        name: {
            "streaming against a do-nothing engine": crown[name]["streaming_rows_per_second"]
            / nothing[name]["streaming_rows_per_second"],
            "streaming against a bare scan": crown[name]["streaming_rows_per_second"] / plain["scan_rows_per_second"],
            "bounded against repartition and identity": plain["repartition_identity_seconds"]
            / crown[name]["bounded_seconds"],
            "micro-batch against a pass-through": crown[name]["micro_batch_ms"] / plain["pass_through_micro_batch_ms"],
            "recovery, rows per second and cell": measures["recovery"][name],
        }
        for name in QUERIES
    }


if __name__ == "__main__":
    main()
