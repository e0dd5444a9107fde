"""Scalar functions in a view, beside tests/spark/test_functions.py: places, literals, refusals, other dialects."""

from __future__ import annotations

import datetime
import hashlib
from decimal import Decimal
from typing import Any

import pytest

import crown
from crown.errors import CrownError, InvalidChange, SqlError

SCHEMA = """CREATE TABLE t (id INT, i INT, l BIGINT, f DOUBLE, g FLOAT, p DECIMAL(6,2), s STRING, d DATE, w TIMESTAMP);
            CREATE TABLE u (id INT, x STRING)"""
MOMENT = datetime.datetime(2020, 2, 3, 4, 5, 6, 500_000)


def of(sql: str, dialect: str = "spark", **values: Any) -> Any:
    """The value of an expression for one row of `t`."""
    view = crown.View(f"SELECT id, {sql} AS v FROM t", SCHEMA, dialect=dialect)
    names = ("id", "i", "l", "f", "g", "p", "s", "d", "w")
    view.insert("t", [tuple({"id": 1, **values}.get(name) for name in names)])
    return next(iter(view))[1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT md5(max(s)) AS h FROM t GROUP BY i",
        "SELECT t.id, concat_ws('-', t.s, reverse(u.x)) AS c FROM t JOIN u ON t.id = u.id",
        "SELECT upper(md5(s)) AS h, count(*) AS n FROM t GROUP BY upper(md5(s))",
        "SELECT t.id FROM t JOIN u ON md5(t.s) = u.x",
        "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE levenshtein(t.s, coalesce(u.x, '')) < 5",
        "SELECT md5(h) AS hh FROM (SELECT md5(s) AS h, count(*) AS n FROM t GROUP BY md5(s)) q",
        "SELECT id, repeat('ab', 2) AS c FROM t",
        "SELECT id FROM t ORDER BY md5(s) LIMIT 3",
        "SELECT id FROM t ORDER BY md5(cast(id AS STRING))",
    ],
)
def test_every_function_may_stand_anywhere(sql: str) -> None:
    view = crown.View(sql, SCHEMA)
    first = (1, 1, 2, 0.5, 0.5, Decimal("1.50"), "abc", None, None)
    view.insert("t", [first, (2, 1, 2, 0.5, 0.5, None, "b", None, None)])
    view.insert("u", [(1, "x"), (2, hashlib.md5(b"abc").hexdigest())])
    assert len(list(view)) >= 1
    view.delete("t", [first])


@pytest.mark.parametrize(
    "sql, row, expected",
    [
        ("floor(f)", {"f": 9.3e18}, "CROWN-OVERFLOW"),
        ("ceil(f)", {"f": float("inf")}, "CROWN-OVERFLOW"),
        ("date_add(d, i)", {"d": datetime.date(2020, 1, 1), "i": 2**31 - 1}, "CROWN-OVERFLOW"),
        ("repeat(s, i)", {"s": "abc", "i": 2**31 - 1}, "CROWN-OVERFLOW"),
        ("lpad(s, i)", {"s": "abc", "i": 2**31 - 1}, "CROWN-OVERFLOW"),
        ("space(i)", {"i": 2**31 - 1}, "CROWN-OVERFLOW"),
        ("replace(s, 'a', repeat('b', 100000))", {"s": "a" * 100_000}, "CROWN-OVERFLOW"),
        ("CAST(s AS TIMESTAMP)", {"s": "2020-01-01 10:11:12 Europe/Berlin"}, "CROWN-CAST-UNSUPPORTED"),
        ("try_cast(s AS TIMESTAMP)", {"s": "2020-01-01 10:11:12 Europe/Berlin"}, "CROWN-CAST-UNSUPPORTED"),
        ("try_cast(s AS TIMESTAMP)", {"s": "10:11:12"}, "CROWN-CAST-UNSUPPORTED"),
        ("try_cast(s AS DECIMAL(6,2))", {"s": "٣"}, "CROWN-CAST-UNSUPPORTED"),
        ("split_part(s, ',', 0)", {"s": "a,b"}, "CROWN-FUNCTION"),
        ("next_day(d, s)", {"d": datetime.date(2020, 1, 1), "s": "day"}, "CROWN-FUNCTION"),
    ],
)
def test_values_that_raise(sql: str, row: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidChange) as caught:
        of(sql, **row)
    assert caught.value.code == expected


@pytest.mark.parametrize(
    "sql, code",
    [
        ("date_trunc('foo', w)", "INTERVAL"),
        ("trunc(d, 'day')", "INTERVAL"),
        (r"s LIKE 'a\\'", "LITERAL"),
        (r"s LIKE 'a\\b'", "LITERAL"),
        ("s LIKE 'a!' ESCAPE '!'", "LITERAL"),
        ("s RLIKE '(?i)a'", "PATTERN"),
        ("s RLIKE '(?=a)b'", "PATTERN"),
        (r"s RLIKE '(a)\\1'", "PATTERN"),
        (r"s RLIKE '\\bword'", "PATTERN"),
        (r"s RLIKE '\\p{L}'", "PATTERN"),
        ("s RLIKE 'a++'", "PATTERN"),
        ("s RLIKE '('", "PATTERN"),
        ("s RLIKE s", "PATTERN"),
        ("regexp_extract(s, '(a)', 2)", "PATTERN"),
        ("regexp_extract(s, 'a$', 0)", "PATTERN"),
        ("regexp_replace(s, 'a$', '')", "PATTERN"),
        ("regexp_replace(s, 'a', '$1')", "PATTERN"),
        ("regexp_replace(s, 'a', 'b', 2)", "UNKNOWN-FUNCTION"),
        ("date_format(w, 'YYYY')", "PATTERN"),
        ("date_format(w, s)", "PATTERN"),
        ("to_date(s, 'MMM d yyyy')", "PATTERN"),
        ("to_timestamp(s, 'yyyy-MM-dd hh:mm a')", "PATTERN"),
        ("round(f, i)", "PATTERN"),
        ("round(f, 40)", "PATTERN"),
        ("asinh(f)", "UNKNOWN-FUNCTION"),
        ("pmod(p, 3)", "TYPE-CLASH"),
        ("p DIV 2", "TYPE-CLASH"),
        ("f & 1", "TYPE-CLASH"),
        ("md5(i)", "TYPE-CLASH"),
        ("levenshtein(s, s, 2)", "UNKNOWN-FUNCTION"),
        ("md5()", "SYNTAX"),
        ("hash()", "UNKNOWN-FUNCTION"),
        ("lpad(s)", "SYNTAX"),
        ("from_utc_timestamp(w, 'Europe/Berlin')", "UNKNOWN-FUNCTION"),
        ("format_string('%s', s)", "UNKNOWN-FUNCTION"),
        ("current_timezone()", "NON-DETERMINISTIC"),
        ("read_text('/etc/passwd')", "UNKNOWN-FUNCTION"),
        ("reflect('java.lang.System', 'exit', 1)", "UNKNOWN-FUNCTION"),
    ],
)
def test_refused_when_planned(sql: str, code: str) -> None:
    with pytest.raises(SqlError) as caught:
        crown.View(f"SELECT id, {sql} AS v FROM t", SCHEMA)
    assert caught.value.code == f"CROWN-SQL-{code}", caught.value


@pytest.mark.parametrize(
    "dialect, sql, row, expected",
    [
        ("postgres", "log(f)", {"f": 1000.0}, 3.0),
        ("duckdb", "log(f)", {"f": 1000.0}, 3.0),
        ("mysql", "log(f)", {"f": 1.0}, 0.0),
        ("bigquery", "log(f, 10)", {"f": 100.0}, 2.0),
        ("postgres", "strpos(s, 'b')", {"s": "abc"}, 2),
        ("duckdb", r"s LIKE 'a\_c'", {"s": "a\\bc"}, True),
        ("postgres", r"s LIKE 'a\_c'", {"s": "a_c"}, True),
        ("postgres", "to_char(w, 'YYYY-MM-DD')", {"w": datetime.datetime(2020, 2, 3)}, "2020-02-03"),
        ("duckdb", "strftime(w, '%Y/%m/%d')", {"w": datetime.datetime(2020, 2, 3)}, "2020/02/03"),
        ("postgres", "s ~ '^a+$'", {"s": "aa"}, True),
        ("postgres", "i / 2", {"i": 7}, 3),
        ("mysql", "i DIV 2", {"i": -7}, -3),
        ("duckdb", "i // 2", {"i": 7}, 3),
        ("postgres", "i # 3", {"i": 5}, 6),
        ("snowflake", "iff(i > 1, 'a', 'b')", {"i": 2}, "a"),
        (
            "postgres",
            "extract(second FROM w)",
            {"w": datetime.datetime(2020, 2, 3, 4, 5, 6, 500_000)},
            Decimal("6.500000"),
        ),
        ("databricks", "len(s)", {"s": "ab"}, 2),
        ("sqlite", "substr(s, 2)", {"s": "abc"}, "bc"),
    ],
)
def test_other_dialects(dialect: str, sql: str, row: dict[str, Any], expected: Any) -> None:
    assert of(sql, dialect, **row) == expected


@pytest.mark.parametrize("literal", ["0.1F", "CAST(0.1 AS FLOAT)", "CAST('0.1' AS FLOAT)"])
def test_a_float_equals_its_literal(literal: str) -> None:
    view = crown.View(f"SELECT a FROM t WHERE g = {literal} AND g IN ({literal}, 7)", "CREATE TABLE t (a INT, g FLOAT)")
    view.insert("t", [(1, 0.1), (2, 0.2)])
    assert list(view) == [(1,)]


@pytest.mark.parametrize("text", ["1_000", "٣", "inf ity", "1e400x", "2020-02-30"])
def test_literals_are_read_as_values_are(text: str) -> None:
    """A literal that no row could have is refused, not read in Python's way."""
    with pytest.raises(CrownError):
        crown.View(f"SELECT id FROM t WHERE l = '{text}'", SCHEMA)


def test_floats_of_a_plan_come_back_as_they_were() -> None:
    """A JSON reader that takes short cuts gives the neighbour of one float in ten."""
    for value in (
        0.1 + 0.2,
        1.0715660391465826e-75,
        5.764607523034235e39,
        9.007199254740993e15,
        1.1897314953572316e308,
    ):
        assert of(f"f = {value!r}D", f=value) is True, value
