"""Mistakes that were accepted, or refused late or in other words than the user's."""

from __future__ import annotations

import re
from typing import Any

import pytest

import crown

SCHEMA = """
CREATE TABLE t (a INT, b INT, s STRING, ts TIMESTAMP, items ARRAY<INT>, pairs ARRAY<STRUCT<x: INT, y: INT>>);
CREATE TABLE u (a INT, b INT)
"""
REFUSED = {
    "SELECT a, a FROM t UNION ALL BY NAME SELECT a FROM u": "one side has two called a",
    "SELECT a FROM t UNION ALL BY NAME SELECT a AS x, b AS X FROM u": "one side has two called X",
    "SELECT a FROM u UNION ALL BY NAME SELECT * FROM u x JOIN u y ON x.a = y.a": "one side has two called a",
    "SELECT any_match(items, i -> i > 1) AS x FROM t": "Spark has no function any_match",
    "SELECT all_match(items, i -> i > 1) AS x FROM t": "Spark has no function all_match",
    "SELECT array_sort(items, (x, y) -> x - y) AS x FROM t": "array_sort with a function",
    "SELECT inline(pairs) FROM t": "inline is not supported",
    "SELECT stack(2, a, b) FROM t": "stack is not supported",
    "SELECT json_tuple(s, 'a', 'b') FROM t": "json_tuple is not supported",
    "SELECT v.x FROM t LATERAL VIEW inline(pairs) v AS x, y": "this LATERAL VIEW",
    "SELECT to_json(pairs) AS x FROM t": "to_json is not supported",
    "SELECT from_json(s, 'a INT') AS x FROM t": "from_json is not supported",
    "SELECT SUM(a) OVER (ORDER BY b GROUPS 1 PRECEDING) AS x FROM t": "a frame of GROUPS",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_queries(sql: str) -> None:
    with pytest.raises(crown.CrownError, match=re.escape(REFUSED[sql])) as caught:
        crown.View(sql, SCHEMA)
    assert caught.value.hint


def test_any_match_is_a_function_of_trino() -> None:
    view = crown.View("SELECT any_match(items, i -> i > 1) AS x FROM t", SCHEMA, dialect="trino")
    view.insert("t", [{"a": 1, "items": [1, 2]}])
    assert list(view) == [(True,)]


@pytest.mark.parametrize("type_", ["STRUCT<a: INT, a: INT>", "ARRAY<STRUCT<a: INT, b: INT, a: STRING>>"])
@pytest.mark.parametrize("described", [lambda t: f"CREATE TABLE r (s {t})", lambda t: {"r": {"s": t}}])
def test_a_struct_with_two_fields_of_one_name(type_: str, described: Any) -> None:
    with pytest.raises(crown.CrownError, match=r"column r\.s has a struct with two fields a"):
        crown.View("SELECT s FROM r", described(type_))


def test_a_type_that_is_nested_too_deeply() -> None:
    schema = f"CREATE TABLE r (a INT, s {'STRUCT<x: ' * 50}INT{'>' * 50})"
    assert list(crown.View("SELECT a FROM r", schema)) == []
    with pytest.raises(crown.CrownError, match="CROWN-SQL-UNKNOWN-TYPE"):
        crown.View("SELECT s FROM r", schema)


def test_sessions_by_the_name_of_an_output() -> None:
    schema = "CREATE TABLE t (a INT, ts TIMESTAMP)"
    select = "SELECT a + 1 AS g, COUNT(*) AS n FROM t GROUP BY {}, SESSION(ts, INTERVAL '5' MINUTE)"
    named, written = (crown.View(select.format(key), schema) for key in ("g", "a + 1"))
    rows = [{"a": a, "ts": f"2024-01-01 00:{m:02}:00"} for a in (1, 2) for m in (0, 3, 20)]
    for view in (named, written):
        view.insert("t", rows)
    assert sorted(named) == sorted(written) == [(2, 1), (2, 2), (3, 1), (3, 2)]


@pytest.mark.parametrize("progress", [lambda: 1, lambda done: done, lambda done, total, more: done])
def test_progress_is_called_with_two_numbers(progress: Any) -> None:
    database = crown.Database("CREATE TABLE t (a INT)")
    with pytest.raises(crown.CrownError, match="CROWN-ARGUMENT"):
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t", progress=progress)
    database.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t", progress=lambda *numbers: None)
