"""`crown run`: a pipeline from a file, stopped by Ctrl-C, gone on with, and refused when its query changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crown.errors import SchemaError, StateError
from crown.spark import Pipeline, read_materialized
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, wait_until
from tests.support.judge import Change, Judge, multiset

pytestmark = pytest.mark.spark

TOML = """
query = "{query}"
checkpoint = "checkpoint"
master = "local[2]"
cells = 2
trigger = "{trigger}"

[tables.g]
format = "parquet"
path = "in/g"
schema = "src BIGINT, dst BIGINT"
files_per_batch = 1

[sink]
format = "materialized"
path = "table"

[spark]
"spark.ui.enabled" = "false"
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.sql.streaming.checkpoint.fileChecksum.enabled" = "false"
"""


def write(directory: Path, trigger: str, query: str = GRAPH_QUERIES[0]) -> Path:
    file = directory / "pipeline.toml"
    file.write_text(TOML.format(query=query, trigger=trigger))
    return file


def command(file: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from crown.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "run", "--plain", str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_stop_go_on_and_refuse(spark: SparkSession, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    history = [[Change("g", (1, 2)), Change("g", (2, 3))], [Change("g", (3, 4))]]
    feed.write(history[0])
    running = command(write(tmp_path, "1 second"))
    try:
        commits = tmp_path / "checkpoint" / "commits"
        assert wait_until(lambda: (commits / "0").exists() or running.poll() is not None, seconds=300)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 0, errors[-2000:]
    assert "stopping" in output
    feed.write(history[1])
    output, errors = (again := command(write(tmp_path, "available"))).communicate(timeout=400)
    assert again.returncode == 0, errors[-2000:]
    assert "updates/s" in output
    assert "lambda" in output
    for changes in history:
        judge.apply(changes)
    table = read_materialized(spark, str(tmp_path / "table"))
    assert multiset(map(tuple, table.collect())) == judge.result
    changed = Pipeline.read(write(tmp_path, "available", GRAPH_QUERIES[0] + " WHERE a.src > 1"))
    with pytest.raises(StateError, match="query was"):
        changed.start(spark)


def test_mistakes_in_the_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    for text, message in (
        ("query = ", "can't be read"),
        ("querry = 'x'", "querry"),
        ("query = 'SELECT 1'", "no checkpoint"),
        ("query='x'\ncheckpoint='c'\n[tables.g]\npath='p'\n[sink]\nformat='console'", "no format"),
    ):
        file.write_text(text)
        with pytest.raises(SchemaError, match=message):
            Pipeline.read(file)
