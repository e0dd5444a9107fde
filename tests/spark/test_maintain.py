"""`maintain`, `snapshot` and `run_batch` against DuckDB, batch by batch."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from crown.errors import CrownError, PlanError
from crown.spark import maintain, run_batch, snapshot
from tests.spark.streams import (
    GRAPH,
    GRAPH_QUERIES,
    Feed,
    check_batches,
    collect_batches,
    history_of,
    run_to_end,
    total,
)
from tests.support.judge import Change, Judge

pytestmark = pytest.mark.spark
both_engines = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize(
    "engine, cells",
    [("jvm", 3), ("python", 3), *(pytest.param(engine, 1, marks=pytest.mark.slow) for engine in ("jvm", "python"))],
    indirect=True,
)
def test_every_delta_is_exact_across_restarts(
    spark: SparkSession, engine: str, cells: int, rng: random.Random, tmp_path: Path
) -> None:
    sql = GRAPH_QUERIES[2] if cells == 1 else GRAPH_QUERIES[0]
    judge = Judge(sql, GRAPH)
    history = history_of(rng, judge, 4)
    feed = Feed(tmp_path / "in", judge)
    for changes in history[:2]:
        feed.write(changes)
    batches = collect_batches(maintain(spark, sql, feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    for changes in history[2:]:
        feed.write(changes)
    running: dict[int, pa.Table] = {}

    def during(batch: int) -> None:
        """The view while the stream runs is that of the batch before this one."""
        running[batch - 1] = snapshot(spark, str(tmp_path / "checkpoint")).toArrow()

    deltas = maintain(spark, sql, feed.tables(spark), cells=cells)
    batches |= collect_batches(deltas, tmp_path / "checkpoint", during=during)
    assert sorted(running) == [1, 2]
    check_batches(judge, history, batches, snapshots=running)
    judge.check_result(snapshot(spark, str(tmp_path / "checkpoint")).toArrow(), where="snapshot")


@both_engines
def test_static_tables_are_loaded_once(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    sql = "SELECT p.name, COUNT(*) AS n FROM g JOIN p ON p.id = g.dst WHERE g.src < 5 GROUP BY p.name"
    judge = Judge(sql, GRAPH + "; CREATE TABLE p (id BIGINT, name STRING)")
    people = [(1, "ann"), (2, "bob"), (3, None), (3, "cid")]
    judge.apply([Change("p", row) for row in people])
    judge.result.clear()  # nothing was emitted for the people alone
    static = spark.createDataFrame(people, "id BIGINT, name STRING")
    feed_judge = Judge("SELECT * FROM g", GRAPH)
    feed = Feed(tmp_path / "in", feed_judge)
    history = [
        [Change("g", (1, 1)), Change("g", (9, 1)), Change("g", (2, 3))],
        [Change("g", (1, 1), -1), Change("g", (4, 2))],
    ]
    batches: dict[int, Any] = {}
    for changes in history:
        feed.write(changes)
        tables = {**feed.tables(spark), "p": static}
        batches |= collect_batches(maintain(spark, sql, tables, cells=cells), tmp_path / "checkpoint")
    check_batches(judge, history, batches)


@both_engines
def test_upserts_and_windows_over_cells(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """A key's old row may be in another cell than its new one, and a window counts rows of all cells."""
    sql = "SELECT u.grp, g.dst FROM u JOIN g ON g.src = u.id"
    judge = Judge(sql, "CREATE TABLE u (id BIGINT PRIMARY KEY, grp BIGINT); " + GRAPH)
    feed = Feed(tmp_path / "in", judge)
    history = [
        [Change("u", (i, i % 3)) for i in range(6)] + [Change("g", (i % 6, i)) for i in range(8)],
        [Change("u", (i, 7)) for i in range(0, 6, 2)] + [Change("g", (1, 100)), Change("g", (2, 101))],
    ]
    for changes in history:
        feed.write(changes)
    deltas = maintain(spark, sql, feed.tables(spark), cells=cells, keys={"u": ["id"]}, windows={"g": {"rows": 5}})
    batches = collect_batches(deltas, tmp_path / "checkpoint")
    # The window as plain deletes of the oldest rows.
    arrived: list[tuple[int, int]] = []
    for number, changes in enumerate(history):
        new = [change.row for change in changes if change.table == "g"]
        arrived += new
        gone, arrived = arrived[: max(0, len(arrived) - 5)], arrived[-5:]
        judge.apply([*changes, *(Change("g", row, -1) for row in gone)])
        judge.check_delta(batches[number], where=f"batch {number}")


@pytest.mark.parametrize("counts", [(1, 3), pytest.param((2, 8), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("sql", GRAPH_QUERIES)
def test_any_number_of_cells_gives_the_same_answer(
    spark: SparkSession, sql: str, counts: tuple[int, ...], rng: random.Random
) -> None:
    judge = Judge(sql, GRAPH)
    (changes,) = history_of(rng, judge, 1, size=120)
    judge.apply(changes)
    frame = spark.createDataFrame(judge.as_arrow(changes)["g"])
    for cells in counts:
        result = run_batch(spark, sql, {"g": frame}, cells=cells).toArrow()
        assert total([result]) == judge.result, f"{cells} cells"


@both_engines
def test_load_per_cell_is_reported_and_as_planned(
    spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path
) -> None:
    """Each atom's rows are spread and replicated as the shares say, and the progress shows it."""
    sql = GRAPH_QUERIES[1]
    judge = Judge(sql, GRAPH)
    changes = [Change("g", (rng.randrange(200), rng.randrange(200))) for _ in range(2000)]
    feed = Feed(tmp_path / "in", judge)
    feed.write(changes)
    deltas = maintain(spark, sql, feed.tables(spark), cells=cells)
    query = deltas.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = run_to_end(query.trigger(availableNow=True))
    (progress,) = [progress for progress in running.recentProgress if progress.numInputRows]
    load = progress.observedMetrics["crown"].load
    updates = sorted(row["updates"] for row in load)
    assert len(updates) == cells
    assert len(changes) <= sum(updates) <= cells * len(changes)
    assert updates[-1] < 1.3 * max(updates[0], 1), updates


def test_a_changed_query_is_refused(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    collect_batches(maintain(spark, GRAPH_QUERIES[0], feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    feed.write([Change("g", (2, 3))])
    other = maintain(spark, GRAPH_QUERIES[0] + " WHERE a.src > 0", feed.tables(spark), cells=cells)
    with pytest.raises(Exception, match="CROWN-STATE-OTHER-PLAN"):
        collect_batches(other, tmp_path / "checkpoint")


@both_engines
def test_an_invalid_change_fails_the_batch_and_the_view_stays(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    sql = GRAPH_QUERIES[0]
    judge = Judge(sql, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2)), Change("g", (2, 3))])
    collect_batches(maintain(spark, sql, feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    feed.write([Change("g", (5, 5), -1)])
    with pytest.raises(Exception, match="CROWN-CHANGE"):
        collect_batches(maintain(spark, sql, feed.tables(spark), cells=cells), tmp_path / "checkpoint")
    assert snapshot(spark, str(tmp_path / "checkpoint")).collect() == [(1, 3)]


def test_settings_are_checked_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        with pytest.raises(PlanError, match="RocksDB"):
            maintain(spark, GRAPH_QUERIES[0], feed.tables(spark), cells=2)
        assert spark.conf.get(name) != before
    finally:
        spark.conf.set(name, before or "")
    with pytest.raises(CrownError, match="CROWN-SQL-UNKNOWN-TABLE"):
        maintain(spark, "SELECT * FROM h", feed.tables(spark), cells=2)
    with pytest.raises(PlanError, match="CROWN-SPARK-REJECTS"):
        maintain(spark, GRAPH_QUERIES[0], feed.tables(spark), cells=2, on_invalid="quarantine")
    with pytest.raises(PlanError, match="CROWN-SPARK-BOUNDED"):
        run_batch(spark, GRAPH_QUERIES[0], feed.tables(spark), cells=2)
