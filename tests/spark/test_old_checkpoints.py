"""Checkpoints of older formats, and of other versions of the planner: gone on with, or refused with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crown.errors import StateError
from crown.ir.tables import resolved
from crown.plan.cells import layout
from crown.plan.cells.distribute import distribute
from crown.plan.tree import passes
from crown.plan.tree.trees import Trees, find_trees
from crown.spark import read_materialized, snapshot
from crown.spark.checkpoint import identity
from crown.spark.checkpoint.state import StoredOperator, compare_all, stored_operators
from crown.spark.flow.topology import lay_out
from tests.spark import old_checkpoint
from tests.spark.old_checkpoint import BEFORE, CELLS, SQL, WINDOW
from tests.spark.streams import Feed
from tests.support.judge import Change, Row

FIXTURES = Path(__file__).parent / "fixtures"
pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Old:
    """What an archive held, at its place, and its state."""

    feed: Feed
    place: Path
    operators: list[StoredOperator]


def unlike(trees: Trees) -> Trees:
    """What a planner that prefers other trees would find."""
    return replace(trees, best=trees.best[::-1])


def result(spark: SparkSession, place: Path) -> tuple[Counter[Row], Counter[Row]]:
    """The view by its checkpoint, and by its target."""
    rows = snapshot(spark, str(place / "checkpoint")).collect()
    target = read_materialized(spark, str(place / "target")).collect()
    return Counter(map(tuple, rows)), Counter(map(tuple, target))


@pytest.mark.parametrize("format_", [1])
def test_an_old_checkpoint_goes_on_under_another_plan(
    spark: SparkSession, cells: int, format_: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upserts of keys that the old version has seen, rows that push its rows out of the window, and another tree."""
    feed = old_checkpoint.unpack(FIXTURES / f"checkpoint-{format_}.tar.xz", tmp_path)
    before = feed.judge
    arrived = [change.row for change in BEFORE if change.table == "g"]
    before.apply([*BEFORE, *(Change("g", row, -1) for row in arrived[:-WINDOW])])
    before.check_result(snapshot(spark, str(tmp_path / "checkpoint")).toArrow(), where="as the old version left it")
    monkeypatch.setattr(passes, "find_trees", lambda *given, **options: unlike(find_trees(*given, **options)))
    following = [Change("u", ("group 1", 0)), Change("u", ("group 2", 7)), Change("g", (70, 7)), Change("g", (80, 0))]
    feed.write(following)
    old_checkpoint.run(spark, feed, tmp_path)
    gone = arrived[-WINDOW:][:2]
    before.apply([*following, *(Change("g", row, -1) for row in gone)])
    snapshotted, written = result(spark, tmp_path)
    before.check_result(read_materialized(spark, str(tmp_path / "target")).toArrow(), where="the target")
    assert snapshotted == written


@pytest.fixture
def old(spark: SparkSession, tmp_path: Path) -> Old:
    feed = old_checkpoint.unpack(FIXTURES / "checkpoint-1.tar.xz", tmp_path)
    return Old(feed, tmp_path, stored_operators(spark, str(tmp_path / "checkpoint"), 0))


def schema_with(**options: Any) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        "g": {"columns": {"dst": "bigint", "src": "bigint"}, "window": {"rows": WINDOW}},
        "u": {"columns": {"grp": "string", "id": "bigint"}, "primary_key": ("id",)},
    }
    for name, changed in options.items():
        tables[name] |= changed
    return tables


def test_each_reason_why_a_checkpoint_is_refused(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state as Spark has read it once, against all kinds of other views and versions."""

    def refused(words: str, sql: str = SQL, cells: int = CELLS, **tables: Any) -> StateError:
        with pytest.raises(StateError) as refusal:
            compare_all(old.operators, [lay_out(sql, schema_with(**tables), cells).described()])
        assert words in str(refusal.value), str(refusal.value)
        return refusal.value

    compare_all(old.operators, [lay_out(SQL, schema_with(), CELLS).described()])
    compare_all(
        old.operators, [lay_out(SQL.replace("u.", "U.").replace("AS n", "m"), schema_with(), CELLS).described()]
    )
    changed = SQL.replace("SUM", "MAX")
    found = refused(f"the query has changed. It was:\n{SQL}\nThe query is now:\n{changed}", sql=changed)
    assert found.code == "CROWN-STATE-OTHER-PLAN" and "overwrite=True" in str(found)
    refused("cells was 2, now 3", cells=3)
    refused("window of table g was {'rows': 5}, now {'rows': 6}", g={"window": {"rows": 6}})
    refused("window of table g was {'rows': 5}, now not given", g={"window": None})
    refused("key of table u was id, now grp", u={"primary_key": ("grp",)})
    refused("key of table u was id, now not given", u={"primary_key": ()})
    refused("profile of table u was not given, now insert_only", u={"profile": "insert_only"})
    narrow = {"columns": {"dst": "int", "src": "bigint"}}
    refused("columns of table g was dst int64, src int64, now dst int32, src int64", g=narrow)
    refused("the query no longer reads table u", sql="SELECT src FROM g")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "_spread_merge", lambda merge, cells: merge)
        refused("lays out the operator merge differently: rows are spread over the cells differently")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "distribute", lambda plan, cells: replace(distribute(plan, cells), merge=None))
        refused("this version of Crown runs the query without the operator merge")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "resolved", lambda table: replace(resolved(table), columns=table.columns[::-1]))
        refused(
            "lays out the operator cells differently: table g was stored with columns dst int64, src int64, now with"
        )
    for oldest, newest, hint in ((2, 2, "use a new checkpoint"), (0, 0, "use the version of Crown that wrote it")):
        with monkeypatch.context() as patch:
            patch.setattr(identity, "OLDEST", oldest)
            patch.setattr(identity, "FORMAT", newest)
            found = refused(f"has format 1; this version of Crown reads {oldest} to {newest}")
            assert found.code == "CROWN-STATE-FORMAT" and hint in str(found)


def test_refused_at_start_and_by_readers(
    spark: SparkSession, cells: int, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, target = str(old.place / "checkpoint"), old.place / "target"
    writer = old_checkpoint.deltas(spark, old.feed).writeStream.format("noop").option("checkpointLocation", checkpoint)
    with monkeypatch.context() as patch:
        patch.setattr(identity, "OLDEST", 2)
        with pytest.raises(StateError, match="has format 1; this version of Crown reads 2 to 2"):
            writer.start()
        with pytest.raises(StateError, match="has format 1; this version of Crown reads 2 to 2"):
            snapshot(spark, checkpoint)
    current = target / "_versions" / "current.json"
    current.write_text(current.read_text().replace("{", '{"format": 9, ', 1))
    with pytest.raises(StateError, match="have format 9; this version of Crown reads 1"):
        read_materialized(spark, str(target))
    with pytest.raises(StateError, match="have format 9; this version of Crown reads 1"):
        old_checkpoint.run(spark, old.feed, old.place)
