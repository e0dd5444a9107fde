"""Several views in one stream: one over the other, side by side, and each with its own state and metrics."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from crown.errors import StateError
from crown.spark import maintain, snapshot
from tests.spark.streams import GRAPH, Feed, collect_batches, random_changes, total
from tests.support.judge import Judge, multiset

pytestmark = pytest.mark.spark

HOPS = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
DEGREES = "SELECT src, COUNT(*) AS n FROM g GROUP BY src"
OVER = "SELECT h.dst, COUNT(*) AS n, SUM(d.n) AS m FROM hops h JOIN degrees d ON d.src = h.src GROUP BY h.dst"
WHOLE = f"WITH hops AS ({HOPS}), degrees AS ({DEGREES}) {OVER}"


def test_a_view_over_views(spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path) -> None:
    judge = Judge(WHOLE, GRAPH)
    inner = Judge(HOPS, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    batches: dict[int, pa.Table] = {}
    for _ in range(2):  # the second time from the checkpoint
        for _ in range(2):
            changes = random_changes(rng, judge.tables, 15)
            feed.write(changes)
            judge.apply(changes)
            inner.apply(changes)
        g = feed.tables(spark)["g"]
        tables = {
            "hops": maintain(spark, HOPS, {"g": g}, cells=cells, batch=True),
            "degrees": maintain(spark, DEGREES, {"g": feed.tables(spark)["g"]}, cells=cells),
        }
        batches |= collect_batches(maintain(spark, OVER, tables, cells=cells), tmp_path / "checkpoint")
    assert total(batches[number] for number in sorted(batches)) == judge.result
    judge.check_result(snapshot(spark, str(tmp_path / "checkpoint")).toArrow(), where="snapshot")
    inner.check_result(snapshot(spark, str(tmp_path / "checkpoint"), sql=HOPS).toArrow(), where="snapshot of hops")


def test_two_views_side_by_side(spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path) -> None:
    """In one stream by a union, and meanwhile in streams of their own in the same session."""
    judges = [Judge(sql, GRAPH) for sql in (HOPS, DEGREES)]
    feed = Feed(tmp_path / "in", judges[0])
    changes = random_changes(rng, judges[0].tables, 30)
    feed.write(changes)
    for judge in judges:
        judge.apply(changes)
    hops, degrees = (maintain(spark, judge.sql, feed.tables(spark), cells=cells) for judge in judges)
    columns = ["src", "_change_type"]
    both = hops.selectExpr("'hops' AS view", "dst AS value", "_multiplicity", *columns).unionByName(
        degrees.selectExpr("'degrees' AS view", "n AS value", "1L AS _multiplicity", *columns)
    )
    running = [
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
        .trigger(availableNow=True)
        .start(str(tmp_path / f"out-{name}"))
        for name, frame in (("hops", hops), ("degrees", degrees))
    ]
    checkpoint = tmp_path / "checkpoint"
    found = total(collect_batches(both, checkpoint).values())
    for query, judge, name in zip(running, judges, ("hops", "degrees"), strict=True):
        query.awaitTermination()
        assert query.recentProgress[0].observedMetrics["crown"].updates
        assert total([spark.read.parquet(str(tmp_path / f"out-{name}")).toArrow()]) == judge.result
        rows = [(row[2], row[1]) for row in found.elements() if row[0] == name]
        assert multiset(rows) == judge.result
    with pytest.raises(StateError, match=r"CROWN-STATE-VIEWS[\s\S]*COUNT"):
        snapshot(spark, str(checkpoint))
    judges[1].check_result(snapshot(spark, str(checkpoint), sql=DEGREES).toArrow())
    with pytest.raises(StateError, match="CROWN-STATE-NONE"):
        snapshot(spark, str(checkpoint), sql="SELECT 1")
