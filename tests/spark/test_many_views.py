"""Several views as one stream: one read of each source, one state, and a sink for each view, all at one version."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import crown
from crown.errors import CrownError, PlanError, SchemaError, SqlError, StateError
from crown.spark import maintain, read_materialized, snapshot
from tests.conftest import SEED
from tests.spark.streams import GRAPH, Feed, ended_within, random_changes
from tests.support.judge import Judge, multiset

pytestmark = pytest.mark.spark

DEGREES = "SELECT src, COUNT(*) AS n FROM g GROUP BY src"
VIEWS = {
    "best": "SELECT src, n FROM degrees ORDER BY n DESC, src LIMIT 3",  # over a view that comes after it
    "degrees": DEGREES,
    "hops": "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
    "total": "SELECT COUNT(*) AS n, MAX(dst) AS most FROM g",
}
ALONE = {**VIEWS, "best": VIEWS["best"].replace("FROM degrees", f"FROM ({DEGREES}) AS degrees")}


def check_sinks(spark: SparkSession, judges: dict[str, Judge], directory: Path) -> None:
    for name, judge in judges.items():
        rows = read_materialized(spark, str(directory / name)).collect()
        assert multiset(map(tuple, rows)) == judge.result, name


# `test_pipeline_views` has one cell in the default run.
SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in ((2, "python"), (1, "jvm"), (1, "python"))]


@pytest.mark.parametrize(("cells", "engine"), [(2, "jvm"), *SLOW], indirect=True)
def test_views_of_one_stream(spark: SparkSession, engine: str, cells: int, rng: random.Random, tmp_path: Path) -> None:
    judges = {name: Judge(sql, GRAPH) for name, sql in ALONE.items()}
    feed = Feed(tmp_path / "in", judges["hops"])
    checkpoint = str(tmp_path / "checkpoint")
    for _ in range(2):  # the second time from the checkpoint
        changes = random_changes(rng, judges["hops"].tables, 20)
        feed.write(changes)
        for judge in judges.values():
            judge.apply(changes)
        views = maintain(spark, VIEWS, feed.tables(spark), cells=cells)
        sinks = {name: {"parquet": str(tmp_path / name)} for name in VIEWS}
        query = views.start(sinks, checkpoint=checkpoint, trigger={"availableNow": True})
        query.awaitTermination()
        assert len(query.recentProgress[-1].sources) == 1, "the table is read once for all views"
        check_sinks(spark, judges, tmp_path)
    for name, judge in judges.items():
        judge.check_result(snapshot(spark, checkpoint, view=name).toArrow(), where=f"snapshot of {name}")
    with pytest.raises(StateError, match=r"CROWN-STATE-VIEWS[\s\S]*degrees, hops, total, best"):
        snapshot(spark, checkpoint)
    with pytest.raises(StateError, match="CROWN-STATE-VIEWS"):
        snapshot(spark, checkpoint, view="nowhere")
    other = maintain(spark, {**VIEWS, "hops": DEGREES}, feed.tables(spark), cells=cells)
    with pytest.raises(StateError, match="CROWN-STATE-OTHER-PLAN"):
        other.start({"hops": lambda deltas, batch: None}, checkpoint=checkpoint)


def test_a_view_is_a_stream_of_its_own_deltas(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", Judge(DEGREES, GRAPH))
    feed.write(random_changes(random.Random(1), feed.judge.tables, 5))
    views = maintain(spark, VIEWS, feed.tables(spark), cells=2)
    assert set(views) == set(VIEWS)
    assert views["degrees"].columns == ["src", "n", "_change_type"]
    assert views["hops"].columns == ["src", "dst", "_change_type", "_multiplicity"]
    with pytest.raises(CrownError, match="CROWN-VIEW-UNKNOWN"):
        views["nowhere"]
    with pytest.raises(CrownError, match="CROWN-VIEW-UNKNOWN"):
        views.start({"nowhere": {"parquet": "x"}}, checkpoint=str(tmp_path / "c"))
    with pytest.raises(PlanError, match="CROWN-SINK-TARGET"):
        views.start({"hops": {}}, checkpoint=str(tmp_path / "c"))
    with pytest.raises(SchemaError, match="circle"):
        maintain(spark, {"a": "SELECT * FROM b", "b": "SELECT * FROM a"}, feed.tables(spark), cells=2)
    with pytest.raises(SchemaError, match="CROWN-SCHEMA-DUPLICATE"):
        maintain(spark, {"g": "SELECT src FROM g", "h": DEGREES}, feed.tables(spark), cells=2)


def test_a_snapshot_has_the_order_of_its_view(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    views = {
        "degrees": "SELECT src, COUNT(*) AS n FROM g GROUP BY src ORDER BY n DESC, src",
        "best": "SELECT n, src AS who FROM degrees ORDER BY n DESC, who DESC LIMIT 4",
        "hops": "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src ORDER BY b.dst, a.src DESC",
    }
    judge = Judge(DEGREES, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write(random_changes(random.Random(f"{SEED}:order"), judge.tables, 60))
    sinks: dict[str, Any] = {name: lambda deltas, batch: None for name in views}
    checkpoint = str(tmp_path / "checkpoint")
    started = maintain(spark, views, feed.tables(spark), cells=cells).start(
        sinks, checkpoint=checkpoint, trigger={"availableNow": True}
    )
    started.awaitTermination()
    keys: dict[str, Any] = {
        "degrees": lambda row: (-row[1], row[0]),
        "best": lambda row: (-row[0], -row[1]),
        "hops": lambda row: (row[1], -row[0]),
    }
    for name, key in keys.items():
        rows = [tuple(row) for row in snapshot(spark, checkpoint, view=name).collect()]
        assert len(rows) > 3
        assert rows == sorted(rows, key=key), name


def double(x: int) -> int:
    return 2 * x


@pytest.mark.parametrize("engine", ["jvm", "python"], indirect=True)
def test_views_call_python_functions(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    """Equal calls of several views are computed once, as one column of the table."""
    views = {
        "sums": "SELECT src, SUM(twice(dst)) AS s FROM g GROUP BY src",
        "hops": "SELECT 2 * a.src AS src, twice(b.dst) AS dst FROM edges a JOIN g b ON a.dst = b.src",
        "large": "SELECT src, s FROM sums WHERE s > 10",
    }
    names = {"edges": "SELECT src, dst FROM g WHERE twice(dst) > 2"}
    plain = {
        "sums": "SELECT src, SUM(2 * dst) AS s FROM g GROUP BY src",
        "hops": "SELECT 2 * a.src AS src, 2 * b.dst AS dst FROM g a JOIN g b ON a.dst = b.src WHERE 2 * a.dst > 2",
    }
    plain["large"] = f"SELECT src, s FROM ({plain['sums']}) AS sums WHERE s > 10"
    judges = {name: Judge(sql, GRAPH) for name, sql in plain.items()}
    feed = Feed(tmp_path / "in", judges["hops"])
    changes = random_changes(random.Random(f"{SEED}:functions"), judges["hops"].tables, 40)
    feed.write(changes)
    for judge in judges.values():
        judge.apply(changes)
    functions = {"twice": crown.function(double, returns="BIGINT", arguments=["BIGINT"])}
    maintained = maintain(spark, views, feed.tables(spark), names=names, functions=functions, cells=2)
    sinks = {name: {"parquet": str(tmp_path / name)} for name in views}
    maintained.start(sinks, checkpoint=str(tmp_path / "c"), trigger={"availableNow": True}).awaitTermination()
    check_sinks(spark, judges, tmp_path)
    over = {**views, "large": "SELECT twice(s) AS s FROM sums"}
    with pytest.raises(PlanError, match=r"CROWN-SPARK-FUNCTION[\s\S]*s is not a column of one table"):
        maintain(spark, over, feed.tables(spark), names=names, functions=functions, cells=2)


def test_what_several_views_can_not_do(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", Judge(DEGREES, GRAPH))
    feed.write([])
    tables = feed.tables(spark)
    with pytest.raises(PlanError, match="CROWN-ARGUMENT"):
        maintain(spark, {}, tables, cells=1)
    with pytest.raises(SchemaError, match="CROWN-SCHEMA-DUPLICATE"):
        maintain(spark, VIEWS, tables, names={"Hops": DEGREES}, cells=1)
    with pytest.raises(SqlError, match=r"view hops can't be used: .*scr"):
        maintain(spark, {**VIEWS, "hops": "SELECT scr FROM g"}, tables, cells=1)


SCRIPT = """
import os, signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
from crown.spark import configure, maintain
from crown.spark.sinks.parquet import ParquetTarget
from tests.spark.streams import stream
from tests.spark.test_many_views import VIEWS

base, deadly = Path(sys.argv[1]), sys.argv[2]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name in ("spark.driver.host", "spark.driver.bindAddress"):
    builder = builder.config(name, "127.0.0.1")
spark = configure(builder, cells=2).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
apply = ParquetTarget.apply

def dying(self, deltas, batch):
    apply(self, deltas, batch)
    if self._path.endswith("degrees") and batch == int(deadly):
        os.killpg(os.getpgrp(), signal.SIGKILL)

ParquetTarget.apply = dying
sinks = {name: {"parquet": str(base / name)} for name in VIEWS}
views = maintain(spark, VIEWS, {"g": stream(spark, base / "in" / "g")}, cells=2)
views.start(sinks, checkpoint=str(base / "c"), trigger={"availableNow": True}).awaitTermination()
"""


def run(directory: Path, deadly: int) -> int:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with (directory / f"log{deadly}").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(directory), str(deadly)],
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(directory)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return ended_within(process, 600)


@pytest.mark.slow  # `test_pipeline_views` kills a pipeline so in the default run
def test_killed_between_two_sinks(spark: SparkSession, tmp_path: Path) -> None:
    """One sink has the batch, the next has not: the stream goes on, and all are at the same version."""
    rng = random.Random(f"{SEED}:many views")
    judges = {name: Judge(sql, GRAPH) for name, sql in ALONE.items()}
    feed = Feed(tmp_path / "in", judges["hops"])
    for _ in range(2):
        changes = random_changes(rng, judges["hops"].tables, 20)
        feed.write(changes)
        for judge in judges.values():
            judge.apply(changes)
    assert run(tmp_path, 0) == -signal.SIGKILL, (tmp_path / "log0").read_text()[-3000:]
    assert run(tmp_path, -1) == 0, (tmp_path / "log-1").read_text()[-3000:]
    check_sinks(spark, judges, tmp_path)
