"""What is special about cells inside Spark's JVM. Tests with the fixture `engine` run on them and on Python workers."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from crown.errors import PlanError
from crown.spark import maintain, rejected, snapshot
from crown.spark.failure import crown_error
from crown.spark.flow.jvm import JvmFlow
from crown.spark.required import ENGINE, MEMORY
from crown.spark.settings import JAR
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, check_batches, collect_batches, history_of, wait_until
from tests.support.judge import Change, Judge

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAR.exists(), reason="there is no jar: install a JDK and run make setup"),
]

THREE_HOP = "SELECT a.src, b.src AS s, c.src AS t, c.dst FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src"


def test_an_attempt_that_was_not_committed_leaves_no_trace(
    spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path
) -> None:
    """The sink fails after the cells wrote their state: the batch runs again from the one that was committed."""
    judge = Judge(THREE_HOP, GRAPH)
    history = history_of(rng, judge, 3)
    feed = Feed(tmp_path / "in", judge)
    feed.write(history[0])
    batches = collect_batches(maintain(spark, judge.sql, feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    for changes in history[1:]:
        feed.write(changes)

    def fail(batch: int) -> None:
        raise RuntimeError("the sink is down")

    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    with pytest.raises(StreamingQueryException, match="the sink is down"):
        collect_batches(deltas, tmp_path / "checkpoint", during=fail)
    batches |= collect_batches(deltas, tmp_path / "checkpoint")
    check_batches(judge, history, batches)


def test_values_of_all_types_come_through_as_they_are(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    types = {
        "INT": ("1", "2"),
        "BOOLEAN": ("true", "false"),
        "TINYINT": ("1", "-128"),
        "SMALLINT": ("-2", "32767"),
        "BIGINT": ("3", "-9223372036854775808"),
        "FLOAT": ("1.5", "NaN"),
        "DOUBLE": ("-2.5", "-Infinity"),
        "DECIMAL(12,2)": ("12.34", "-0.01"),
        "DECIMAL(38,10)": ("-1234567890123456789012345678.0123456789", "0"),
        "STRING": ("ĝis 🦀", ""),
        "BINARY": ("octets", ""),
        "DATE": ("1582-10-04", "9999-12-31"),
        "TIMESTAMP": ("1900-01-01 00:00:00.000001+01:00", "2026-03-29 02:30:00Z"),
        "TIMESTAMP_NTZ": ("1969-12-31 23:59:59.999999", "0001-01-01 00:00:00"),
    }
    schema = ", ".join(f"c{place} {type_}" for place, type_ in enumerate(types))
    rows = [f"({', '.join(repr(values[row]) for values in types.values())})" for row in (0, 1)]
    rows.append(f"('3'{', NULL' * (len(types) - 1)})")
    values = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)}")
    columns = [f"CAST(col{place + 1} AS {type_}) AS c{place}" for place, type_ in enumerate(types)]
    values.selectExpr(*columns).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    sql = "SELECT a.* FROM t a JOIN t b ON a.c0 = b.c0"
    (delta,) = collect_batches(maintain(spark, sql, {"t": stream}, cells=cells), tmp_path / "checkpoint").values()
    wanted = spark.read.schema(schema).parquet(str(tmp_path / "in")).toArrow()
    assert delta.column_names[: wanted.num_columns] == wanted.column_names
    # As text, since NaN equals nothing.
    assert str(delta.select(wanted.column_names).sort_by("c0").to_pylist()) == str(wanted.sort_by("c0").to_pylist())


def test_a_change_that_does_not_fit_fails_the_batch_in_crowns_words(
    spark: SparkSession, cells: int, tmp_path: Path
) -> None:
    judge = Judge(THREE_HOP, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2)), Change("g", (7, 7), -1)])
    with pytest.raises(StreamingQueryException) as failure:
        collect_batches(maintain(spark, judge.sql, feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    error = crown_error(str(failure.value))
    assert error.code == "CROWN-CHANGE-ABSENT"
    assert "(cells): table 'g'" in str(error) and "do:  check the row" in str(error)


def test_quarantine_sets_changes_aside_with_their_place(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = ['{"src": 1, "dst": 2, "_change_type": "insert"}', '{"src": 2, "dst": 3, "_change_type": "insert"}']
    lines += ['{"src": 9, "dst": 9, "_change_type": "delete"}', '{"src": 4, "dst": 4, "_change_type": "upend"}']
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    stream = spark.readStream.schema("src BIGINT, dst BIGINT, _change_type STRING").json(str(tmp_path / "in"))
    side = str(tmp_path / "rejects")
    deltas = maintain(spark, GRAPH_QUERIES[0], {"g": stream}, cells=cells, on_invalid="quarantine", rejects=side)
    (delta,) = collect_batches(deltas, tmp_path / "checkpoint").values()
    assert [(row["src"], row["dst"]) for row in delta.to_pylist()] == [(1, 3)]
    found = {(row.table, row.partition, row.position) for row in rejected(spark, side).collect()}
    assert found == {("g", 0, 2), ("g", 0, 3)}
    reasons = " ".join(row.reason for row in rejected(spark, side).collect())
    assert "CROWN-CHANGE-ABSENT" in reasons and "_change_type must be one of insert" in reasons


def test_nothing_native_outlives_its_query(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """Neither of queries that end nor of those that fail in the middle of a batch."""
    flow = JvmFlow.of(spark)

    def alive() -> tuple[int, int]:
        engines, handles, _ = flow.alive()
        return engines, handles

    assert wait_until(lambda: alive() == (0, 0)), alive()
    held = []
    for number in range(3):
        judge = Judge(THREE_HOP, GRAPH)
        feed = Feed(tmp_path / str(number), judge)
        feed.write([Change("g", (i, i + 1)) for i in range(2000)])
        feed.write([Change("g", (7, 7), -1 if number == 1 else 1)])
        during = [0]

        def look(batch: int, during: list[int] = during) -> None:
            during[0] = max(during[0], alive()[0])

        deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
        try:
            collect_batches(deltas, tmp_path / f"checkpoint-{number}", during=look)
            assert number != 1
        except StreamingQueryException:
            assert number == 1
        assert during == [cells], "the engines wait for their next batch"
        assert wait_until(lambda: alive() == (0, 0)), alive()
        held.append(flow.alive()[2])
    assert held[2] - held[0] < 1 << 16, held


def test_engines_are_bounded_by_a_setting(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    judge = Judge(THREE_HOP, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    spark.conf.set(MEMORY, "1")
    try:
        deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    finally:
        spark.conf.unset(MEMORY)
    with pytest.raises(StreamingQueryException) as failure:
        collect_batches(deltas, tmp_path / "checkpoint")
    assert crown_error(str(failure.value)).code == "CROWN-JVM-MEMORY"


@pytest.mark.parametrize("cells", [1], indirect=True)
def test_a_batch_whose_engine_would_be_too_large_is_not_committed(
    spark: SparkSession, cells: int, tmp_path: Path
) -> None:
    """Before the batch there is room. With more memory, the stream continues from the same checkpoint."""
    flow = JvmFlow.of(spark)
    assert wait_until(lambda: flow.alive()[:2] == (0, 0)), flow.alive()
    judge = Judge(THREE_HOP, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (7, 7))])
    feed.write([Change("g", (i, i + 1)) for i in range(20_000)])
    spark.conf.set(MEMORY, str(flow.alive()[2] + (1 << 20)))
    try:
        deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    finally:
        spark.conf.unset(MEMORY)
    done: list[int] = []
    with pytest.raises(StreamingQueryException) as failure:
        collect_batches(deltas, tmp_path / "checkpoint", during=done.append)
    assert crown_error(str(failure.value)).code == "CROWN-JVM-MEMORY"
    assert done == [0]
    assert wait_until(lambda: flow.alive()[:2] == (0, 0)), flow.alive()
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    collect_batches(deltas, tmp_path / "checkpoint", during=done.append)
    assert done == [0, 1]


@pytest.mark.parametrize(
    "order", [pytest.param(("python", "jvm", "python"), marks=pytest.mark.slow), ("jvm", "python", "jvm")]
)
def test_a_checkpoint_is_continued_by_the_other_engine(
    spark: SparkSession, cells: int, order: tuple[str, ...], rng: random.Random, tmp_path: Path
) -> None:
    """State of two operators, of a window and of changes that were set aside; the stream starts as if nothing were."""
    sql = "SELECT a.src, COUNT(*) AS n FROM g a JOIN w ON a.dst = w.src GROUP BY a.src"
    judge = Judge(sql, GRAPH + "; CREATE TABLE w (src BIGINT, dst BIGINT)")
    feed = Feed(tmp_path / "in", judge)
    arrived: list[tuple[int, int]] = []
    for number, engine in enumerate(order):
        new = [(rng.randrange(5), rng.randrange(9)) for _ in range(4)]
        changes = [Change("g", (rng.randrange(9), rng.randrange(5))) for _ in range(9)]
        changes += [Change("w", row) for row in new]
        arrived += new
        gone, arrived = arrived[: max(0, len(arrived) - 6)], arrived[-6:]
        feed.write([*changes, Change("g", (77, 77), -1)])
        judge.apply([*changes, *(Change("w", row, -1) for row in gone)])
        spark.conf.set(ENGINE, engine)
        try:
            deltas = maintain(
                spark,
                sql,
                feed.tables(spark),
                cells=cells,
                windows={"w": {"rows": 6}},
                on_invalid="quarantine",
                rejects=str(tmp_path / "rejects"),
            )
            (delta,) = collect_batches(deltas, tmp_path / "checkpoint").values()
        finally:
            spark.conf.unset(ENGINE)
        judge.check_delta(delta, where=f"batch {number}, {engine}")
    judge.check_result(snapshot(spark, str(tmp_path / "checkpoint")).toArrow(), where="snapshot")
    assert rejected(spark, str(tmp_path / "rejects")).count() == len(order)


def test_one_stream_has_one_engine(
    spark: SparkSession, cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    inner = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    spark.conf.set(ENGINE, "python")
    try:
        outer = maintain(spark, "SELECT src FROM v", {"v": inner}, cells=cells)
        with pytest.raises(PlanError, match=ENGINE):
            collect_batches(outer, tmp_path / "checkpoint")
        spark.conf.set(ENGINE, "perl")
        with pytest.raises(PlanError, match="perl"):
            maintain(spark, judge.sql, feed.tables(spark), cells=cells)
        spark.conf.set(ENGINE, "jvm")
        monkeypatch.setattr("crown.spark.flow.jvm.JAR", tmp_path / "none.jar")
        with pytest.raises(PlanError, match="CROWN-JVM-UNAVAILABLE"):
            maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    finally:
        spark.conf.unset(ENGINE)


LATE = """
import sys
from pyspark.sql import SparkSession
from crown.spark import maintain, snapshot
from crown.spark.flow.jvm import JvmFlow
from crown.spark.required import recommended

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name, value in recommended(2).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
base = sys.argv[1]
stream = spark.readStream.schema("src BIGINT, dst BIGINT, _change_type STRING").json(base + "/in")
for line in ('{"src": 1, "dst": 1, "_change_type": "insert"}', '{"src": 9, "dst": 9, "_change_type": "delete"}'):
    with open(f"{base}/in/{len(line)}{line[8]}.json", "w") as file:
        file.write(line)
    deltas = maintain(spark, "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src", {"g": stream}, cells=2)
    writer = deltas.writeStream.format("noop").option("checkpointLocation", base + "/checkpoint")
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
        print("engines:", JvmFlow.of(spark).alive()[0] >= 0)
    except Exception as error:
        print("failed:", "[CROWN-CHANGE-ABSENT]" in str(error))
operators = spark.read.format("state-metadata").load(base + "/checkpoint")
print("operators:", {row.operatorName for row in operators.collect()})
spark.stop()
"""


def test_a_session_gets_the_jar_when_it_is_needed(tmp_path: Path) -> None:
    """One that was started without it, and whose class path so never has Crown's classes."""
    (tmp_path / "in").mkdir()
    result = subprocess.run([sys.executable, "-c", LATE, str(tmp_path)], capture_output=True, text=True)
    found = result.stdout.splitlines()
    assert found == ["engines: True", "failed: True", "operators: {'transformWithStateExec'}"], result.stderr


def living(spark: SparkSession) -> tuple[int, int, int]:
    return JvmFlow.of(spark).alive()


@pytest.mark.slow
def test_no_memory_is_lost_over_a_thousand_batches(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """As many rows come as go: what the kernel holds after a thousand batches it held after the first hundred."""
    judge = Judge(THREE_HOP, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (i % 50, (i * 7) % 50)) for i in range(2000)])
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    held: list[int] = []

    def look(batch: int) -> None:
        row = (batch // 2 % 50, batch // 2 * 3 % 50)
        feed.write([Change("g", row, -1 if batch % 2 else 1)])
        if batch % 100 == 99:
            engines, handles, bytes_ = living(spark)
            assert (engines, handles) == (cells, cells)
            held.append(bytes_)

    writer = deltas.writeStream.foreachBatch(lambda frame, batch: look(batch) if frame.count() >= 0 else None)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert wait_until(lambda: not query.isActive or len(held) == 10, seconds=3600)
        assert query.isActive, query.exception()
    finally:
        query.stop()
    assert held[-1] - held[0] < 1 << 20, held
    assert wait_until(lambda: living(spark)[:2] == (0, 0)), living(spark)


@pytest.mark.slow
def test_no_memory_is_lost_over_a_hundred_queries(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """Some of them stopped, some failed by a change that does not fit, all on the checkpoint of the one before."""
    judge = Judge(THREE_HOP, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (i % 50, (i * 7) % 50)) for i in range(2000)])
    held = []
    for number in range(100):
        deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
        if number % 5 == 4:
            bad = Feed(tmp_path / f"bad-{number}", judge)
            bad.write([Change("g", (1, 2)), Change("g", (777, 777), -1)])
            deltas = maintain(spark, judge.sql, bad.tables(spark), cells=cells)
            with pytest.raises(StreamingQueryException, match="CROWN-CHANGE-ABSENT"):
                collect_batches(deltas, tmp_path / f"checkpoint-{number}")
        else:
            feed.write([Change("g", (number, number))])
            collect_batches(deltas, tmp_path / "checkpoint")
        assert wait_until(lambda: living(spark)[:2] == (0, 0)), living(spark)
        held.append(living(spark)[2])
    assert held[-1] - held[9] < 1 << 16, held


def test_an_installation_without_the_jar_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crown.spark.flow.jvm.JAR", tmp_path / "missing.jar")
    table = spark.readStream.format("rate").load()
    before = spark.conf.get(ENGINE, None)
    spark.conf.set(ENGINE, "jvm")
    try:
        with pytest.raises(PlanError, match="CROWN-JVM-UNAVAILABLE") as failure:
            maintain(spark, "SELECT value FROM r", {"r": table}, cells=2)
        assert "missing.jar" in str(failure.value)
    finally:
        spark.conf.unset(ENGINE)
        if before is not None:
            spark.conf.set(ENGINE, before)
