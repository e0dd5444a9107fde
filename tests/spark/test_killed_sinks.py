"""Kill the driver between the steps of a sink, again and again: in the end every target is what DuckDB answers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crown.spark import read_materialized
from tests.conftest import SEED
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, ended_within, random_changes
from tests.support.judge import Judge, multiset

pytestmark = pytest.mark.spark

BATCHES = 3
LIMIT_SECONDS = 900
POINTS = [
    f"{sink}:{when}:{batch}"
    for sink in ("postgres", "parquet")
    for when in ("before", "written", "committed", "after")
    for batch in range(BATCHES - 1)
] + [f"append:written:{batch}" for batch in range(BATCHES)]


def run(directory: Path, sql: str, connection: str, point: str) -> None:
    """Run the application until it dies, or ends because the point has passed already."""
    log = directory / f"log-{point}"
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.killed_sinks", str(directory), sql, connection, point],
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(directory)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        code = ended_within(process, LIMIT_SECONDS)
    assert code in (0, -signal.SIGKILL), (point, log.read_text()[-3000:])


def appended(directory: Path) -> tuple[Counter[Any], int]:
    """The sum of all rows that were appended, each delta once, and how many came again."""
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    repeats = 0
    for file in directory.iterdir():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            key = (row.pop("_batch"), row.pop("_position"))
            repeats += key in seen
            assert seen.setdefault(key, row) == row, f"two deltas under {key}"
    result: Counter[Any] = Counter()
    for row in seen.values():
        weight = row.pop("_multiplicity", 1) * (1 if row.pop("_change_type") == "insert" else -1)
        result[tuple(row.values())] += weight
    return +result, repeats


def killed(spark: SparkSession, rng: random.Random, directory: Path, connection: str, points: list[str]) -> int:
    """Kill at the points, one after the other, then run to the end in the tests' session. How many rows came again.

    All targets are checked, of the parquet one every version.
    """
    import psycopg

    from tests.spark.killed_sinks import write_all

    with psycopg.connect(connection, autocommit=True) as opened:
        opened.execute("DROP TABLE IF EXISTS killed")
    judge = Judge(rng.choice(GRAPH_QUERIES[:3]), GRAPH)
    feed = Feed(directory / "in", judge)
    (directory / "appended").mkdir()
    versions = []
    for _ in range(BATCHES):
        changes = random_changes(rng, judge.tables, 30)
        feed.write(changes)
        judge.apply(changes)
        versions.append(judge.result)
    for point in points:
        run(directory, judge.sql, connection, point)
    write_all(spark, directory, judge.sql, connection, ("none", "none", -1), 0)
    with psycopg.connect(connection) as opened:
        rows = opened.execute("SELECT * FROM killed").fetchall()
    assert multiset(rows) == judge.result, points
    for version, expected in [*enumerate(versions), (None, judge.result)]:
        table = read_materialized(spark, str(directory / "table"), version=version)
        assert multiset(map(tuple, table.collect())) == expected, (points, version)
    found, repeats = appended(directory / "appended")
    assert found == judge.result, points
    return repeats


@pytest.mark.parametrize("last", ["postgres:committed:1", pytest.param("parquet:committed:2", marks=pytest.mark.slow)])
def test_killed_between_the_commits(spark: SparkSession, last: str, tmp_path: Path, postgres: str) -> None:
    rng = random.Random(f"{SEED}:sinks")
    points = ["append:written:1", last]
    assert killed(spark, rng, tmp_path, postgres, points), "no row was repeated"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12))
def test_killed_at_random_points(spark: SparkSession, number: int, tmp_path: Path, postgres: str) -> None:
    rng = random.Random(f"{SEED}:sinks:{number}")
    killed(spark, rng, tmp_path, postgres, rng.sample(POINTS, 5))
