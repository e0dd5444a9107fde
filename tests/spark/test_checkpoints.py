"""What a checkpoint belongs to: refused at `start()`, before data arrives, in Crown's words; or gone on with."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crown.errors import CrownError, PlanError, StateError
from crown.spark import maintain, rejected, snapshot
from crown.spark.flow.topology import lay_out
from tests.spark.streams import GRAPH, Feed, run_to_end, total
from tests.support.judge import Change, Judge

SCHEMA: dict[str, dict[str, Any]] = {
    "g": {"columns": {"src": "bigint", "dst": "bigint"}},
    "h": {"columns": {"id": "bigint", "name": "string", "w": "double"}},
}
SAME = (
    (
        "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
        "select z.SRC,y.dst\nfrom G as z -- x\njoin g y on z.DST=y.src",
    ),
    (
        "SELECT a.src, COUNT(*), SUM(b.dst) FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src",
        "SELECT zz.src, COUNT(*), SUM(aa.dst) FROM g zz JOIN g aa ON zz.dst = aa.src GROUP BY zz.src",
    ),
    (
        "SELECT DISTINCT a.src, c.dst FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src "
        "JOIN g d ON c.dst = a.src",
        "SELECT DISTINCT z.src, x.dst FROM g z JOIN g y ON z.dst = y.src JOIN g x ON y.dst = x.src "
        "JOIN g d ON x.dst = z.src",
    ),
    (
        "WITH c AS (SELECT x.src s, COUNT(*) n FROM g x GROUP BY x.src) SELECT a.src, c.n, REVERSE(h.name) r FROM g a "
        "LEFT JOIN c ON c.s = a.dst JOIN h ON h.id = a.src WHERE EXISTS (SELECT 1 FROM g z WHERE z.src = a.dst)",
        "WITH n AS (SELECT q.src t, COUNT(*) c FROM g q GROUP BY q.src) SELECT b.src, n.c, REVERSE(a.name) r FROM g b "
        "LEFT JOIN n ON n.t = b.dst JOIN h a ON a.id = b.src WHERE EXISTS (SELECT 1 FROM g d WHERE d.src = b.dst)",
    ),
    (
        "SELECT src FROM g EXCEPT SELECT dst FROM g WHERE src > 3",
        "SELECT b.src AS q FROM g b EXCEPT SELECT a.dst FROM g AS a WHERE a.src > 3",
    ),
    (
        "SELECT src AS s, dst FROM g ORDER BY dst DESC LIMIT 3",
        "SELECT x.src AS t, x.dst AS u FROM g x ORDER BY u DESC LIMIT 3",
    ),
)
OTHER = (
    ("SELECT a.src FROM g a", "SELECT a.dst FROM g a"),
    (
        "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
        "SELECT b.src, a.dst FROM g a JOIN g b ON a.dst = b.src",
    ),
    ("SELECT a.src FROM g a WHERE a.dst > 1", "SELECT a.src FROM g a WHERE a.dst > 2"),
    ("SELECT a.src FROM g a", "SELECT DISTINCT a.src FROM g a"),
    ("SELECT COUNT(*) FROM g", "SELECT COUNT(dst) FROM g"),
)


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_aliases_do_not_tell_views_apart(cells: int) -> None:
    for one, other in SAME:
        first, second = lay_out(one, SCHEMA, cells), lay_out(other, SCHEMA, cells)
        assert first.identity == second.identity, other
    for one, other in OTHER:
        assert lay_out(one, SCHEMA, cells).identity != lay_out(other, SCHEMA, cells).identity, other
    # The order of a table's columns is no part of it; their types, keys and windows are.
    sql = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    plain = lay_out(sql, SCHEMA, cells).identity
    swapped = {"g": {"columns": {"dst": "bigint", "unused": "string", "src": "bigint"}}}
    assert lay_out(sql, swapped, cells).identity == plain
    for changed in (
        {"columns": {"src": "int", "dst": "bigint"}},
        {"columns": SCHEMA["g"]["columns"], "primary_key": ("src",)},
        {"columns": SCHEMA["g"]["columns"], "window": {"rows": 5}},
        {"columns": SCHEMA["g"]["columns"], "profile": "insert_only"},
    ):
        assert lay_out(sql, {"g": changed}, cells).identity != plain


def start(deltas: DataFrame, checkpoint: Path) -> None:
    """Start and stop: no data, no batch."""
    query = deltas.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    query.stop()


@pytest.mark.spark
def test_refused_when_started(spark: SparkSession, tmp_path: Path) -> None:
    """Everything that differs from what the checkpoint was made with, with nothing new to read."""
    sql = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    judge = Judge(sql, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2)), Change("g", (2, 3))])
    checkpoint = tmp_path / "checkpoint"

    def deltas(sql: str = sql, cells: int = 2, **options: Any) -> DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return maintain(spark, sql, options.pop("tables", None) or feed.tables(spark), cells=cells, **options)

    def run(frame: DataFrame) -> None:
        run_to_end(
            frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        )

    run(deltas())
    wide = {"g": feed.tables(spark)["g"].selectExpr("CAST(src AS INT) AS src", "dst", "_change_type")}
    for frame, message in (
        (deltas(sql + " WHERE a.src > 0"), "the query has changed"),
        (deltas("SELECT COUNT(*) AS n FROM g"), "CROWN-STATE-OTHER-PLAN"),
        (deltas(cells=3), "cells was 2, now 3"),
        (deltas(cells=1), "cells was 2, now 1"),
        (deltas(tables=wide), "columns of table g was dst int64, src int64, now dst int64, src int32"),
        (deltas(keys={"g": ["src"]}), "key of table g was not given, now src"),
        (deltas(windows={"g": {"rows": 5}}), "window of table g was not given, now {'rows': 5}"),
        (deltas(profiles={"g": "insert_only"}), "profile of table g was not given, now insert_only"),
    ):
        with pytest.raises(StateError, match="CROWN-STATE-OTHER-PLAN") as refused:
            start(frame, checkpoint)
        assert message in str(refused.value), str(refused.value)
        assert "overwrite=True" in str(refused.value)
    # What was done to the deltas on their way to the sink makes no difference.
    changed = deltas(sql + " WHERE a.src > 0").select("src", "_change_type").withColumn("x", F.lit(1))
    with pytest.raises(StateError, match="the query has changed"):
        start(changed.unionByName(changed), checkpoint)
    # Settings are looked at again.
    frame = deltas()
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        with pytest.raises(PlanError, match="CROWN-SPARK-SETTING"):
            start(frame, checkpoint)
    finally:
        spark.conf.set(name, before or "")
    # Other words for the same: gone on with, and the state is used.
    feed.write([Change("g", (3, 4))])
    same = deltas("select y.src, X.dst as Z /* b */ from g y join g X on y.dst = X.src")
    run(same)
    shown = snapshot(spark, str(checkpoint))
    assert shown.columns == ["src", "Z"]
    assert sorted(map(tuple, shown.collect())) == [(1, 3), (2, 4)]
    # Damage is found before the stream runs.
    state = checkpoint / "state" / "0"
    victims = [file for file in sorted(state.rglob("*")) if file.suffix in (".changelog", ".zip")]
    assert victims
    for file in victims:
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises(StateError, match="CROWN-STATE-CORRUPT"):
        start(deltas(), checkpoint)


@pytest.mark.spark
def test_on_invalid_may_change(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """A stream that a bad record has stopped goes on with quarantine, and later without it."""
    sql = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    judge = Judge(sql, GRAPH)
    feed = Feed(tmp_path / "in", judge)

    def run(**options: Any) -> list[Any]:
        deltas = maintain(spark, sql, feed.tables(spark), cells=cells, **options)
        found: list[Any] = []
        writer = deltas.writeStream.foreachBatch(lambda frame, batch: found.append(frame.toArrow()))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(writer.trigger(availableNow=True))
        return found

    feed.write([Change("g", (1, 2))])
    deltas = run()
    feed.write([Change("g", (2, 3)), Change("g", (7, 7), -1)])
    with pytest.raises(Exception, match="CROWN-CHANGE"):
        run()
    deltas += run(on_invalid="quarantine", rejects=str(tmp_path / "rejects"))
    assert rejected(spark, str(tmp_path / "rejects")).count() >= 1
    feed.write([Change("g", (7, 7)), Change("g", (3, 4))])
    deltas += run()
    assert sorted(total(deltas).elements()) == [(1, 3), (2, 4), (7, 7)]
    assert sorted(map(tuple, snapshot(spark, str(tmp_path / "checkpoint")).collect())) == [(1, 3), (2, 4), (7, 7)]


@pytest.mark.spark
def test_settings_that_change_answers_are_refused(spark: SparkSession) -> None:
    table = spark.readStream.format("rate").load().selectExpr("timestamp AS t", "CAST(value AS STRING) AS s")
    for name, value, sql in (
        ("spark.sql.session.timeZone", "America/New_York", "SELECT HOUR(t) AS h FROM r"),
        ("spark.sql.session.timeZone", "America/New_York", "SELECT t FROM r WHERE t > '2024-01-01'"),
    ):
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            maintain(spark, "SELECT t, s FROM r", {"r": table}, cells=2)
            with pytest.raises(PlanError, match="CROWN-SPARK-SETTING"):
                maintain(spark, sql, {"r": table}, cells=2)
        finally:
            spark.conf.set(name, before or "")
    for column in ("_change_type", "_multiplicity", "_batch", "_Position"):
        with pytest.raises(CrownError, match="CROWN-SQL-RESERVED-NAME"):
            maintain(spark, f"SELECT s AS {column} FROM r", {"r": table}, cells=2)
