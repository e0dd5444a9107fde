"""Texts that parsers and databases read differently: Crown reads them as Spark does, or refuses them.

The expected rows are those of Spark 4.3; `tests/spark/test_constructs.py` asks Spark itself for some of them.
"""

from __future__ import annotations

import pytest

import crown

SCHEMA = """
    CREATE TABLE t (a INT, b INT, s STRING, bytes BINARY, m MAP<INT, INT>, st STRUCT<x: INT>);
    CREATE TABLE odd (`all` INT, city STRING);
"""
ROWS = [
    (1, 10, "x", b"\xc3\xa9a", {1: 5}, {"x": 1}),
    (2, 2, "y", b"b", {1: 2}, {"x": 2}),
    (3, 30, "z", b"c", None, None),
]
READ_AS_SPARK = [
    # operators without parentheses
    ("SELECT 1 & 2 >> 1, 4 | 1 & 2, 5 ^ 3 & 6 | 1 << 2", [(1, 4, 7)]),
    ("SELECT '2' || 5 + 5, 5 + 5 || '2'", [(30, "102")]),
    ("SELECT 6 - 3 - 2, 1 | 2 | 4, 1 + 2 & 3", [(1, 7, 3)]),
    # quotes
    ("SELECT 'O''Brien', \"x\"\"y\", 'it' 's', 'a\\'b', ''''", [("O'Brien", 'x"y', "its", "a'b", "'")]),
    ("SELECT r'a\\d', X'1' = X'01'", [("a\\d", True)]),
    # names of outputs in ORDER BY come before columns of FROM, also inside expressions
    ("SELECT -b AS b FROM t ORDER BY b + 1 LIMIT 2", [(-30,), (-10,)]),
    ("SELECT -b AS b FROM t ORDER BY t.b + 1 LIMIT 2", [(-2,), (-10,)]),
    ("SELECT -b AS b, a FROM t GROUP BY b, a ORDER BY t.b LIMIT 2", [(-2, 2), (-10, 1)]),
    ("SELECT -b AS b, a FROM t GROUP BY b, a ORDER BY b + 1 LIMIT 2", [(-30, 3), (-10, 1)]),
    ("SELECT SUM(b) AS count, a % 2 AS p FROM t GROUP BY p ORDER BY COUNT(*) LIMIT 1", [(2, 0)]),
    ("SELECT 'z' AS st, a FROM t GROUP BY st, a ORDER BY st.x DESC LIMIT 1", [("z", 2)]),
    # a column that is called like a keyword
    ("SELECT all, city FROM odd", [(1, "here"), (2, "there")]),
    ("SELECT COUNT(*) AS n FROM odd GROUP BY all", [(1,), (1,)]),
    ("SELECT ALL city FROM odd", [("here",), ("there",)]),
    # window functions that differ only in the order inside the aggregate
    (
        "SELECT DISTINCT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a) OVER () AS low, "
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a DESC) OVER () AS high FROM t",
        [(1.5, 2.5)],
    ),
    # functions of bytes, types and arrays
    ("SELECT LEFT(bytes, 1) FROM t WHERE a = 1", [(b"\xc3",)]),
    ("SELECT typeof(m), typeof(st), typeof(NULL) FROM t WHERE a = 1", [("map<int,int>", "struct<x:int>", "void")]),
    ("SELECT * FROM EXPLODE_OUTER(ARRAY())", [(None,)]),
    (
        "SELECT a, d FROM t JOIN LATERAL (SELECT t.m[1] - b AS d FROM t AS u WHERE u.a = 1)",
        [(1, -5), (2, -8), (3, None)],
    ),
    # NaN equals itself and is the largest number, also among constants
    (
        "SELECT double('NaN') = double('NaN'), double('NaN') > double('Infinity'), "
        "double('NaN') IS DISTINCT FROM double('NaN'), NULLIF(double('NaN'), double('NaN'))",
        [(True, True, False, None)],
    ),
    # SELECT DISTINCT has one row where all rows are equal
    ("SELECT (SELECT DISTINCT 42 FROM t) AS x", [(42,)]),
    ("SELECT a, (SELECT DISTINCT 1 FROM t AS u WHERE u.a >= t.a) AS x FROM t", [(1, 1), (2, 1), (3, 1)]),
    (
        "SELECT a, (SELECT DISTINCT a % 1 FROM t AS u WHERE u.s <> '' AND t.a = t.a) AS x FROM t",
        [(1, 0), (2, 0), (3, 0)],
    ),
    # a name of WITH that nothing reads, over a recursive one
    (
        "WITH RECURSIVE x(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM x WHERE id < 3), y AS (SELECT * FROM x), "
        "z(id) AS (SELECT * FROM x UNION ALL SELECT id + 1 FROM z WHERE id < 3) SELECT COUNT(*) FROM z",
        [(6,)],
    ),
]
REFUSED = [
    ("SELECT c FROM (SELECT a AS c, b AS c FROM t) q", "AMBIGUOUS-COLUMN"),
    ("SELECT q.c FROM (SELECT a AS c, b AS c FROM t) q", "AMBIGUOUS-COLUMN"),
    ("WITH q AS (SELECT a, b AS a FROM t) SELECT COUNT(*) FROM q WHERE a > 1", "AMBIGUOUS-COLUMN"),
    ("WITH q AS (SELECT 1), Q AS (SELECT 2) SELECT * FROM q", "DUPLICATE-ALIAS"),
    ("SELECT a = b < a FROM t", "SYNTAX"),
    ("SELECT a = b IN (1) FROM t", "SYNTAX"),
    ("SELECT s LIKE 'x' = (a = 1) FROM t", "SYNTAX"),
    ("SELECT a FROM t |> WHERE a > 1", "SYNTAX"),
    ("SELECT POSEXPLODE(ARRAY(1, 2)) AS e", "COLUMN-ALIASES"),
    ("SELECT EXPLODE(ARRAY(1, 2)) AS (e, f)", "COLUMN-ALIASES"),
    ("SELECT * FROM POSEXPLODE(ARRAY(1, 2)) AS p(e)", "COLUMN-ALIASES"),
    ("SELECT PERCENTILE_CONT(0.5) FROM t", "AGGREGATE-ARGUMENTS"),
    ("SELECT MODE() WITHIN GROUP (ORDER BY a DESC) FROM t", "AGGREGATE-ARGUMENTS"),
    ("SELECT TIMESTAMP_SECONDS(1.5)", "TYPE-CLASH"),
    ("SELECT bytes || bytes FROM t", "TYPE-CLASH"),
    ("SELECT LPAD(bytes, 5) FROM t", "TYPE-CLASH"),
    ("SELECT REVERSE(bytes) FROM t", "TYPE-CLASH"),
]


@pytest.mark.parametrize("sql, expected", READ_AS_SPARK)
def test_read_as_spark_reads_it(sql: str, expected: list[tuple[object, ...]]) -> None:
    view = crown.View(sql, SCHEMA)
    view.insert("odd", [(1, "here"), (2, "there")])
    view.insert("t", ROWS)
    found = list(view)
    assert found == expected if "ORDER BY" in sql else sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("sql, code", REFUSED)
def test_refused(sql: str, code: str) -> None:
    with pytest.raises(crown.CrownError) as caught:
        crown.View(sql, SCHEMA)
    assert caught.value.code == f"CROWN-SQL-{code}"


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("SELECT * FROM t, RANGE(a, 3) AS u(x)", [(1, 1), (1, 2)]),
        ("SELECT * FROM UNNEST(RANGE(1, 3)) AS u(x)", [(1,), (2,)]),
        ("SELECT COUNT(*) FROM RANGE(DATE '2023-01-01', DATE '2023-01-04', INTERVAL 1 DAY)", [(3,)]),
    ],
)
def test_a_range_of_duckdb_has_no_end(sql: str, expected: list[tuple[int, ...]]) -> None:
    view = crown.View(sql, "CREATE TABLE t (a INT)", dialect="duckdb")
    if "FROM t" in sql:
        view.insert("t", [(1,)])
    assert sorted(view) == expected


def test_an_expression_that_has_no_text_is_refused() -> None:
    with pytest.raises(crown.CrownError, match="is not supported"):
        crown.View("SELECT MAP {[1, 2]: 1, [2]: 2}", "CREATE TABLE t (a INT)", dialect="duckdb")


def test_other_dialects_keep_their_own_order_of_operators() -> None:
    schema = "CREATE TABLE t (a INT)"
    assert list(crown.View("SELECT 4 | 1 & 2 AS x", schema, dialect="duckdb")) == [(0,)]
    assert list(crown.View("SELECT c FROM (SELECT 1 AS c, 2 AS c) q", schema, dialect="duckdb")) == [(1,)]
    with pytest.raises(crown.CrownError, match="parentheses"):
        crown.View("SELECT 4 | 1 & 2 AS x", schema, dialect="snowflake")
