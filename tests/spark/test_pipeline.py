"""`crown run`: a pipeline from a file, stopped by Ctrl-C, gone on with, and refused when its query changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crown.errors import CrownError, SqlError, StateError
from crown.spark import Pipeline, read_materialized
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed
from tests.spark.terminal import Terminal
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
"spark.ui.enabled" = false
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.sql.streaming.checkpoint.fileChecksum.enabled" = "false"
"""
PROGRAM = "from crown.cli import main; main()"


def write(directory: Path, trigger: str, query: str = GRAPH_QUERIES[0]) -> Path:
    file = directory / "pipeline.toml"
    file.write_text(TOML.format(query=query, trigger=trigger))
    return file


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def command(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "run", "--plain", str(file)],
        env=environment(),
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
        assert running.stdout is not None
        output = ""
        while "updates/s" not in output and (line := running.stdout.readline()):
            output += line
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 130, errors[-2000:]
    assert errors == "stopped; the next run continues from here\n"
    assert f"Spark's log: {tmp_path / 'checkpoint.log'}" in output
    assert "a change goes to: g: 1.5 of 2 cells on average" in output
    assert "counter changes/update" in output
    assert "lambda" not in output
    feed.write(history[1])
    # `test_pipeline_views` goes on with the command.
    Pipeline.read(write(tmp_path, "available")).start(spark).awaitTermination()
    for changes in history:
        judge.apply(changes)
    table = read_materialized(spark, str(tmp_path / "table"))
    assert multiset(map(tuple, table.collect())) == judge.result
    changed = Pipeline.read(write(tmp_path, "available", GRAPH_QUERIES[0] + " WHERE a.src > 1"))
    with pytest.raises(StateError, match="query was"):
        changed.start(spark)
    # Other aliases and spaces are the same query.
    renamed = GRAPH_QUERIES[0].replace("a.", "x.").replace("g a", "g  x")
    Pipeline.read(write(tmp_path, "available", renamed)).start(spark).awaitTermination()


def test_a_typo_leaves_the_checkpoint_free(spark: SparkSession, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2)), Change("g", (2, 3))])
    with pytest.raises(SqlError, match="scr"):
        Pipeline.read(write(tmp_path, "available", GRAPH_QUERIES[0].replace("a.src", "a.scr"))).start(spark)
    assert not (tmp_path / "checkpoint").exists()
    # A note without a query that ever ran, as earlier versions left it, binds nobody.
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "crown.json").write_text('{"query": "SELCT", "cells": 7}')
    Pipeline.read(write(tmp_path, "available")).start(spark).awaitTermination()
    assert read_materialized(spark, str(tmp_path / "table")).collect() == [(1, 3)]


@pytest.mark.slow  # `test_sources` sets them aside in the default run
def test_malformed_lines_are_counted_as_rejected(tmp_path: Path, quick_python: str) -> None:
    (tmp_path / "in" / "g").mkdir(parents=True)
    lines = [
        '{"src": 1, "dst": 2}',
        "not json",
        '{"src": "x", "dst": 2}',
        '{"src": 9, "dst": 9, "_change_type": "delete"}',
    ]
    (tmp_path / "in" / "g" / "a.json").write_text("\n".join(lines))
    file = write(tmp_path, "available")
    text = file.read_text().replace('format = "parquet"', 'format = "json"', 1)
    file.write_text('on_invalid = "quarantine"\nrejects = "rejects"\n' + text)
    output, errors = (running := command(file)).communicate(timeout=400)
    assert running.returncode == 0, errors[-2000:]
    assert "rejected 3" in output, output


def test_an_error_of_spark_is_one_of_crown_and_names_the_log(tmp_path: Path, quick_python: str) -> None:
    (tmp_path / "in" / "g").mkdir(parents=True)
    (tmp_path / "in" / "g" / "a.parquet").write_bytes(b"this is not Parquet")
    output, errors = (running := command(write(tmp_path, "available"))).communicate(timeout=400)
    assert running.returncode == 2, (output, errors[-2000:])
    assert errors.startswith("[CROWN-SOURCE-FILE]"), errors
    assert "Traceback" not in errors
    assert "\tat " not in errors


def test_mistakes_in_the_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    for text, message in (
        ("query = ", "can't be read"),
        ("querry = 'x'", "querry"),
        ("query = 'SELECT 1'", "no checkpoint"),
        ("query='x'\ncheckpoint='c'\n[tables.g]\npath='p'\n[sink]\nformat='console'", "no format"),
    ):
        file.write_text(text)
        with pytest.raises(CrownError, match=message):
            Pipeline.read(file)


# What is on the screen or the disk when Ctrl-C comes: nothing, Java starting, the query starting, a
# batch done. The last is `test_console`'s in the default run.
LATER = ("Spark's log", "java", "checkpoint/offsets/0", "checkpoint/commits/0")
MOMENTS = ["at once", *(pytest.param(moment, marks=pytest.mark.slow) for moment in LATER)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_in_a_terminal_ends_in_one_line(tmp_path: Path, quick_python: str, moment: str) -> None:
    feed = Feed(tmp_path / "in", Judge(GRAPH_QUERIES[0], GRAPH))
    for _ in range(3):
        feed.write([Change("g", (1, 2)), Change("g", (2, 3))])
    file = write(tmp_path, "1 second")
    with Terminal([sys.executable, "-c", PROGRAM, "run", str(file)], environment()) as terminal:
        terminal.wait_for(moment, tmp_path)
        terminal.press_ctrl_c()
        code, screen = terminal.finish()
    assert code == 130, screen
    last = [line for line in screen.splitlines() if line.strip()][-1]
    assert "stopped" in last, screen
    for sign in ("Traceback", "Py4J", "py4j", "Exception", "\tat ", "WARN", "ERROR", "Aborted"):
        assert sign not in screen, screen


def test_two_ctrl_c_end_it_too(tmp_path: Path, quick_python: str) -> None:
    feed = Feed(tmp_path / "in", Judge(GRAPH_QUERIES[0], GRAPH))
    feed.write([Change("g", (1, 2)), Change("g", (2, 3))])
    with Terminal([sys.executable, "-c", PROGRAM, "run", str(write(tmp_path, "1 second"))], environment()) as terminal:
        terminal.wait_for("java", tmp_path)
        terminal.press_ctrl_c()
        terminal.press_ctrl_c()
        code, screen = terminal.finish()
    assert code == 130, screen
    assert "Traceback" not in screen
