"""Kill what can be killed, at random points of random batches: nothing is missing, nothing twice, nothing left behind.

Each seed draws the query, the stream, whom to kill and when. The judge is DuckDB over all changes; the sink is Spark's
own exactly-once parquet sink, so its content is the sum of all committed deltas.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from crown.spark import maintain, snapshot
from crown.spark.flow.jvm import JvmFlow
from crown.spark.required import ENGINE
from crown.spark.settings import JAR
from tests.conftest import SEED
from tests.spark.streams import (
    GRAPH,
    GRAPH_QUERIES,
    Feed,
    descendants,
    end,
    ended,
    ended_within,
    hosts_of,
    java_below,
    kill,
    python_workers,
    random_changes,
    run_to_end,
    stream,
    wait_until,
)
from tests.support.judge import Judge, split_delta

pytestmark = pytest.mark.spark

# Few in the default run, which is to be short; the long one strikes twice.
BATCHES = {1: 3, 2: 5}
LIMIT_SECONDS = 900  # only there to end a broken test; a busy machine may take minutes


def prepare(rng: random.Random, directory: Path, batches: int = 3) -> Judge:
    judge = Judge(rng.choice(GRAPH_QUERIES), GRAPH)
    feed = Feed(directory / "in", judge)
    for _ in range(batches):
        changes = random_changes(rng, judge.tables, 30)
        feed.write(changes)
        judge.apply(changes)
    return judge


def check(spark: SparkSession, judge: Judge, directory: Path) -> None:
    """The sum of all deltas that the sink committed, and the state, are what DuckDB answers."""
    came, went = split_delta(spark.read.parquet(str(directory / "out")).toArrow())
    came.subtract(went)
    assert all(count >= 0 for count in came.values())
    assert +came == judge.result
    judge.check_result(snapshot(spark, str(directory / "checkpoint")).toArrow(), where="snapshot")


def strike(
    rng: random.Random,
    find: Callable[[], list[int]],
    directory: Path,
    stop: threading.Event,
    struck: list[int],
    kills: int,
) -> None:
    """Kill one of what `find` finds in some random batches, at a random moment of each."""
    for batch in sorted(rng.sample(range(BATCHES[kills]), kills)):
        planned = directory / "checkpoint" / "offsets" / str(batch)
        wait_until(lambda: stop.is_set() or planned.exists())  # noqa: B023 (called before the loop goes on)
        if stop.wait(rng.uniform(0, 1)):
            return
        found = find()
        if found and kill(rng.choice(found)):
            struck.append(batch)


def in_session(spark: SparkSession, rng: random.Random, directory: Path, victim: str, kills: int) -> None:
    """Kill workers or the host of the tests' own session; Spark retries the tasks. Repeated if it was too fast."""
    for attempt in range(10):
        judge, struck = struck_run(spark, rng, directory / str(attempt), victim, kills)
        check(spark, judge, directory / str(attempt))
        if struck:
            return
    pytest.fail("nothing was killed")


def struck_run(
    spark: SparkSession, rng: random.Random, directory: Path, victim: str, kills: int
) -> tuple[Judge, list[int]]:
    judge = prepare(rng, directory, BATCHES[kills])
    jvm = java_below(os.getpid())[0]
    find = (lambda: python_workers(jvm)) if victim == "worker" else (lambda: hosts_of(jvm))
    struck: list[int] = []
    for _ in range(20):
        stop = threading.Event()
        deltas = maintain(spark, judge.sql, {"g": stream(spark, directory / "in" / "g", by_name=True)}, cells=2)
        writer = deltas.writeStream.format("parquet").option("path", str(directory / "out"))
        query = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
        striker = threading.Thread(target=strike, args=(rng, find, directory, stop, struck, kills))
        striker.start()
        try:
            query.awaitTermination()
            ended = True
        except Exception:  # a task that failed four times ends the query; a user starts it again
            ended = False
        finally:
            stop.set()
            striker.join()
        if ended:
            break
    assert ended
    return judge, struck


def application(directory: Path, sql: str, master: str, *options: str, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.faulty_driver", master, str(directory), sql, "2", *options],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(directory), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def wait_for_batch(process: subprocess.Popen[str], directory: Path, batch: int) -> None:
    """Until the application plans a batch, or ends."""
    planned = directory / "checkpoint" / "offsets" / str(batch)
    wait_until(lambda: ended(process) or planned.exists())


def killed_application(
    spark: SparkSession, rng: random.Random, directory: Path, victim: str, kills: int, engine: str = "jvm"
) -> None:
    """Kill the driver, or executors of a small cluster, of an application; start it again until it is done."""
    judge = prepare(rng, directory, BATCHES[kills])
    master = "local[2]" if victim == "driver" else "local-cluster[2,1,512]"
    struck = 0
    for _ in range(10):
        process = application(directory, judge.sql, master, f"{ENGINE}={engine}")
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            if struck < kills:
                wait_for_batch(process, directory, rng.randrange(1, BATCHES[kills]))
                time.sleep(rng.uniform(0, 1.5))
                if victim == "driver":
                    below = java_below(process.pid)
                    # The driver is the JVM; Python and the executors' daemons then end by
                    # themselves.
                    struck += sum(kill(pid) for pid in below[:1])
                else:
                    executors = [p for p, c in descendants(process.pid).items() if "CoarseGrainedExecutor" in c]
                    struck += sum(kill(pid) for pid in executors[:1])
            assert wait_until(lambda: ended(process), seconds=LIMIT_SECONDS)  # noqa: B023
        finally:
            hosts = [pid for jvm in [*java_below(process.pid)] for pid in hosts_of(jvm)]
            end(process)
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert struck, "nothing was killed"
    assert wait_until(lambda: not [pid for pid in hosts if Path(f"/proc/{pid}").exists()])
    base = directory / f"crown-{os.getuid()}"
    assert wait_until(lambda: not base.exists() or not list(base.iterdir())), list(base.iterdir())
    check(spark, judge, directory)


@pytest.mark.usefixtures("python_engine")
@pytest.mark.parametrize("number, victim", [pytest.param(0, "worker", marks=pytest.mark.slow), (1, "host")])
def test_killing_workers_loses_and_repeats_nothing(
    spark: SparkSession, cells: int, number: int, victim: str, tmp_path: Path
) -> None:
    in_session(spark, random.Random(f"{SEED}:{number}"), tmp_path, victim, kills=1)


@pytest.mark.parametrize("victim", [pytest.param("driver", marks=pytest.mark.slow), "executor"])
def test_killing_jvms_loses_and_repeats_nothing(spark: SparkSession, cells: int, victim: str, tmp_path: Path) -> None:
    """With the engines in them. `test_killed_sinks` kills drivers in the default run."""
    engine = "jvm" if JAR.exists() else "python"
    killed_application(spark, random.Random(f"{SEED}:{victim}"), tmp_path, victim, 1, engine)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(50))
def test_killing_for_long(spark: SparkSession, cells: int, engine: str, number: int, tmp_path: Path) -> None:
    rng = random.Random(f"{SEED}:long:{engine}:{number}")
    victims = ["driver", "executor"] + (["worker", "host"] * 2 if engine == "python" else [])
    victim = rng.choice(victims)
    if victim in ("worker", "host"):
        in_session(spark, rng, tmp_path, victim, kills=2)
    else:
        killed_application(spark, rng, tmp_path, victim, 2, engine)


def failing_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fail the first attempt of every task: some before its deltas are read, some in the middle, some after all."""
    context = TaskContext.get()
    assert context is not None
    number = int(context.getLocalProperty("streaming.sql.batchId") or 0)
    fatal = (number + context.partitionId()) % 3 if context.attemptNumber() == 0 else -1
    if fatal == 0:
        raise RuntimeError("before the deltas")
    for batch in batches:
        yield batch
        if fatal == 1:
            raise RuntimeError("in the middle")
    if fatal == 2:
        raise RuntimeError("after the deltas")


def test_tasks_that_fail_and_are_retried(
    spark: SparkSession, cells: int, engine: str, rng: random.Random, tmp_path: Path
) -> None:
    """Every batch, in both cells; the engine of a failed attempt is never gone on with."""
    judge = prepare(rng, tmp_path, 4)
    deltas = maintain(spark, judge.sql, {"g": stream(spark, tmp_path / "in" / "g")}, cells=cells)
    writer = deltas.mapInArrow(failing_once, deltas.schema).writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_end(writer.trigger(availableNow=True))
    check(spark, judge, tmp_path)


@pytest.mark.slow
def test_speculation_and_a_slow_cell(
    spark: SparkSession, cells: int, engine: str, rng: random.Random, tmp_path: Path
) -> None:
    """One task is slow, so Spark runs second attempts of its cell elsewhere."""
    judge = prepare(rng, tmp_path)
    process = application(
        tmp_path,
        judge.sql,
        "local-cluster[2,1,512]",
        f"{ENGINE}={engine}",
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.multiplier=1.1",
        "spark.speculation.quantile=0.4",
        "spark.speculation.minTaskRuntime=200ms",
        STRAGGLE="1",
    )
    assert ended_within(process, LIMIT_SECONDS) == 0
    check(spark, judge, tmp_path)


def living(spark: SparkSession, engine: str, jvm: int) -> list[int]:
    """What holds the engines: hosts, or how many there are in the JVM."""
    return hosts_of(jvm) if engine == "python" else [JvmFlow.of(spark).alive()[0]]


@pytest.mark.slow
def test_an_idle_stream_keeps_its_engines(
    spark: SparkSession, cells: int, engine: str, rng: random.Random, tmp_path: Path
) -> None:
    """Spark closes idle Python workers after 60 s; the engines are not in them."""
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    jvm = java_below(os.getpid())[0]
    first = random_changes(rng, judge.tables, 200)  # so many that each cell has rows, and so an engine
    feed.write(first)
    judge.apply(first)
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    writer = deltas.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        before = living(spark, engine, jvm)
        time.sleep(75)
        second = random_changes(rng, judge.tables, 20)
        feed.write(second)
        judge.apply(second)
        query.processAllAvailable()
        assert before and living(spark, engine, jvm) == before
    finally:
        query.stop()
    check(spark, judge, tmp_path)
