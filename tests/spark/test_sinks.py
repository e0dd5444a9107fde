"""Targets kept equal to the view: a versioned parquet table, and a real PostgreSQL server."""

from __future__ import annotations

import glob
import os
import pwd
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crown.errors import StateError
from crown.spark import maintain, materialize, read_materialized
from crown.spark.sinks.parquet import ParquetTarget
from crown.spark.sinks.postgres import PostgresTarget
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, random_changes, run_to_end
from tests.support.judge import Judge, multiset

pytestmark = pytest.mark.spark

DELTA = "a BIGINT, b STRING, _change_type STRING, _multiplicity BIGINT"


def test_parquet_table_by_version(spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    results = []
    for _ in range(3):
        changes = random_changes(rng, judge.tables, 20)
        feed.write(changes)
        judge.apply(changes)
        results.append(judge.result)
    deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells)
    writer = materialize(deltas, checkpoint=str(tmp_path / "checkpoint"), parquet=str(tmp_path / "table"))
    run_to_end(writer.trigger(availableNow=True))
    for version, expected in enumerate(results):
        read = read_materialized(spark, str(tmp_path / "table"), version=version)
        assert multiset(map(tuple, read.collect())) == expected
    with pytest.raises(StateError, match="versions 0 to 2"):
        read_materialized(spark, str(tmp_path / "table"), version=9)


def test_parquet_repeats_and_rewrites(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crown.spark.sinks.parquet._FEW_ROWS", 2)
    target = ParquetTarget(str(tmp_path))
    for batch, rows in enumerate([[(1, "x", "insert", 2), (2, None, "insert", 1)], [(1, "x", "delete", 2)], []]):
        for _ in range(2):  # Spark repeats a batch that it could not note as done
            target.apply(spark.createDataFrame(rows, DELTA), batch)
    assert read_materialized(spark, str(tmp_path)).collect() == [(2, None)]
    assert len(read_materialized(spark, str(tmp_path), version=0).collect()) == 3
    assert list(tmp_path.glob("whole-*"))


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own on a free port; as another user where the tests run as root, which PostgreSQL refuses."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]
    if not os.path.exists(os.path.join(programs[-1], "initdb")):
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install crown-ivm[postgres]")
    directory = tmp_path_factory.mktemp("postgres")
    user: dict[str, int] = {}
    if os.getuid() == 0:
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            entry = pwd.getpwnam("nobody")
        user = {"user": entry.pw_uid, "group": entry.pw_gid}
        os.chown(directory, entry.pw_uid, entry.pw_gid)
        for parent in [directory, *directory.parents]:
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    initdb = [f"{programs[-1]}/initdb", "-D", str(directory / "data"), "-U", "crown", "-A", "trust", "-E", "UTF8"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    subprocess.run([*initdb, "--no-sync"], check=True, **quiet, **user)  # type: ignore[call-overload]
    options = ["-p", str(port), "-k", str(directory), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [f"{programs[-1]}/postgres", "-D", str(directory / "data"), *options], **quiet, **user
    )
    connection = f"host=127.0.0.1 port={port} user=crown dbname=postgres"
    try:
        import psycopg

        for _ in range(600):
            try:
                psycopg.connect(connection, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert server.poll() is None, "the server ended"
        yield connection
    finally:
        server.terminate()
        server.wait()


def stored(connection: str, table: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(connection) as opened:
        return opened.execute(f"SELECT * FROM {table}").fetchall()


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


def test_postgres_takes_each_batch_once(spark: SparkSession, postgres: str) -> None:
    first = spark.createDataFrame([(1, "x", "insert", 3), (2, None, "insert", 1)], DELTA)
    target = PostgresTarget(postgres, "twice", first.schema)
    second = spark.createDataFrame([(1, "x", "delete", 2), (2, None, "delete", 1)], DELTA)
    for batch, frame in enumerate([first, second]):
        target.apply(frame, batch)
        target.apply(frame, batch)
    assert stored(postgres, "twice") == [(1, "x")]
