"""`crown run` with several views: one stream, a sink for each, killed and continued, refused when the views change."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

from crown.errors import StateError
from crown.spark import Pipeline, read_materialized, snapshot
from tests.conftest import SEED
from tests.spark.streams import GRAPH, Feed, ended_within, history_of
from tests.spark.terminal import Terminal
from tests.support.browser import WHY_NOT, browser
from tests.support.judge import Judge, multiset

pytestmark = pytest.mark.spark

DEGREES = "SELECT src, COUNT(*) AS n FROM g GROUP BY src"
HOPS = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
ALONE = {
    "best": f"SELECT src, n FROM ({DEGREES}) AS degrees ORDER BY n DESC, src LIMIT 3",
    "degrees": DEGREES,
    "hops": HOPS,
}
TOML = """
name = "three views"
checkpoint = "checkpoint"
master = "local[2]"
cells = 2
trigger = "{trigger}"

[tables.g]
format = "parquet"
path = "in/g"
schema = "src BIGINT, dst BIGINT"
files_per_batch = 1
rows = 1000

[views.best]
query = "SELECT src, n FROM degrees ORDER BY n DESC, src LIMIT 3"

[views.degrees]
file = "degrees.sql"

[views.hops]
query = "SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src"

[views.edges]
query = "SELECT * FROM g"

[sink]
format = "materialized"
path = "out/{{view}}"
views = ["best", "degrees", "hops"]

[spark]
"spark.ui.enabled" = false
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"""
PROGRAM = "from crown.cli import main; main()"


def write(directory: Path, trigger: str = "available", *changes: tuple[str, str]) -> Path:
    (directory / "degrees.sql").write_text(DEGREES + ";\n")
    file = directory / "pipeline.toml"
    text = TOML.format(trigger=trigger)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return file


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}


class History:
    """Batches of changes in files, and what each view then is."""

    def __init__(self, directory: Path, name: str, batches: int) -> None:
        self.directory = directory
        self.judges = {view: Judge(sql, GRAPH) for view, sql in ALONE.items()}
        feed = Feed(directory / "in", self.judges["hops"])
        self.history = history_of(random.Random(f"{SEED}:{name}"), self.judges["hops"], batches, size=20)
        for changes in self.history:
            feed.write(changes)
            for judge in self.judges.values():
                judge.apply(changes)
        self.batches = batches

    def check(self, spark: SparkSession) -> None:
        """All sinks are at the last version, and equal to what DuckDB answers."""
        for name, judge in self.judges.items():
            path = str(self.directory / "out" / name)
            rows = read_materialized(spark, path, version=self.batches - 1).collect()
            assert multiset(map(tuple, rows)) == judge.result, name


def test_the_command_runs_stops_and_goes_on(spark: SparkSession, tmp_path: Path, quick_python: str) -> None:
    history = History(tmp_path, "pipeline views", 2)
    last = tmp_path / "in" / "g" / "000001.parquet"
    shutil.move(last, tmp_path / "later.parquet")
    file = write(tmp_path, "1 second")
    with Terminal([sys.executable, "-c", PROGRAM, "run", "--console", str(file)], environment()) as terminal:
        terminal.wait_for("checkpoint/commits/0", tmp_path)
        terminal.wait_for("in 1 batch", tmp_path)
        if not WHY_NOT:
            look(re.findall(r"http://127\S+", terminal.screen)[0])
        terminal.press_ctrl_c()
        code, screen = terminal.finish()
    assert code == 130, screen
    for words in ("three views", "best, degrees, hops over g", f"materialized {tmp_path / 'out' / 'hops'}"):
        assert words in screen, screen
    for sign in ("Traceback", "Py4J", "Exception", "WARN", "ERROR"):
        assert sign not in screen, screen
    shutil.move(tmp_path / "later.parquet", last)
    command = [sys.executable, "-c", PROGRAM, "run", "--plain", str(write(tmp_path))]
    again = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    rows = {name: sum(judge.result.values()) for name, judge in history.judges.items()}
    for name, count in rows.items():
        assert re.search(rf"^  {name}: [\d,]+ deltas, {count:,} rows$", again.stdout, re.MULTILINE), again.stdout
    history.check(spark)
    for name, judge in history.judges.items():
        found = snapshot(spark, str(tmp_path / "checkpoint"), view=name).toArrow()
        judge.check_result(found, where=f"snapshot of {name}")
        if name == "best":
            assert [tuple(row.values()) for row in found.to_pylist()] == sorted(
                judge.result.elements(), key=lambda row: (-row[1], row[0])
            ), "in the view's order"


def look(url: str) -> None:
    with browser() as page:
        page.resize(1280, 900)
        page.open(url)
        page.wait_for("Number(document.body.dataset.frames || 0) >= 2")
        text = page.text()
        for words in ("three views", "best", "degrees", "hops"):
            assert words in text, text
        page.click("#tab-rows")
        page.wait_for("document.querySelectorAll('#rows-body tbody tr').length > 0")
        assert page.errors() == []


def test_other_views_are_refused_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    History(tmp_path, "other views", 1)
    Pipeline.read(write(tmp_path)).start(spark).awaitTermination()
    aliases = (
        "SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst",
        "SELECT a.src, b.dst FROM g a JOIN edges b ON a.dst",
    )
    for same in ((), (aliases,), (('"best", "degrees", "hops"]', '"hops", "degrees", "best"]'),)):
        Pipeline.read(write(tmp_path, "available", *same)).start(spark).awaitTermination()
    more = '[views.more]\nquery = "SELECT src FROM best"\n[views.edges]'
    changed: dict[str, list[tuple[str, str]]] = {
        "the view more is new": [("[views.edges]", more), ('"hops"]', '"hops", "more"]')],
        "the view best is gone": [("[views.edges]", more), ('["best", ', '["more", ')],
        "the query of view hops was": [("b.dst FROM", "b.src AS dst FROM")],
        "cells was 2, now 1": [("cells = 2", "cells = 1")],
    }
    for reason, changes in changed.items():
        refused(spark, tmp_path, Pipeline.read(write(tmp_path, "available", *changes)), reason)
    lone = re.sub(r"\[views.best\][\s\S]*\[sink\]", "[sink]", TOML.format(trigger="available"))
    lone = f'query = "{DEGREES}"' + re.sub(r"\nviews = .*", "", lone)
    (tmp_path / "pipeline.toml").write_text(lone)
    with pytest.raises(StateError, match=r"CROWN-STATE-OTHER-PLAN[\s\S]*it was of several views, now of one"):
        Pipeline.read(tmp_path / "pipeline.toml").start(spark)


def refused(spark: SparkSession, directory: Path, pipeline: Pipeline, reason: str) -> None:
    """By the note in the checkpoint, and without it by the state itself."""
    with pytest.raises(StateError, match=rf"CROWN-STATE-OTHER-PLAN[\s\S]*{reason}"):
        pipeline.start(spark)
    note = directory / "checkpoint" / "crown.json"
    shutil.move(note, directory / "note")
    with pytest.raises(StateError, match=r"CROWN-STATE-OTHER-PLAN[\s\S]*(the view|of a view|several views|cells was)"):
        pipeline.start(spark)
    shutil.move(directory / "note", note)


# `crown run` whose process group dies after the sink of a view has taken a batch.
DYING = """
import os, signal, sys
from crown.spark.sinks.parquet import ParquetTarget

view, deadly = sys.argv[1], int(sys.argv[2])
apply = ParquetTarget.apply

def dying(self, deltas, batch):
    apply(self, deltas, batch)
    if batch == deadly and self._path.endswith(view):
        os.killpg(os.getpgrp(), signal.SIGKILL)

ParquetTarget.apply = dying
sys.argv = ["crown", "run", "--plain", sys.argv[3]]
from crown.cli import main
main()
"""


def run_until_killed(directory: Path, file: Path, view: str, batch: int) -> None:
    log = directory / f"log-{view}-{batch}"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", DYING, view, str(batch), str(file)],
            env={**environment(), "TMPDIR": str(directory)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        code = ended_within(process, 900)
    assert code == -signal.SIGKILL, log.read_text()[-3000:]


@pytest.mark.parametrize("first", [(), pytest.param(("best",), marks=pytest.mark.slow)], ids=str)
def test_killed_between_the_sinks_of_a_batch(
    spark: SparkSession, tmp_path: Path, quick_python: str, first: tuple[str, ...]
) -> None:
    """Some sinks have the batch and others have not: after a restart all are at one version."""
    history = History(tmp_path, "killed pipeline", 2)
    file = write(tmp_path, "available", ("cells = 2", "cells = 1"))
    for view in first:
        run_until_killed(tmp_path, file, view, 0)
    run_until_killed(tmp_path, file, "degrees", 1)
    versions = {name: _versions(tmp_path / "out" / name) for name in ALONE}
    assert versions == {"best": 2, "degrees": 2, "hops": 1}, "it died between two sinks"
    Pipeline.read(file).start(spark).awaitTermination()
    assert {name: _versions(tmp_path / "out" / name) for name in ALONE} == dict.fromkeys(ALONE, 2)
    history.check(spark)


def _versions(path: Path) -> int:
    return len(list(path.glob("_versions/*/0*.json")))


ROOT = Path(__file__).parents[2]
LATER = {
    "raw_orders": "id,user_id,order_date,status\n4,2,2024-01-05,returned\n5,2,2024-01-09,placed\n",
    "raw_payments": "id,order_id,payment_method,amount\n6,5,credit_card,4200\n",
}


def test_compiled_models_of_dbt_run_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    project = tmp_path / "dbt"
    shutil.copytree(ROOT / "examples" / "dbt", project)
    pipeline = Pipeline.read(project / "pipeline.toml")
    pipeline.start(spark).awaitTermination()
    tables = {path.name: csv.read_csv(path / "1.csv") for path in (project / "changes").iterdir()}
    check_models(spark, project, tables)
    for name, text in LATER.items():
        (project / "changes" / name / "2.csv").write_text(text)
        new = csv.read_csv(project / "changes" / name / "2.csv")
        replaced = pc.is_in(tables[name]["id"], value_set=new["id"].combine_chunks())
        tables[name] = pa.concat_tables([tables[name].filter(pc.invert(replaced)), new])
    pipeline.start(spark).awaitTermination()
    check_models(spark, project, tables)


def check_models(spark: SparkSession, project: Path, tables: dict[str, pa.Table]) -> None:
    """What DuckDB makes of the same files."""
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS jaffle_shop; USE jaffle_shop.main")
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
        for model in [*sorted(project.glob("compiled/staging/*")), *sorted(project.glob("compiled/marts/*"))]:
            connection.execute(f"CREATE VIEW {model.stem} AS {model.read_text()}")
        for name in ("customers", "orders"):
            found = read_materialized(spark, str(project / "out" / name)).collect()
            assert multiset(map(tuple, found)) == multiset(connection.execute(f"FROM {name}").fetchall()), name


def test_sinks_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    """Files get the deltas of each batch, with its number and their position."""
    history = History(tmp_path, "kinds", 2)
    changes = [
        ('views = ["best", "degrees", "hops"]', 'views = ["hops"]'),
        ('"degrees.sql"', '"degrees.sql"\nsink = {format = "json", path = "deltas"}'),
        ('LIMIT 3"', 'LIMIT 3"\nsink = {format = "noop"}'),
    ]
    Pipeline.read(write(tmp_path, "available", *changes)).start(spark).awaitTermination()
    rows = read_materialized(spark, str(tmp_path / "out" / "hops")).collect()
    assert multiset(map(tuple, rows)) == history.judges["hops"].result
    deltas = spark.read.json(str(tmp_path / "deltas"))
    assert deltas.select("_batch", "_position").distinct().count() == deltas.count() > 0
    found = (
        deltas.selectExpr("src", "n", "IF(_change_type = 'insert', 1, -1) AS w").groupBy("src", "n").sum("w").collect()
    )
    assert {(row[0], row[1]): row[2] for row in found if row[2]} == dict(history.judges["degrees"].result)
