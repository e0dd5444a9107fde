"""Checkpoints of older formats, and of other versions of the planner: gone on with, or refused with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from crown.errors import StateError
from crown.plan.cells import layout
from crown.plan.cells.distribute import Distributed
from crown.plan.tree import passes
from crown.plan.tree.trees import Trees, find_trees
from crown.spark import maintain, read_materialized, snapshot
from crown.spark.flow import identity
from tests.spark import old_checkpoint
from tests.spark.old_checkpoint import BEFORE, CELLS, SQL, WINDOW
from tests.support.judge import Change, Row

FIXTURES = Path(__file__).parent / "fixtures"
pytestmark = pytest.mark.spark


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


def test_each_reason_why_a_checkpoint_is_refused(
    spark: SparkSession, cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = old_checkpoint.unpack(FIXTURES / "checkpoint-1.tar.xz", tmp_path)

    def start(sql: str = SQL, **options: Any) -> None:
        given = {"cells": CELLS, "keys": {"u": ["id"]}, "windows": {"g": {"rows": WINDOW}}, **options}
        deltas: DataFrame = maintain(spark, sql, feed.tables(spark), **given)
        writer = deltas.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start().stop()

    def refused(code: str, *words: str, **options: Any) -> None:
        with pytest.raises(StateError) as refusal:
            start(**options)
        assert refusal.value.code == code
        for part in words:
            assert part in str(refusal.value), str(refusal.value)

    other = "CROWN-STATE-OTHER-PLAN"
    refused(other, "the query is another one. It was:", "The query is now:", sql=SQL.replace("SUM", "MAX"))
    refused(other, "window of table g was {'rows': 5}, is {'rows': 6}", windows={"g": {"rows": 6}})
    refused(other, "key of table u was id, is grp", keys={"u": ["grp"]})
    refused(other, "key of table u was id, is not given", keys={})
    refused(other, "cells was 2, is 3", cells=3)
    with monkeypatch.context() as patch:
        patch.setattr(layout, "_spread_merge", lambda merge, cells: merge)
        refused(other, "lays out the stage merge in another way: rows are spread over the cells in another way")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "distribute", lambda plan, cells: Distributed(plan, None))
        refused(other, "without the stage merge")
    for oldest, newest, hint in ((2, 2, "use a new checkpoint"), (0, 0, "use the version of Crown that wrote it")):
        with monkeypatch.context() as patch:
            patch.setattr(identity, "OLDEST", oldest)
            patch.setattr(identity, "FORMAT", newest)
            refused("CROWN-STATE-FORMAT", f"has format 1; this version of Crown reads {oldest} to {newest}", hint)
            with pytest.raises(StateError, match="CROWN-STATE-FORMAT"):
                snapshot(spark, str(tmp_path / "checkpoint"))
    current = tmp_path / "target" / "_versions" / "current.json"
    current.write_text(current.read_text().replace("{", '{"format": 9, ', 1))
    with pytest.raises(StateError, match="have format 9; this version of Crown reads 1"):
        read_materialized(spark, str(tmp_path / "target"))
    with pytest.raises(StateError, match="have format 9; this version of Crown reads 1"):
        old_checkpoint.run(spark, feed, tmp_path)
    start()
