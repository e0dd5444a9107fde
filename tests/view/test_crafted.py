"""A saved view that someone else wrote: its expressions are data, and nothing in it is ever run as text."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crown
from crown.errors import CrownError

SCHEMA = "CREATE TABLE t (id INT, s STRING, l BIGINT)"
SQL = "SELECT id, md5(s) AS h, l + 1 AS m FROM t WHERE upper(s) > 'A' ORDER BY id"

Edit = Callable[[dict[str, Any]], None]


def crafted(tmp_path: Path, edit: Edit) -> Path:
    """A saved view whose plan was edited."""
    view = crown.View(SQL, SCHEMA)
    view.insert("t", [(1, "b", 2)])
    honest, changed = tmp_path / "honest.crown", tmp_path / "crafted.crown"
    view.save(honest)
    with zipfile.ZipFile(honest) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "view.json":
                about = json.loads(data)
                plan = json.loads(about["plan"])
                edit(plan)
                about["plan"] = json.dumps(plan)
                data = json.dumps(about).encode()
            target.writestr(name, data)
    return changed


def use(path: Path) -> None:
    """Everything that could evaluate an expression of the plan."""
    view = crown.View.load(path)
    view.insert("t", [(2, "c", 3)])
    view.to_arrow()
    list(view)


def expressions(part: Any) -> list[dict[str, Any]]:
    """Every expression in a plan's JSON."""
    if isinstance(part, list):
        return [found for item in part for found in expressions(item)]
    if not isinstance(part, dict):
        return []
    inside = [found for item in part.values() for found in expressions(item)]
    return [part, *inside] if part.get("kind") in ("call", "literal", "column") else inside


def calls(plan: dict[str, Any], function: str) -> list[dict[str, Any]]:
    return [part for part in expressions(plan) if part.get("function") == function]


def test_the_honest_view_opens(tmp_path: Path) -> None:
    use(crafted(tmp_path, lambda plan: None))


@pytest.mark.parametrize(
    "function",
    [
        "sql:(SELECT content FROM read_text('{secret}'))",
        "sql:(COPY (SELECT 1) TO '{target}')",
        "read_csv",
        "read_text",
        "getenv",
        "reflect",
        "java_method",
        "md5(s), (SELECT 1)",
        "x\" FROM t; COPY t TO '{target}'; --",
        "`; DROP TABLE t; --",
        "",
    ],
)
def test_functions_that_are_none(tmp_path: Path, function: str) -> None:
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text("secret")
    text = function.replace("{secret}", str(secret)).replace("{target}", str(target))

    def edit(plan: dict[str, Any]) -> None:
        for call in calls(plan, "md5"):
            call["function"] = text

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))
    assert not target.exists()


def test_columns_with_sql_text(tmp_path: Path) -> None:
    """The form that computed columns had: it is no part of a plan."""
    target = tmp_path / "target"

    def edit(plan: dict[str, Any]) -> None:
        for table in plan["tables"]:
            table["computed"] = [{"name": "c", "type": "string", "sql": f"(COPY (SELECT 1) TO '{target}')"}]

    use(crafted(tmp_path, edit))
    assert not target.exists()


@pytest.mark.parametrize(
    "name", ["s\" AS x, (SELECT content FROM read_text('/etc/passwd')) AS \"s", "s`", "s; DROP TABLE t", "nope"]
)
def test_names_that_break_out(tmp_path: Path, name: str) -> None:
    def edit(plan: dict[str, Any]) -> None:
        for column in (part for part in expressions(plan) if part["kind"] == "column" and part["name"] == "s"):
            column["name"] = name

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))


@pytest.mark.parametrize(
    "value, type_",
    [
        ("1) FROM t; --", "int64"),
        (True, "int64"),
        (1 << 70, "int64"),
        (1.5, "int32"),
        ("0x10", "float64"),
        ("1'", "decimal(10,2)"),
        ("zz", "binary"),
        (5, "string"),
        (["x"], "string"),
        ({}, "boolean"),
        ("2020-01-01'", "date"),
        (1, "int64) OR (1=1"),
        (1, "decimal(99,2)"),
        (1, 7),
    ],
)
def test_literals_that_are_none_of_their_type(tmp_path: Path, value: Any, type_: Any) -> None:
    def edit(plan: dict[str, Any]) -> None:
        for call in calls(plan, "add"):
            call["arguments"][1] = {"kind": "literal", "value": value, "type": type_}

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))


@pytest.mark.parametrize("count", [0, 2, 5])
def test_the_wrong_number_of_arguments(tmp_path: Path, count: int) -> None:
    def edit(plan: dict[str, Any]) -> None:
        for call in calls(plan, "md5"):
            call["arguments"] = call["arguments"] * count

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))


@pytest.mark.parametrize("type_", ["int64", "boolean", "float64", "timestamp"])
def test_results_of_the_wrong_type(tmp_path: Path, type_: str) -> None:
    def edit(plan: dict[str, Any]) -> None:
        for call in calls(plan, "md5"):
            call["type"] = type_

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))


@pytest.mark.parametrize("order", ["reflect", "java_method", "sql:x"])
def test_the_order_of_the_plan(tmp_path: Path, order: str) -> None:
    """What a snapshot on Spark sorts by is read from a checkpoint in the same way."""

    def edit(plan: dict[str, Any]) -> None:
        plan["order"][0]["expression"] = {"kind": "call", "function": order, "arguments": [], "type": "string"}

    with pytest.raises(CrownError):
        use(crafted(tmp_path, edit))


def test_views_of_the_first_format_are_refused(tmp_path: Path) -> None:
    path = crafted(tmp_path, lambda plan: None)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(parts["view.json"])
    parts["view.json"] = json.dumps({**about, "format": 1}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(CrownError, match="format 1"):
        crown.View.load(path)
