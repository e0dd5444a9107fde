"""`crown run`: every mistake in the file is a named error before Spark starts, and `--check` shows what would run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from crown.errors import CrownError
from crown.spark.pipeline import Pipeline
from tests.cli.conftest import Refused, checked_without_spark

GOOD = """
query = "SELECT a.src, COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src"
checkpoint = "checkpoint"
cells = 2
master = "local[2]"
trigger = "1 second"

[tables.g]
format = "parquet"
path = "in"
schema = "src BIGINT, dst BIGINT"

[sink]
format = "materialized"
path = "table"
"""


def crown(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from crown.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(directory: Path, text: str) -> Path:
    (directory / "in").mkdir(exist_ok=True)
    file = directory / "pipeline.toml"
    file.write_text(text)
    return file


def test_check_prints_plan_guarantees_state_and_leaves_nothing(tmp_path: Path) -> None:
    text = GOOD.replace('dst BIGINT"', 'dst BIGINT"\nrows = 1000000')
    finished = crown("run", "--check", str(write(tmp_path, text)))
    assert finished.returncode == 0, finished.stderr
    for word in ("GUARANTEE", "TREE", "STATE", "1,000,000 rows (declared)", "DELIVERY", "exactly once", "can run"):
        assert word in finished.stdout
    assert "g: 1.5 of 2 cells on average" in finished.stdout
    assert "suggested" in finished.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "pipeline.toml"]


def test_check_needs_no_spark(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    checked_without_spark(file)


MISTAKES = {
    "an unknown option": ("cells = 2", "cell = 2", ["cell is not an option", "did you mean 'cells'"]),
    "an unknown option of a table": ('path = "in"', 'paht = "in"', ["tables.g.paht", "did you mean 'path'"]),
    "an unknown option of the sink": ('path = "table"', 'pathh = "table"', ["sink.pathh", "did you mean 'path'"]),
    "an option of another format": ('path = "in"', 'path = "in"\ntopic = "x"', ["tables.g.topic", "options are"]),
    "a misspelt format": ('"parquet"', '"cvs"', ["tables.g.format", "'cvs'", "did you mean 'csv'"]),
    "a misspelt sink": ('"materialized"', '"materialised"', ["sink.format", "did you mean 'materialized'"]),
    "a word for a number": ("cells = 2", 'cells = "two"', ["cells is 'two'", "1 or more"]),
    "no cells": ("cells = 2", "cells = 0", ["cells is 0", "1 or more"]),
    "very many cells": ("cells = 2", "cells = 100000000", ["cells is 100000000", "at most"]),
    "a boolean for a number": ("cells = 2", "cells = true", ["cells is True", "1 or more"]),
    "a misspelt trigger": ('"1 second"', '"1 secnd"', ["trigger is '1 secnd'", "10 seconds"]),
    "a number for a trigger": ('"1 second"', "5", ["trigger is 5", "10 seconds"]),
    "a master that is none": ('"local[2]"', '"locl"', ["master is 'locl'", "local[2]"]),
    "a missing path": ('path = "in"', 'path = "inn"', ["tables.g.path", "inn", "does not exist"]),
    "no path": ('path = "in"\n', "", ["tables.g has no path"]),
    "no schema": ('schema = "src BIGINT, dst BIGINT"', "", ["tables.g has no schema"]),
    "a misspelt type": ("dst BIGINT", "dst BIGNT", ["tables.g.schema", "BIGNT"]),
    "a type that Crown lacks": ("dst BIGINT", "dst INTERVAL DAY", ["a.dst", "INTERVAL"]),
    "a key in the schema": ("src BIGINT,", "src BIGINT PRIMARY KEY,", ["tables.g.schema", "key = ['src']"]),
    "a key that is no column": ('path = "in"', 'path = "in"\nkey = "id"', ["tables.g", "id"]),
    "a window of nothing": ('path = "in"', 'path = "in"\nwindow = {row = 3}', ["tables.g"]),
    "a profile that is none": ('path = "in"', 'path = "in"\nprofile = "fifoo"', ["did you mean 'fifo'"]),
    "a missing connector": ('"parquet"\npath = "in"', '"kafka"\nservers = "h:1"\ntopic = "t"', ["spark-sql-kafka"]),
    "kafka without servers": ('"parquet"\npath = "in"', '"kafka"\ntopic = "t"', ["tables.g has no servers"]),
    "kafka without a topic": ('"parquet"\npath = "in"', '"kafka"\nservers = "h:1"', ["tables.g has no topic"]),
    "a sink without its path": ('path = "table"\n', "", ["sink has no path"]),
    "a table for PostgreSQL": ('"materialized"\npath = "table"', '"postgres"\nconnection = "x"', ["sink has no table"]),
    "a sink in a source": ('path = "table"', 'path = "in"', ["sink.path", "tables.g.path"]),
    "a sink inside a source": ('path = "table"', 'path = "in/out"', ["sink.path", "inside the path of tables.g.path"]),
    "a checkpoint inside a source": ('"checkpoint"', '"in/x/checkpoint"', ["checkpoint is inside", "tables.g.path"]),
    "rejects in the checkpoint's place": ("cells = 2", 'cells = 2\nrejects = "checkpoint"', ["checkpoint", "rejects"]),
    "a path with a NUL": ('path = "table"', 'path = "a\\u0000b"', ["sink.path", "NUL"]),
    "a path too long": ('path = "in"', f'path = "{"x" * 3000}"', ["tables.g.path", "can't be used", "too long"]),
    "a typo in the query": ("SELECT a.src", "SELCT a.src", ["the query can't be used", "SELCT"]),
    "a column that is not there": ("SELECT a.src", "SELECT a.scr", ["scr", "^"]),
    "a table that is not there": ("JOIN g b", "JOIN h b", ["h"]),
    "quarantine without a place": ("cells = 2", 'cells = 2\non_invalid = "quarantine"', ["has no rejects"]),
    "what to do with invalid changes": ("cells = 2", 'cells = 2\non_invalid = "skip"', ["raise, quarantine"]),
    "a setting that is none": ("[sink]", '[spark]\n"park.x" = 1\n[sink]', ["park.x"]),
    "a state store that Crown can't use": (
        "[sink]",
        '[spark]\n"spark.sql.streaming.stateStore.providerClass" = "x"\n[sink]',
        ["[spark] can't be used", "RocksDBStateStoreProvider"],
    ),
    "an engine that is none": ("[sink]", '[spark]\n"spark.crown.engine" = "perl"\n[sink]', ["'perl'", '"jvm"']),
    "memory that is no size": ("[sink]", '[spark]\n"spark.crown.memory" = "lots"\n[sink]', ["'lots'", "8g"]),
    "memory of the driver that is no size": (
        "[sink]",
        '[spark]\n"spark.driver.memory" = "lots"\n[sink]',
        ["[spark] can't be used", "spark.driver.memory is 'lots'", "8g"],
    ),
    "memory with a fraction": ("[sink]", '[spark]\n"spark.executor.memory" = "1.5g"\n[sink]', ["'1.5g'", "8g"]),
    "an empty path": ('path = "table"', 'path = ""', ["sink.path is empty"]),
    "a jar that is not there": ("[sink]", '[spark]\n"spark.jars" = "/no/such.jar"\n[sink]', ["/no/such.jar"]),
    "a query file that is not there": ('query = "', 'query_file = "no.sql"\n#', ["query_file", "no.sql"]),
    "no TOML": ("cells = 2", "cells = ", ["can't be read"]),
    "a file for a checkpoint": ('"checkpoint"', '"pipeline.toml"', ["checkpoint", "is a file"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_before_spark_starts(tmp_path: Path, name: str, refused: Refused) -> None:
    old, new, words = MISTAKES[name]
    assert old in GOOD
    file = write(tmp_path, GOOD.replace(old, new, 1))
    refused(file, words)


def test_a_mistake_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    finished = crown("run", str(write(tmp_path, GOOD.replace("SELECT", "SELCT"))))
    assert finished.returncode == 2
    assert finished.stderr.startswith("[CROWN-")
    assert "Traceback" not in finished.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "pipeline.toml"]


def test_a_static_parquet_table_tells_its_columns_and_rows(tmp_path: Path) -> None:
    (tmp_path / "person").mkdir()
    pyarrow.parquet.write_table(pa.table({"id": list(range(70)), "name": ["x"] * 70}), tmp_path / "person/a.parquet")
    text = GOOD.replace("FROM g a JOIN g b ON a.dst = b.src", "FROM g a JOIN person p ON a.dst = p.id")
    text = text.replace("[sink]", '[tables.person]\nformat = "parquet"\npath = "person"\nstatic = true\n[sink]')
    finished = crown("run", "--check", str(write(tmp_path, text)))
    assert finished.returncode == 0, finished.stderr
    assert "70 rows (counted)" in finished.stdout


CODES = {
    "a missing connector": "CROWN-PIPELINE-CONNECTOR",
    "no TOML": "CROWN-PIPELINE-FILE",
    "no path": "CROWN-PIPELINE-MISSING",
    "an unknown option": "CROWN-PIPELINE-OPTION",
    "a missing path": "CROWN-PIPELINE-PATH",
    "a misspelt type": "CROWN-PIPELINE-SCHEMA",
    "a key that is no column": "CROWN-PIPELINE-TABLE",
    "no cells": "CROWN-PIPELINE-VALUE",
}


@pytest.mark.parametrize("name", CODES)
def test_each_kind_of_mistake_has_a_code(tmp_path: Path, name: str) -> None:
    old, new, _ = MISTAKES[name]
    with pytest.raises(CrownError) as caught:
        Pipeline.read(write(tmp_path, GOOD.replace(old, new, 1))).check()
    assert caught.value.code == CODES[name]


def test_a_query_that_reads_the_time_can_run(tmp_path: Path) -> None:
    text = GOOD.replace('dst BIGINT"', 'dst BIGINT, at TIMESTAMP"\nrows = 1000').replace(" GROUP BY a.src", "")
    text = text.replace("SELECT a.src, COUNT(*) AS n", "SELECT a.src")
    finished = crown("run", "--check", str(write(tmp_path, text.replace('b.src"', 'b.src WHERE a.at > now()"'))))
    assert finished.returncode == 0, finished.stderr
    assert "1,000 rows (declared)" in finished.stdout
    assert "bytes per row" in finished.stdout
    assert "  crown_clock  " not in finished.stdout[finished.stdout.index("STATE\n") :]
