"""What Spark costs: Crown's streaming and bounded runs against the same pipelines with nothing in them.

    python -m benchmarks.spark_overhead [--edges 500000] [--graph epinions.tsv] [--rows 1000000] [--output result.json]

The stream is that of the other benchmarks: a FIFO window of a fifth of the edges slides over the graph, as often as it
takes, each edge an insertion and later a deletion, in `BATCHES` micro-batches of `--rows` changes. An edge that comes
and goes within a batch is in no delta: the larger a batch, the fewer there are.

Changes come in two ways: as rows that Spark reads, and as files that `crown.spark.files` names and Crown reads.
Streaming is set against two engines in Crown's place. One does nothing and gives nothing, so the pipeline is also
spared every delta. The other does nothing but hand out as many ready-made rows as Crown gives deltas: what is left of
the ratio is what the kernel itself costs. All ratios come from one run on one machine. A JVM compiles for minutes, most
of it the driver's planning of micro-batches: so a stream is measured after it ran once and after many small batches.
All else is the median of a few repetitions after one that warms up. Needs an otherwise idle machine to mean anything;
the CPU seconds by process, also noted, suffer less from a busy one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data import Data
from benchmarks.processes import usage, used
from benchmarks.store import machine
from benchmarks.workloads import WORKLOADS
from crown.spark import configure, files, maintain, run_batch
from crown.spark.flow.chunks import log_chunks, write_blob
from crown.spark.host.engines import rebuild
from crown.spark.required import ENGINE
from crown.workload import streams

CELLS = 2
BATCHES = 12
SMALL_BATCHES = 60
SMALL_ROWS = 20
LOGGED = 1_000_000  # changes that a lost engine is rebuilt from
QUERIES = ("three_hop", "four_hop_project")
COLUMNS = "src BIGINT, dst BIGINT, _change_type STRING"
_GIVEN = "CROWN_OVERHEAD_DELTAS"  # deltas per change that the engine `Given` hands out


class Nothing:
    """An engine that takes changes and gives nothing: what is left is Spark, dispatch, host and state store."""

    def __init__(self, plan: str, *, deltas: bool = True) -> None:
        described = json.loads(plan)
        self._block = _block(described["columns"], described["bag"])

    def apply(self, changes: Any, **options: Any) -> pa.Table:
        for _, data in changes:
            pa.table(data)
        return self._block.slice(0, 0)

    stream = apply

    def rows(self, **options: Any) -> pa.Table:
        return self._block.slice(0, 0)

    def save(self) -> list[bytes]:
        return [b"nothing"]

    @classmethod
    def load(cls, plan: str, chunks: list[bytes], *, deltas: bool = True) -> Nothing:
        return cls(plan)

    @classmethod
    def rebuild(cls, plan: str, chunks: list[bytes], batches: Any, **options: Any) -> Nothing:
        engine = cls(plan)
        for changes in batches:
            engine.apply(changes)
        return engine

    def stats(self) -> dict[str, Any]:
        # As many rows alive as were ever seen, so that no state is rewritten.
        return {"stages": [{"rows": 1 << 60}], "tables": [], "bytes": 0, "counter_changes_per_update": 0.0}


class Given(Nothing):
    """An engine that hands out ready-made deltas, as many for each change as it is told."""

    def stream(self, changes: Any, **options: Any) -> pa.Table:
        wanted = round(sum(pa.table(data).num_rows for _, data in changes) * float(os.environ[_GIVEN]))
        whole, rest = divmod(wanted, self._block.num_rows)
        return pa.concat_tables([self._block] * whole + [self._block.slice(0, rest)])


def _block(columns: list[dict[str, Any]], bag: bool) -> pa.Table:
    """Rows in the form of the kernel's deltas."""
    numbers = pa.array(range(65_536), pa.int64())
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 65_536, pa.int8()), pa.array(["insert"]))
    table = pa.table({column["name"]: numbers for column in columns}).append_column("_change_type", words)
    return table.append_column("_multiplicity", numbers) if bag else table


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    builder = SparkSession.builder.master(f"local[{CELLS}]").appName("crown-overhead")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executorEnv.PYTHONPATH", path)
    builder = builder.config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
    spark = configure(builder.config("spark.driver.memory", "2g"), cells=CELLS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # The engines that stand in for Crown's are Python's; `spark_engines` compares with cells in
    # Spark's JVM.
    spark.conf.set(ENGINE, "python")
    return spark


@dataclass(frozen=True)
class Drained:
    """One run of a stream: its batches after those in which its workers start and its code is compiled."""

    rows_per_second: float
    updates: int  # changes as the cells see them: replicated ones count in each
    deltas: int
    cpu_seconds: dict[str, float]  # of the whole run, by kind of process


def drained(frame: DataFrame, directory: Path, files: str = "large", *, warm: int = 1) -> Drained:
    """A run over batches with as many changes each; the first `warm` of them are not timed."""
    parts = list((directory / files).iterdir())
    batch_rows = sum(pyarrow.parquet.read_metadata(part).num_rows for part in parts) * CELLS // len(parts)
    checkpoint = tempfile.mkdtemp(dir=directory)
    before = usage()
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    spent = used(before, usage())
    progress = [p for p in query.recentProgress if p.numInputRows]
    shutil.rmtree(checkpoint, ignore_errors=True)
    steady = progress[warm:]
    seconds = sum(p.durationMs["triggerExecution"] for p in steady) / 1000
    reports = [p.observedMetrics["crown"] for p in progress if "crown" in (p.observedMetrics or {})]
    return Drained(
        batch_rows * len(steady) / seconds,
        sum(report.updates for report in reports),
        sum(report.deltas for report in reports),
        {kind: round(seconds, 2) for kind, seconds in spent.items()},
    )


def fixed_cost(frame: DataFrame, directory: Path) -> float:
    """Milliseconds of a micro-batch with almost nothing in it, when all is warm."""
    checkpoint = tempfile.mkdtemp(dir=directory)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    times = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows][SMALL_BATCHES // 2 :]
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
    arguments.add_argument("--edges", type=int, default=500_000, help="of the generated graph")
    arguments.add_argument("--graph", help="an edge list, e.g. SNAP's Epinions; generated when not given")
    arguments.add_argument("--rows", type=int, default=1_000_000, help="changes in a micro-batch")
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--output", type=Path)
    arguments.add_argument("--part", choices=QUERIES, help=argparse.SUPPRESS)
    arguments.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.part is not None:
        part = _measure_part(options.directory, options.part, options.repeat)
        options.output.write_text(json.dumps(part))
        return
    result = measure(options.edges, options.graph, options.rows, options.repeat)
    text = json.dumps(result, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


def measure(edges: int, graph: str | None, batch_rows: int, repeat: int) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp(prefix="crown-overhead-"))
    data = Data(graph=graph, scale=edges / 500_000)
    rows = data.edges()
    window = round(0.2 * rows.num_rows + 0.5)
    rounds = pa.concat_tables([rows] * -(-(BATCHES * batch_rows + window) // (2 * rows.num_rows)))
    changes = streams.count_window({"G": rounds}, window, drain=False)["G"].drop_columns(["_sequence"])
    changes = changes.slice(0, BATCHES * batch_rows)
    write_files(changes, directory / "large", BATCHES)
    write_files(changes.slice(0, SMALL_BATCHES * SMALL_ROWS), directory / "small", SMALL_BATCHES)
    measures: dict[str, Any] = {}
    try:
        for query in QUERIES:
            found = _part(directory, query, repeat, {})
            streaming = found["streaming"]
            given = {_GIVEN: str(streaming["deltas"] / streaming["updates"])}
            measures.setdefault("crown", {})[query] = found
            for name, engine in (("nothing", "Nothing"), ("given", "Given")):
                environment = {"CROWN_SPARK_ENGINE": f"benchmarks.spark_overhead:{engine}", **given}
                measures.setdefault(name, {})[query] = _part(directory, query, repeat, environment)
        measures["recovery"] = {name: recovery(name, changes.slice(0, LOGGED)) for name in QUERIES}
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    described = {**data.describe(), "window": window, "changes": changes.num_rows, "rows in a batch": batch_rows}
    source = f"--graph {Path(graph).name}" if graph else f"--edges {edges}"
    command = f"python -m benchmarks.spark_overhead {source} --rows {batch_rows}"
    stamp = {"command": command, "machine": machine(), "data": described}
    return {**stamp, "measures": measures, "ratios": _ratios(measures)}


def write_files(edges: pa.Table, path: Path, batches: int) -> None:
    """As many files for each micro-batch as there are cores, as a source that is worth a cluster has."""
    path.mkdir(parents=True)
    step = -(-edges.num_rows // (batches * CELLS))
    for number in range(batches * CELLS):
        pyarrow.parquet.write_table(edges.slice(number * step, step), path / f"{number:03d}.parquet")
        os.utime(path / f"{number:03d}.parquet", (1_700_000_000 + number,) * 2)


def source(spark: SparkSession, path: Path) -> DataFrame:
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", CELLS).parquet(str(path))


def _files(spark: SparkSession, path: Path) -> DataFrame:
    return files(spark, str(path), COLUMNS, files_per_batch=CELLS)


def _part(directory: Path, query: str, repeat: int, environment: dict[str, str]) -> dict[str, Any]:
    """One query with one engine, in a separate process: a JVM and its host keep the environment they began with."""
    output = directory / "part.json"
    command = [sys.executable, "-m", "benchmarks.spark_overhead", "--part", query, "--repeat", str(repeat)]
    command += ["--directory", str(directory), "--output", str(output)]
    subprocess.run(command, env={**os.environ, **environment}, check=True)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def _measure_part(directory: Path, query: str, repeat: int) -> dict[str, Any]:
    """What is measured with an engine; with Crown's own also what is measured without any."""
    crown = "CROWN_SPARK_ENGINE" not in os.environ
    spark = session()
    try:
        found = _with_engine(spark, directory, query, repeat, crown=crown)
        return {**found, "plain": _plain(spark, directory, repeat)} if crown else found
    finally:
        spark.stop()


def _with_engine(spark: SparkSession, directory: Path, name: str, repeat: int, *, crown: bool) -> dict[str, Any]:
    sql = WORKLOADS[name].text()
    streaming = maintain(spark, sql, {"G": source(spark, directory / "large")}, cells=CELLS)
    by_file = maintain(spark, sql, {"G": _files(spark, directory / "large")}, cells=CELLS)
    small = maintain(spark, sql, {"G": source(spark, directory / "small")}, cells=CELLS)
    drained(streaming, directory)
    found: dict[str, Any] = {"micro_batch_ms": fixed_cost(small, directory)}
    found["streaming"] = asdict(drained(streaming, directory))
    drained(by_file, directory)
    found["files"] = asdict(drained(by_file, directory))
    if crown:
        bounded = spark.read.parquet(str(directory / "large"))
        seconds = [timed(lambda: run_batch(spark, sql, {"G": bounded}, cells=CELLS)) for _ in range(repeat + 1)]
        found["bounded_seconds"] = statistics.median(seconds[1:])
    return found


def _plain(spark: SparkSession, directory: Path, repeat: int) -> dict[str, Any]:
    bounded = spark.read.parquet(str(directory / "large"))
    shuffled = lambda: bounded.repartition(CELLS, "src").mapInArrow(identity, COLUMNS)  # noqa: E731
    pass_through = fixed_cost(source(spark, directory / "small"), directory)
    scans = [asdict(drained(source(spark, directory / "large"), directory)) for _ in range(repeat + 2)]
    return {
        "scan": sorted(scans[1:], key=lambda scan: float(scan["rows_per_second"]))[len(scans[1:]) // 2],
        "repartition_identity_seconds": statistics.median([timed(shuffled) for _ in range(repeat + 1)][1:]),
        "pass_through_micro_batch_ms": pass_through,
    }


def recovery(name: str, changes: pa.Table) -> float:
    """Rows rebuilt per second and cell from the log that the state holds, as the host does it."""
    plan = _plan(name)
    step = -(-changes.num_rows // 5)
    chunks: list[Any] = []
    for version in range(5):
        batches = changes.slice(version * step, step).combine_chunks().to_batches(max_chunksize=32_768)
        chunks += log_chunks(version + 1, [("G", write_blob([batch], changes.schema)) for batch in batches])
    started = time.monotonic()
    rebuild(plan, chunks, "raise")
    return float(changes.num_rows / (time.monotonic() - started))


def _plan(name: str) -> str:
    from crown.plan import plan, to_json
    from crown.sql import parse

    return to_json(plan(parse(WORKLOADS[name].text(), {"G": {"src": "int64", "dst": "int64"}})))


def _ratios(measures: dict[str, Any]) -> dict[str, dict[str, float]]:
    crown = measures["crown"]

    def speed(found: dict[str, Any]) -> float:
        return float(found["rows_per_second"])

    return {
        name: {
            "deltas per change": crown[name]["streaming"]["deltas"] / crown[name]["streaming"]["updates"],
            "streaming against an engine that does nothing": speed(crown[name]["streaming"])
            / speed(measures["nothing"][name]["streaming"]),
            "files against an engine that does nothing": speed(crown[name]["files"])
            / speed(measures["nothing"][name]["files"]),
            "streaming against ready-made deltas": speed(crown[name]["streaming"])
            / speed(measures["given"][name]["streaming"]),
            "streaming against a bare scan": speed(crown[name]["streaming"]) / speed(crown[name]["plain"]["scan"]),
            "files against a bare scan": speed(crown[name]["files"]) / speed(crown[name]["plain"]["scan"]),
            "bounded against repartition and identity": crown[name]["plain"]["repartition_identity_seconds"]
            / crown[name]["bounded_seconds"],
            "micro-batch against a pass-through": crown[name]["micro_batch_ms"]
            / crown[name]["plain"]["pass_through_micro_batch_ms"],
            "recovery, rows per second and cell": measures["recovery"][name],
        }
        for name in QUERIES
    }


if __name__ == "__main__":
    main()
