"""Errors that no other test meets, each raised the way a user would, by its code."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown import plan, workload
from crown.cli.command import run_command
from crown.errors import CrownError
from crown.sql import load_schema, parse

SCHEMA = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT, c STRING);
CREATE TABLE s (a BIGINT NOT NULL, d BIGINT);
CREATE TABLE t (bytes BINARY)
"""
QUERIES = {
    "CROWN-SQL-IN-COLUMNS": "SELECT a FROM r WHERE a IN (SELECT a, d FROM s)",
    "CROWN-SQL-MATCH-RECOGNIZE": (
        "SELECT * FROM r MATCH_RECOGNIZE (ORDER BY a MEASURES LAST(x.a) AS e PATTERN (x+) DEFINE x AS a > 1)"
    ),
    "CROWN-SQL-PATTERN": "SELECT a FROM r WHERE c RLIKE '(?<=x)(?=y)['",
    "CROWN-SQL-SORT": "SELECT a FROM r SORT BY a",
    "CROWN-SQL-TOO-MANY-BRANCHES": "SELECT 1 FROM "
    + ", ".join(f"({' UNION ALL '.join(['SELECT a FROM r'] * 5)}) AS x{i}" for i in range(3)),
    "CROWN-SQL-TUPLE": "SELECT a FROM r WHERE (a, b) < 1",
    "CROWN-SQL-UNKNOWN-TYPE": "SELECT CAST(a AS INTERVAL) FROM r",
}


@pytest.mark.parametrize("code", QUERIES)
def test_queries(code: str) -> None:
    dialect = "snowflake" if "MATCH" in code else "spark"
    assert raised(lambda: crown.View(QUERIES[code], SCHEMA, dialect=dialect)) == code


def raised(action: Callable[[], Any]) -> str:
    with pytest.raises(CrownError) as caught:
        action()
    return caught.value.code


def view(sql: str = "SELECT a, b FROM r") -> crown.View:
    return crown.View(sql, SCHEMA)


def test_arguments() -> None:
    assert raised(lambda: crown.View("SELECT a FROM r", SCHEMA, threads=0)) == "CROWN-ARGUMENT"
    assert raised(lambda: crown.View.from_plan("a plan")) == "CROWN-ARGUMENT"  # type: ignore[arg-type]
    assert raised(lambda: view().multiplicity([1, 2])) == "CROWN-ARGUMENT"  # type: ignore[arg-type]


def test_schemas() -> None:
    assert raised(lambda: load_schema("CREATE VIEW v")) == "CROWN-SCHEMA-VIEW"


def test_plans() -> None:
    planned = plan.plan(parse("SELECT a FROM r", load_schema(SCHEMA)))
    assert raised(lambda: plan.distribute(planned, 0)) == "CROWN-PLAN-CELLS"
    assert raised(lambda: crown.View.from_plan(planned).explain()) == "CROWN-PLAN-EXPLAIN"
    later = json.loads(plan.to_json(planned)) | {"version": 99}
    assert raised(lambda: crown.View.from_plan(plan.from_json(json.dumps(later)))) == "CROWN-PLAN-VERSION"


def test_changes() -> None:
    assert raised(lambda: view().advance("r", 1)) == "CROWN-CHANGE-WINDOW"
    text = view("SELECT UPPER(CAST(bytes AS STRING)) AS u FROM t")
    assert raised(lambda: text.insert("t", [(b"\xff",)])) == "CROWN-UTF8"


def test_saved_views_of_another_format(tmp_path: Path) -> None:
    view().save(tmp_path / "view")
    with zipfile.ZipFile(tmp_path / "view") as old, zipfile.ZipFile(tmp_path / "later", "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename.endswith(".json"):
                data = json.dumps(json.loads(data) | {"format": 99}).encode()
            new.writestr(member, data)
    assert raised(lambda: crown.View.load(tmp_path / "later")) == "CROWN-STATE-FORMAT"


def test_workloads(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("one\ntwo\n")
    assert raised(lambda: workload.read_edges(tmp_path / "edges.txt")) == "CROWN-DATA-FILE"
    assert raised(lambda: workload.read_social_network(tmp_path)) == "CROWN-DATA-FILE"
    assert raised(lambda: workload.profile(tmp_path / "missing.parquet")) == "CROWN-LOG"
    assert raised(lambda: workload.profile(pa.table({"a": [1]}))) == "CROWN-LOG"


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["explain", "missing.sql"], "CROWN-FILE"),
        (["explain", "query.sql"], "CROWN-SCHEMA-MISSING"),
        (["bench", "run", "none"], "CROWN-BENCH"),
    ],
)
def test_commands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: str,
) -> None:
    (tmp_path / "query.sql").write_text("SELECT a FROM r")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["crown", *arguments])
    assert run_command() == 2
    assert capsys.readouterr().err.startswith(f"[{code}]")


def test_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["crown", "demo"])
    assert run_command() == 2
    assert capsys.readouterr().err.startswith("[CROWN-NOT-INSTALLED]")
