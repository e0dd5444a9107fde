"""Streams for tests: one parquet file of changes per table and batch, so that micro-batches are known."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from crown.spark import files
from tests.support.judge import Change, Judge, Row, split_delta

GRAPH = "CREATE TABLE g (src BIGINT, dst BIGINT)"
GRAPH_QUERIES = (
    "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
    "SELECT DISTINCT a.src, b.src AS mid, c.dst FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src",
    "SELECT a.src, COUNT(*) AS n, SUM(b.dst) AS total FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src",
    "SELECT COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src WHERE a.src < 6",
)


def random_changes(
    rng: random.Random, judge_tables: dict[str, Counter[Row]], size: int, *, values: int = 8
) -> list[Change]:
    """Inserts and deletes over tables of two integers; only rows that are there are deleted."""
    now = {table: Counter(rows) for table, rows in judge_tables.items()}
    changes = []
    for _ in range(size):
        table = rng.choice(sorted(now))
        present = sorted(now[table].elements())
        if present and rng.random() < 0.35:
            row = rng.choice(present)
            now[table][row] -= 1
            changes.append(Change(table, row, -1))
        else:
            row = (rng.randrange(values), rng.randrange(values))
            now[table][row] += 1
            changes.append(Change(table, row))
    return changes


def history_of(rng: random.Random, judge: Judge, batches: int, size: int = 12) -> list[list[Change]]:
    """Random batches that are valid one after the other (on a copy of the judge)."""
    scratch = Judge(judge.sql, judge.schema)
    history = []
    for _ in range(batches):
        changes = random_changes(rng, scratch.tables, size)
        scratch.apply(changes)
        history.append(changes)
    return history


class Feed:
    """Directories of change files, one per table of the judge."""

    def __init__(self, path: Path, judge: Judge) -> None:
        self.path = path
        self.judge = judge
        self.written = 0
        for table in judge.tables:
            (path / table).mkdir(parents=True)

    @staticmethod
    def at(path: Path, judge: Judge) -> Feed:
        """A feed that was written before."""
        feed = Feed.__new__(Feed)
        feed.path, feed.judge = path, judge
        feed.written = len(list((path / next(iter(judge.tables))).iterdir()))
        return feed

    def write(self, changes: Iterable[Change]) -> None:
        """One batch: a file for every table, perhaps without rows."""
        tables = self.judge.as_arrow(changes)
        for name in self.judge.tables:
            data = tables.get(name)
            if data is None:
                data = self.judge.as_arrow([Change(name, (None,) * len(self.judge._columns[name]))])[name].slice(0, 0)
            file = self.path / name / f"{self.written:06d}.parquet"
            early = self.path / name / f".{self.written:06d}.parquet"
            pyarrow.parquet.write_table(data.combine_chunks(), early)
            # Spark takes files in the order of their times.
            os.utime(early, (1_700_000_000 + self.written,) * 2)
            early.rename(file)
        self.written += 1

    def tables(self, spark: SparkSession, *, by_name: bool = False) -> dict[str, DataFrame]:
        return {name: stream(spark, self.path / name, by_name=by_name) for name in self.judge.tables}


def stream(spark: SparkSession, path: Path, *, by_name: bool = False) -> DataFrame:
    """A directory's changes, a file at a time: rows that Spark reads, or `by_name` files that Crown reads."""
    schema = from_arrow_schema(pyarrow.parquet.read_schema(min(path.glob("*.parquet"))))
    if by_name:
        return files(spark, str(path), schema, files_per_batch=1)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(path))


def collect_batches(
    deltas: DataFrame, checkpoint: Path, *, during: Callable[[int], None] = lambda batch: None
) -> dict[int, pa.Table]:
    """Run what is available and return the deltas by batch. `during` is called in each batch, before its commit."""
    batches: dict[int, pa.Table] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        batches[batch] = frame.toArrow()
        during(batch)

    writer = deltas.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    run_to_end(writer.trigger(availableNow=True))
    return batches


def run_to_end(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query and wait for it. Spark gives a Python worker 10 s to start; a busy machine may take longer."""
    for _ in range(5):
        query = writer.start()
        try:
            query.awaitTermination()
            return query
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
    raise AssertionError("Python workers don't start")


def check_batches(
    judge: Judge,
    history: Sequence[list[Change]],
    batches: dict[int, pa.Table],
    *,
    snapshots: Mapping[int, pa.Table] | None = None,
) -> None:
    """Every batch's delta must be exactly what DuckDB says, and the view after it where there is a snapshot."""
    assert sorted(batches) == list(range(len(history)))
    for number, changes in enumerate(history):
        judge.apply(changes)
        judge.check_delta(batches[number], where=f"batch {number}")
        if snapshots is not None and number in snapshots:
            judge.check_result(snapshots[number], where=f"snapshot of batch {number}")


def total(deltas: Iterable[pa.Table]) -> Counter[Row]:
    """The sum of deltas, and proof that none took away what was not there."""
    sum_: Counter[Row] = Counter()
    for delta in deltas:
        came, went = split_delta(delta)
        sum_.update(came)
        sum_.subtract(went)
    assert all(count >= 0 for count in sum_.values())
    return +sum_


@dataclass(frozen=True)
class Process:
    parent: int
    session: int
    command: str


def processes() -> dict[int, Process]:
    """The living processes of this machine."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if fields[0] not in "ZX":
                found[int(entry.name)] = Process(int(fields[1]), int(fields[3]), command)
    return found


def descendants(pid: int) -> dict[int, str]:
    """The living processes below `pid`, with their command lines."""
    living = processes()
    found: dict[int, str] = {}
    frontier = [pid]
    while frontier:
        above = frontier.pop()
        for child, process in living.items():
            if process.parent == above:
                found[child] = process.command
                frontier.append(child)
    return found


def ended(process: subprocess.Popen[Any]) -> bool:
    """Whether a process has ended.

    Unlike after `poll`, its number is still its own, so that `end` finds what it has left.
    """
    status = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return process.returncode is not None or os.waitid(os.P_PID, process.pid, status) is not None


def end(process: subprocess.Popen[Any]) -> int:
    """Kill a process with all below it and in its session; return its exit code.

    After it has been waited for, its number may be that of another process, and nothing is killed.
    """
    if process.returncode is None:
        below = [pid for pid, other in processes().items() if other.session == process.pid]
        for pid in {process.pid, *descendants(process.pid), *below}:
            kill(pid)
    return process.wait()


def ended_within(process: subprocess.Popen[Any], seconds: float) -> int:
    """Wait until a process ends by itself, and end what it has left; return its exit code."""
    if not wait_until(lambda: ended(process), seconds=seconds):
        end(process)
        raise AssertionError(f"still running after {seconds} s")
    return end(process)


def hosts_of(jvm: int) -> list[int]:
    """Engine hosts of an executor. They are sessions of their own, so they are found by what they watch."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "crown.spark.host" in command and f"\0{jvm}-" in command:
                found.append(int(entry.name))
    return found


def java_below(pid: int) -> list[int]:
    return [child for child, command in descendants(pid).items() if command.split(" ")[0].endswith("java")]


def python_workers(jvm: int) -> list[int]:
    """Workers that Spark forked from its daemon."""
    below = descendants(jvm)
    daemons = [pid for pid, command in below.items() if "pyspark.daemon" in command]
    return [pid for daemon in daemons for pid, command in descendants(daemon).items() if "pyspark.daemon" in command]


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Any, *, seconds: float = 120.0) -> bool:
    """Wait for something that must happen; the limit is only there to end a broken test."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())
