"""One query over keyed and windowed tables: views with threads and a stream see the same batches and say the same.

DuckDB is the judge of each delta, Spark's own batch engine of the last result.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import crown
from crown.spark import maintain, snapshot
from tests.spark.streams import Feed, collect_batches
from tests.support.judge import Change, Judge, Row

pytestmark = pytest.mark.spark

PLAIN = "CREATE TABLE f (n BIGINT, w BIGINT); CREATE TABLE g (dst BIGINT, src BIGINT)"
KEYED = "CREATE TABLE u (grp BIGINT, id BIGINT PRIMARY KEY)"
WINDOW = 7
QUERIES = (
    # Disjoint cells, and a merge that is spread by group, below an outer join.
    "SELECT u.id, u.grp, g.dst, f.w FROM u JOIN g ON g.src = u.id LEFT JOIN f ON f.n = u.id",
    "SELECT u.grp, COUNT(*) AS n, SUM(g.dst) AS total, MIN(f.w) AS least FROM u JOIN g ON g.src = u.id "
    "LEFT JOIN f ON f.n = g.dst GROUP BY u.grp",
    "SELECT COUNT(DISTINCT g.dst) AS n FROM g WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = g.src AND u.grp > g.dst)",
)


def history(rng: random.Random, batches: int) -> list[list[Change]]:
    """Rows of the plain table come and go; the others' rows replace, or push out, earlier ones."""
    stored: list[Row] = []
    found = []
    for _ in range(batches):
        # Changes of a batch have no order, so a key comes once.
        changes = [Change("u", (rng.randrange(3), key)) for key in rng.sample(range(5), 3)]
        changes += [Change("g", (rng.randrange(4), rng.randrange(5))) for _ in range(WINDOW // 2)]
        if stored:
            changes.append(Change("f", stored.pop(rng.randrange(len(stored))), -1))
        for _ in range(4):
            stored.append((rng.randrange(5), rng.randrange(3)))
            changes.append(Change("f", stored[-1]))
        found.append(changes)
    return found


@pytest.mark.parametrize("sql", QUERIES)
def test_threads_and_stream_agree(
    spark: SparkSession, cells: int, sql: str, rng: random.Random, tmp_path: Path
) -> None:
    judge = Judge(sql, f"{PLAIN}; {KEYED}")
    views = {
        threads: crown.View(sql, f"{PLAIN}; {KEYED}", threads=threads, windows={"g": {"rows": WINDOW}})
        for threads in (1, 2, 3, 4)
    }
    feed = Feed(tmp_path / "in", judge)
    batches = history(rng, 3)
    for changes in batches:
        feed.write(changes)
    tables = {name: frame for name, frame in feed.tables(spark).items() if f" {name}" in sql}
    keys = {"u": ["id"]}
    deltas = collect_batches(
        maintain(spark, sql, tables, cells=cells, keys=keys, windows={"g": {"rows": WINDOW}}), tmp_path / "checkpoint"
    )
    arrived: list[Row] = []
    for number, changes in enumerate(batches):
        arrived += [change.row for change in changes if change.table == "g"]
        gone, arrived = arrived[: max(0, len(arrived) - WINDOW)], arrived[-WINDOW:]
        judge.apply([*changes, *(Change("g", row, -1) for row in gone)])
        judge.check_delta(deltas[number], where=f"the stream's batch {number}")
        for threads, view in views.items():
            judge.check_delta(view.apply(judge.as_arrow(changes)), where=f"batch {number} with {threads} threads")
            judge.check_result(view.to_arrow(), where=f"after batch {number} with {threads} threads")
    shown = Counter(map(tuple, snapshot(spark, str(tmp_path / "checkpoint")).collect()))
    for name, rows in judge.tables.items():
        columns = [field.name for field in feed.tables(spark)[name].schema if not field.name.startswith("_")]
        stored = spark.createDataFrame(list(rows.elements()), ", ".join(f"{column} BIGINT" for column in columns))
        stored.createOrReplaceTempView(name)
    assert shown == Counter(map(tuple, spark.sql(sql).collect()))
