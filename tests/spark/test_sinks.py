"""Targets kept equal to the view: a versioned parquet table, and a real PostgreSQL server."""

from __future__ import annotations

import datetime
import json
import os
import random
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from crown.errors import CrownError, InvalidChange, StateError
from crown.spark import maintain, materialize, read_materialized, to_kafka
from crown.spark.sinks import postgres as postgres_sink
from crown.spark.sinks.copying import encoder
from crown.spark.sinks.parquet import ParquetTarget
from crown.spark.sinks.postgres import PostgresTarget
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, random_changes, run_to_end
from tests.support.judge import Change, Judge, multiset

pytestmark = pytest.mark.spark

DELTA = "a BIGINT, b STRING, _change_type STRING, _multiplicity BIGINT"


def schema_of(ddl: str) -> StructType:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema


def stream_at(path: Path) -> str:
    """A checkpoint of a stream that has started but has done nothing."""
    path.mkdir(parents=True)
    (path / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    return str(path)


def stored(connection: str, table: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(connection) as opened:
        return opened.execute(f"SELECT * FROM {table}").fetchall()


def execute(connection: str, text: str) -> None:
    import psycopg

    with psycopg.connect(connection, autocommit=True) as opened:
        opened.execute(text)


def test_parquet_table_by_version(spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    results = []
    for _ in range(3):
        changes = random_changes(rng, judge.tables, 20)
        feed.write(changes)
        judge.apply(changes)
        results.append(judge.result)
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells, batch=True)
    writer = materialize(deltas, checkpoint=str(tmp_path / "checkpoint"), parquet=str(tmp_path / "table"))
    run_to_end(writer.trigger(availableNow=True))
    for version, expected in enumerate(results):
        read = read_materialized(spark, str(tmp_path / "table"), version=version)
        assert multiset(map(tuple, read.collect())) == expected
    with pytest.raises(StateError, match="versions 0 to 2") as missing:
        read_materialized(spark, str(tmp_path / "table"), version=9)
    assert missing.value.code == "CROWN-SINK-VERSION"


def test_a_parquet_table_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="CROWN-SINK-EMPTY"):
        read_materialized(spark, str(tmp_path / "table"))
    target = ParquetTarget(str(tmp_path / "table"), schema_of(DELTA), stream_at(tmp_path / "checkpoint"))
    target.apply(spark.createDataFrame([(1, "x", "delete", 2)], DELTA), 0)
    with pytest.raises(Exception, match="CROWN-SINK-CORRUPT"):
        read_materialized(spark, str(tmp_path / "table")).collect()


def test_targets_are_named(spark: SparkSession, tmp_path: Path) -> None:
    deltas = spark.createDataFrame([], DELTA)
    for parquet, postgres in ((None, None), ("p", "x"), (None, "x")):
        with pytest.raises(CrownError, match="CROWN-SINK-TARGET"):
            materialize(deltas, checkpoint=str(tmp_path), parquet=parquet, postgres=postgres)
    with pytest.raises(CrownError, match="CROWN-SINK-KEY"):
        to_kafka(deltas, checkpoint=str(tmp_path), key=["other"])
    with pytest.raises(CrownError, match="no topic"):
        to_kafka(deltas, checkpoint=str(tmp_path), servers="localhost:9092")


def test_parquet_repeats_and_rewrites(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crown.spark.sinks.parquet._FEW_ROWS", 2)
    table = tmp_path / "table"
    target = ParquetTarget(str(table), schema_of(DELTA), stream_at(tmp_path / "checkpoint"))
    for batch, rows in enumerate([[(1, "x", "insert", 2), (2, None, "insert", 1)], [(1, "x", "delete", 2)], []]):
        target.apply(spark.createDataFrame(rows, DELTA), batch)
        before = {file: file.stat().st_mtime_ns for file in table.rglob("*") if file.is_file()}
        # Spark repeats a batch that it could not note as done. Its version may be being read:
        # nothing is touched.
        target.apply(spark.createDataFrame(rows, DELTA), batch)
        assert {file: file.stat().st_mtime_ns for file in table.rglob("*") if file.is_file()} == before
    assert read_materialized(spark, str(table)).collect() == [(2, None)]
    assert len(read_materialized(spark, str(table), version=0).collect()) == 3
    assert list(table.glob("whole-*"))


def test_a_large_parquet_table_is_not_written_again_with_each_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crown.spark.sinks.parquet._FEW_ROWS", 2)
    table = tmp_path / "table"
    target = ParquetTarget(str(table), schema_of(DELTA), stream_at(tmp_path / "checkpoint"))
    for batch in range(4):
        target.apply(spark.createDataFrame([(3 * batch + i, "x", "insert", 1) for i in range(3)], DELTA), batch)
    assert not list(table.glob("whole-*")), "nothing was deleted, so a whole table would save nothing"
    assert read_materialized(spark, str(table)).count() == 12


def test_damaged_notes_are_named(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "table", stream_at(tmp_path / "checkpoint")
    target = ParquetTarget(str(table), schema_of(DELTA), checkpoint)
    target.apply(spark.createDataFrame([(1, "x", "insert", 1)], DELTA), 0)
    (version,) = (table / "_versions").glob("*/*.json")
    (version.parent / "notes.txt").write_text("of somebody else")
    for file in (version, table / "_versions" / "current.json"):
        whole = file.read_bytes()
        for damage in (b"", whole[:9], b"[]", b"{}"):
            file.write_bytes(damage)
            with pytest.raises(StateError, match="CROWN-SINK-CORRUPT"):
                read_materialized(spark, str(table))
        file.write_bytes(whole)
    assert read_materialized(spark, str(table)).collect() == [(1, "x")]
    for damage in (b"", b"{}", b"[]"):
        Path(checkpoint, "metadata").write_bytes(damage)
        with pytest.raises(StateError, match="CROWN-STATE-CORRUPT"):
            target.check(spark)


def test_a_target_is_one_streams(
    spark: SparkSession, cells: int, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new checkpoint on an old target, a target on an old checkpoint, and what replaces a target."""
    sql = "SELECT a.src FROM g a"
    first, second = (Judge(sql, GRAPH) for _ in range(2))
    for name, judge, rows in (("one", first, [(3, 3)]), ("two", second, [(10, 1), (20, 1)])):
        Feed(tmp_path / name, judge).write([Change("g", row) for row in rows])
    frames = {
        name: maintain(spark, sql, Feed.at(tmp_path / name, judge).tables(spark), cells=cells)
        for name, judge in (("one", first), ("two", second))
    }
    targets: list[dict[str, str]] = [{"parquet": str(tmp_path / "table")}, {"postgres": postgres, "table": "owned"}]

    def content(target: dict[str, str]) -> list[tuple[Any, ...]]:
        if "parquet" in target:
            return sorted(map(tuple, read_materialized(spark, target["parquet"]).collect()))
        return sorted(stored(postgres, "owned"))

    def run(name: str, checkpoint: str, target: dict[str, Any]) -> None:
        place = str(tmp_path / (checkpoint + ("-p" if "parquet" in target else "")))
        run_to_end(materialize(frames[name], checkpoint=place, **target).trigger(availableNow=True))

    for target in targets:
        run("one", "c1", target)
        assert content(target) == [(3,)]
        with pytest.raises(StateError, match=r"CROWN-SINK-OTHER[\s\S]*overwrite=True"):
            run("two", "c2", target)
        assert content(target) == [(3,)]
        run("two", "c2", {**target, "overwrite": True})
        assert content(target) == [(10,), (20,)]
        run("two", "c2", {**target, "overwrite": True})  # its own by now: goes on
        assert content(target) == [(10,), (20,)]
        with pytest.raises(StateError, match="CROWN-SINK-OTHER"):
            run("one", "c1", {**target, "overwrite": True})  # has gone on elsewhere; its first batches are not there
        fresh = {"parquet": str(tmp_path / "other")} if "parquet" in target else {**target, "table": "other"}
        with pytest.raises(StateError, match="CROWN-SINK-BEHIND"):
            run("one", "c1", fresh)


def test_postgres_follows_the_view(
    spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path, postgres: str
) -> None:
    judge = Judge(GRAPH_QUERIES[2], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    for _ in range(3):
        changes = random_changes(rng, judge.tables, 20)
        feed.write(changes)
        judge.apply(changes)
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    writer = materialize(deltas, checkpoint=str(tmp_path / "checkpoint"), postgres=postgres, table="hops")
    run_to_end(writer.trigger(availableNow=True))
    assert multiset(stored(postgres, "hops")) == judge.result


def test_postgres_takes_each_batch_once(spark: SparkSession, tmp_path: Path, postgres: str) -> None:
    first = spark.createDataFrame([(1, "x", "insert", 3), (2, None, "insert", 1)], DELTA)
    target = PostgresTarget(postgres, "twice", first.schema, stream_at(tmp_path / "checkpoint"))
    second = spark.createDataFrame([(1, "x", "delete", 2), (2, None, "delete", 1)], DELTA)
    for batch, frame in enumerate([first, second]):
        target.apply(frame, batch)
        target.apply(frame, batch)
    assert stored(postgres, "twice") == [(1, "x")]
    for batch, code in ((0, "CROWN-SINK-AHEAD"), (3, "CROWN-SINK-BEHIND")):
        with pytest.raises(StateError, match=code):
            target.apply(first, batch)
    execute(postgres, "DELETE FROM twice")
    with pytest.raises(StateError, match="CROWN-SINK-CHANGED"):
        target.apply(spark.createDataFrame([(1, "x", "delete", 1)], DELTA), 2)


def test_postgres_survives_lost_connections(
    spark: SparkSession, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the connection in the middle, and once after the commit, before the driver hears of it."""
    import psycopg

    monkeypatch.setattr("crown.spark.sinks.postgres.time.sleep", lambda seconds: None)
    frame = spark.createDataFrame([(1, "x", "insert", 3), (2, None, "insert", 1)], DELTA)
    target = PostgresTarget(postgres, "lost", frame.schema, stream_at(tmp_path / "checkpoint"))
    apply, commit = postgres_sink._Table.apply, psycopg.Connection.commit
    trouble = ["middle", "commit", "committed", "none"]

    def lose(cursor: Any) -> None:
        execute(postgres, f"SELECT pg_terminate_backend({cursor.connection.info.backend_pid})")

    def troubled_apply(self: Any, *arguments: Any) -> None:
        if trouble[0] == "middle":
            trouble.pop(0)
            lose(self._cursor)
        apply(self, *arguments)

    def troubled_commit(self: Any) -> None:
        what = trouble.pop(0) if len(trouble) > 1 else "none"
        if what == "commit":
            execute(postgres, f"SELECT pg_terminate_backend({self.info.backend_pid})")
        commit(self)
        if what == "committed":
            raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(postgres_sink._Table, "apply", troubled_apply)
    monkeypatch.setattr(psycopg.Connection, "commit", troubled_commit)
    target.apply(frame, 0)
    assert trouble == ["none"]
    assert sorted(stored(postgres, "lost"), key=str) == [(1, "x"), (1, "x"), (1, "x"), (2, None)]


def test_only_one_of_two_writers_wins(spark: SparkSession, tmp_path: Path, postgres: str) -> None:
    frames = [spark.createDataFrame([(n, "x", "insert", 1)], DELTA) for n in range(2)]
    for number, make in enumerate(
        (
            lambda checkpoint, frame: PostgresTarget(postgres, "raced", frame.schema, checkpoint),
            lambda checkpoint, frame: ParquetTarget(str(tmp_path / "raced"), frame.schema, checkpoint),
        )
    ):
        outcomes: list[Any] = [None, None]

        def run(n: int, make: Any = make, number: int = number, outcomes: list[Any] = outcomes) -> None:
            try:
                make(stream_at(tmp_path / f"checkpoint-{number}-{n}"), frames[n]).apply(frames[n], 0)
            except CrownError as error:
                outcomes[n] = error

        threads = [threading.Thread(target=run, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = [n for n in range(2) if outcomes[n] is None]
        assert outcomes[1 - winner].code == "CROWN-SINK-OTHER"
        rows = stored(postgres, "raced") if number == 0 else read_materialized(spark, str(tmp_path / "raced")).collect()
        assert rows == [(winner, "x")]


HOSTILE = (
    'SELECT a AS crown_weight, b AS `select`, CAST(a AS FLOAT) AS `weight"`, CAST(1.5 AS DECIMAL(20,3)) AS `number`, '
    "CAST(b AS BINARY) AS `c0`, a > 1 AS stored, CAST(1 AS TINYINT) AS copy, CAST(NULL AS DATE) AS `%s {table}`, "
    "_change_type, _multiplicity FROM VALUES ROWS AS d(a, b, _change_type, _multiplicity)"
)


def test_odd_names_and_values(spark: SparkSession, tmp_path: Path, postgres: str) -> None:
    """Columns that are called as ours are, reserved words, NaN, both zeros, backslashes, tabs; and they go again."""

    def hostile(word: str, zero: str) -> DataFrame:
        text = "a\\\\b\\tc\\nd\\\\N"
        rows = f"(3D, '{text}', '{word}', 2L), (double('NaN'), NULL, '{word}', 1L), ({zero}, '', '{word}', 1L)"
        return spark.sql(HOSTILE.replace("ROWS", rows))

    frame = hostile("insert", "-0D")
    target = PostgresTarget(postgres, '"Odd.Table"', frame.schema, stream_at(tmp_path / "checkpoint"))
    target.apply(frame, 0)
    rows = stored(postgres, '"Odd.Table"')
    assert [row[1] for row in rows].count("a\\b\tc\nd\\N") == 2 and len(rows) == 4
    target.apply(hostile("delete", "0D"), 1)
    assert stored(postgres, '"Odd.Table"') == []


def test_what_postgres_cannot_hold_is_refused(spark: SparkSession, tmp_path: Path, postgres: str) -> None:
    def target(ddl: str, table: str) -> PostgresTarget:
        schema = schema_of(f"{ddl}, _change_type STRING")
        found = PostgresTarget(postgres, table, schema, stream_at(tmp_path / uuid.uuid4().hex))
        found.check(spark)
        return found

    execute(postgres, "CREATE TABLE taken (b text, a bigint)")
    target("a BIGINT, b STRING", "taken")  # an empty one with the columns in another order is as good as none
    execute(postgres, "INSERT INTO taken VALUES ('x', 1)")
    execute(postgres, "CREATE VIEW shown AS SELECT a FROM taken WHERE a > 5")
    execute(postgres, "CREATE TABLE parts (a bigint) PARTITION BY RANGE (a)")
    for ddl, table, code in (
        ("a BIGINT, b STRING", "taken", "CROWN-SINK-OTHER"),
        ("a BIGINT", "missing.t", "CROWN-SINK-SCHEMA"),
        ("a BIGINT", "shown", "CROWN-SINK-POSTGRES"),
        ("a BIGINT", "parts", "CROWN-SINK-POSTGRES"),
        ("a BIGINT", "a.b.c", "CROWN-SINK-NAME"),
        ("a BIGINT", "", "CROWN-SINK-NAME"),
        ("a BIGINT", "t" * 64, "CROWN-SINK-NAME"),
        (f"{'c' * 64} BIGINT", "t", "CROWN-SINK-NAME"),
        ("a BIGINT, A BIGINT", "t", "CROWN-SINK-COLUMNS"),
        ("a INTERVAL DAY", "t", "CROWN-SINK-TYPE"),
    ):
        with pytest.raises(CrownError) as refused:
            target(ddl, table)
        assert refused.value.code == code, (ddl, table)
    execute(postgres, "TRUNCATE taken")
    for ddl in ("a BIGINT", "a INT, b STRING", "a BIGINT, b STRING, c INT", "a BIGINT, c STRING"):
        with pytest.raises(StateError, match="CROWN-SINK-COLUMNS"):
            target(ddl, "taken")
    execute(postgres, "CREATE TABLE bounded (a bigint, b text, CHECK (a < 0))")
    bounded = target("a BIGINT, b STRING", "bounded")
    with pytest.raises(StateError, match="CROWN-SINK-POSTGRES"):
        bounded.apply(spark.createDataFrame([(1, "x", "insert", 1)], DELTA), 0)
    with pytest.raises(CrownError, match="CROWN-SINK-DELTAS"):
        PostgresTarget(postgres, "t", schema_of("a BIGINT"), "")
    nowhere = PostgresTarget("host=127.0.0.1 port=1", "t", schema_of(DELTA), "")
    with pytest.raises(StateError, match="CROWN-SINK-CONNECTION"):
        nowhere.check(spark)
    encode = encoder(schema_of("b STRING, t TIMESTAMP").fields)
    for row in (("a\0b", None, 1), (None, 2**62, 1)):
        with pytest.raises(InvalidChange, match="CROWN-SINK-VALUE"):
            encode(row)


def test_deletes_use_the_index(
    spark: SparkSession, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a nested loop over the table: each row that goes is looked up by its hash."""
    schema = schema_of("a BIGINT, b STRING, _change_type STRING")
    target = PostgresTarget(postgres, "large", schema, stream_at(tmp_path / "checkpoint"))
    frame = spark.range(20_000).selectExpr("id AS a", "CAST(id AS STRING) AS b", "'insert' AS _change_type")
    target.apply(frame, 0)
    execute(postgres, "ANALYZE large")
    plans: list[str] = []
    do = postgres_sink._Table._do

    def explained(self: Any, text: str, **parts: Any) -> None:
        if text.startswith("DELETE"):
            do(self, "EXPLAIN " + text, **parts)
            plans.append("\n".join(line for (line,) in self._cursor.fetchall()))
        do(self, text, **parts)

    monkeypatch.setattr(postgres_sink._Table, "_do", explained)
    target.apply(frame.where("id < 200").withColumn("_change_type", F.lit("delete")), 1)
    assert len(stored(postgres, "large")) == 19_800
    (plan,) = plans
    assert "large_crown_row" in plan or "Hash Join" in plan, plan
    assert not ("Nested Loop" in plan and "Seq Scan on large" in plan), plan


ZONED = """
import os, sys, time
time.tzset()
from pyspark.sql import SparkSession
from crown.spark.sinks.postgres import PostgresTarget
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
rows = '''SELECT timestamp_micros(m) AS t, timestamp_ntz'2024-03-10 02:30:00.123456' AS n, date'1583-01-01' AS d,
  '{}' AS _change_type FROM VALUES (1718452800000001), (1730611800000000), (1730615400000000), (-1) AS v(m)'''
frame = spark.sql(rows.format("insert"))
target = PostgresTarget(sys.argv[1], "zoned", frame.schema, sys.argv[2])
target.apply(frame, 0)
target.apply(spark.sql(rows.format("delete") + " WHERE m = -1"), 1)
"""


def test_timestamps_do_not_shift(tmp_path: Path, postgres: str) -> None:
    """In New York, over the hour that comes twice a year: the driver's time zone is not that of the values."""
    import psycopg

    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    environment = {**os.environ, "TZ": "America/New_York", "PYTHONPATH": path}
    command = [sys.executable, "-c", ZONED, postgres, stream_at(tmp_path / "checkpoint")]
    subprocess.run(command, env=environment, check=True, timeout=900)
    with psycopg.connect(postgres) as opened:
        opened.execute("SET TIME ZONE 'UTC'")
        found = opened.execute(
            "SELECT (extract(epoch FROM t) * 1000000)::bigint, n, d FROM zoned ORDER BY t"
        ).fetchall()
    local = datetime.datetime(2024, 3, 10, 2, 30, 0, 123456)
    expected = [1718452800000001, 1730611800000000, 1730615400000000]
    assert found == [(moment, local, datetime.date(1583, 1, 1)) for moment in expected]
