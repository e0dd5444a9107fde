"""Every argument of every sqlglot node that Crown takes apart is read or refused, in every dialect."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

import crown
from crown.errors import CrownError, SchemaError, SqlError
from crown.sql import load_schema, parse
from crown.sql.context import Context
from crown.sql.describe import describe
from crown.sql.parts import HARMLESS, READ, read_of
from crown.sql.refuse import check_node
from crown.sql.scalar import binder, functions
from crown.sql.schema import harmless

SCHEMA = """
CREATE TABLE r (a INT, b INT, c STRING);
CREATE TABLE s (a INT, b INT);
CREATE TABLE t (k BIGINT PRIMARY KEY, v DOUBLE, d DATE);
"""
PACKAGE = Path(crown.__file__).parent / "sql"


def _named_in_the_source() -> set[type[exp.Expr]]:
    """The node classes that the SQL layer names, apart from its tables of functions."""
    found: set[type[exp.Expr]] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "scalar" or path.stem in ("parts", "harmless", "ddl", "refuse", "statements"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "exp":
                kind = getattr(exp, node.attr)
                if isinstance(kind, type) and issubclass(kind, exp.Expr):
                    found.add(kind)
    return found


# Base classes, what is refused as soon as it is met, and what is never taken apart.
NOT_TAKEN_APART = {
    *(exp.Expr, exp.Query, exp.SetOperation, exp.AggFunc, exp.UDTF, exp.Binary, exp.DML, exp.DDL),
    *(exp.Command, exp.Pivot, exp.Aliases, exp.Semicolon, exp.Placeholder, exp.Anonymous, exp.Func),
}


def test_what_the_source_names_is_listed() -> None:
    # The table of functions lists the arguments of each, and `named_call` refuses all others.
    handled = {*binder._HANDLERS, *binder._FAMILIES, *functions.NODES} - NOT_TAKEN_APART
    assert _named_in_the_source() - NOT_TAKEN_APART - set(READ) - handled == set()


HANDLED = sorted({*READ, *(k for k in binder._HANDLERS if k not in NOT_TAKEN_APART)}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", HANDLED, ids=lambda kind: kind.__name__)
def test_each_argument_is_read_or_refused(kind: type[exp.Expr]) -> None:
    context = Context("SELECT 1", "spark", load_schema(SCHEMA))
    assert READ.get(kind, frozenset()) | HARMLESS.get(kind, frozenset()) <= set(kind.arg_types)
    for name in kind.arg_types:
        for value in (exp.Literal.number(1), [exp.Literal.number(1)], True, "word"):
            node = kind(**{name: value})
            if name in read_of(kind):
                check_node(context, node)
                continue
            with pytest.raises(SqlError) as caught:
                check_node(context, node)
            assert caught.value.hint
    for name in kind.arg_types:
        check_node(context, kind(**{name: None}))
        check_node(context, kind(**{name: False}))
        check_node(context, kind(**{name: []}))


def test_ddl_lists_arguments_that_exist() -> None:
    for kind, names in harmless.PARTS.items():
        assert names <= set(kind.arg_types)


REFUSED = [
    ("spark", "SELECT y FROM (r CROSS JOIN t) AS tx(y, x)", "CROWN-SQL-COLUMN-ALIASES"),
    ("duckdb", "SELECT r.a FROM r JOIN s NEAREST 1 BY DISTANCE r.a - s.a", "CROWN-SQL-JOIN-KIND"),
    ("duckdb", "SELECT r.a FROM r ASOF JOIN s ON r.a = s.a", "CROWN-SQL-JOIN-KIND"),
    ("duckdb", "SELECT r.a FROM r POSITIONAL JOIN s", "CROWN-SQL-JOIN-KIND"),
    # SQL means r FULL JOIN (s NATURAL JOIN t); sqlglot gives the condition to the last join.
    ("duckdb", "SELECT r.a FROM r FULL JOIN s NATURAL JOIN t ON t.k = r.a", "CROWN-SQL-JOIN-KIND"),
    ("spark", "SELECT r.a FROM r JOIN s NATURAL JOIN t ON t.k = r.a", "CROWN-SQL-JOIN-KIND"),
    ("postgres", "SELECT r.a FROM r LEFT JOIN s CROSS JOIN t ON t.k = r.a", "CROWN-SQL-JOIN-KIND"),
    ("mysql", "SELECT r.a FROM r RIGHT JOIN s", "CROWN-SQL-JOIN-KIND"),
    ("snowflake", "SELECT r.a FROM r ASOF JOIN s MATCH_CONDITION (r.a >= s.a)", "CROWN-SQL-JOIN-KIND"),
    ("clickhouse", "SELECT a FROM r RIGHT SEMI JOIN s USING (a)", "CROWN-SQL-JOIN-KIND"),
    ("clickhouse", "SELECT r.a FROM r ANY LEFT JOIN s ON r.a = s.a", "CROWN-SQL-JOIN-KIND"),
    ("snowflake", "SELECT * ILIKE '%a%' FROM r", "CROWN-SQL-STAR"),
    ("duckdb", "SELECT * EXCLUDE (z) FROM r", "CROWN-SQL-UNKNOWN-COLUMN"),
    ("bigquery", "SELECT * REPLACE (1 AS z) FROM r", "CROWN-SQL-UNKNOWN-COLUMN"),
    ("snowflake", "SELECT * RENAME z AS a FROM r", "CROWN-SQL-UNKNOWN-COLUMN"),
    ("oracle", "SELECT r.a FROM r, s WHERE r.a = s.a (+)", "CROWN-SQL-JOIN-KIND"),
    ("redshift", "SELECT r.a FROM r, s WHERE r.a = s.a (+)", "CROWN-SQL-JOIN-KIND"),
    ("spark", "SELECT a FROM r TABLESAMPLE (10 PERCENT)", "CROWN-SQL-SAMPLE"),
    ("duckdb", "SELECT a FROM r USING SAMPLE 10", "CROWN-SQL-SAMPLE"),
    ("clickhouse", "SELECT a FROM r SAMPLE 0.1", "CROWN-SQL-SAMPLE"),
    ("spark", "SELECT * FROM r PIVOT (SUM(a) FOR c IN (SELECT a FROM r))", "CROWN-SQL-PIVOT"),
    ("spark", "SELECT * FROM (SELECT a, c FROM r) PIVOT (SUM(a) FOR c IN (SELECT a FROM r))", "CROWN-SQL-PIVOT"),
    ("postgres", "SELECT a FROM r FOR UPDATE", "CROWN-SQL-LOCK"),
    ("mysql", "SELECT a FROM r LOCK IN SHARE MODE", "CROWN-SQL-LOCK"),
    ("tsql", "SELECT a FROM r FOR XML AUTO", "CROWN-SQL-UNSUPPORTED"),
    ("tsql", "SELECT TOP 5 PERCENT a FROM r ORDER BY a", "CROWN-SQL-LIMIT"),
    ("tsql", "SELECT TOP 5 WITH TIES a FROM r ORDER BY a", "CROWN-SQL-LIMIT"),
    ("duckdb", "SELECT a FROM r ORDER BY a LIMIT 10%", "CROWN-SQL-LIMIT"),
    ("postgres", "SELECT a FROM r ORDER BY a FETCH FIRST 3 ROWS WITH TIES", "CROWN-SQL-LIMIT"),
    ("clickhouse", "SELECT a FROM r ORDER BY a LIMIT 2 BY b", "CROWN-SQL-LIMIT"),
    ("clickhouse", "SELECT a FROM r ORDER BY a WITH FILL", "CROWN-SQL-UNSUPPORTED"),
    ("postgres", 'SELECT c FROM r ORDER BY c COLLATE "de_DE"', "CROWN-SQL-UNKNOWN-FUNCTION"),
    ("spark", "SELECT a FROM r TIMESTAMP AS OF '2020-01-01'", "CROWN-SQL-TIME-TRAVEL"),
    ("snowflake", "SELECT a FROM r AT (TIMESTAMP => '2020-01-01')", "CROWN-SQL-TIME-TRAVEL"),
    ("spark", "SELECT a FROM r LATERAL VIEW explode(c) x AS y", "CROWN-SQL-TABLE-FUNCTION"),
    ("spark", "SELECT a FROM r LATERAL VIEW OUTER explode(array(1)) x AS y", "CROWN-SQL-LATERAL"),
    ("spark", "SELECT a FROM r QUALIFY a = 1", "CROWN-SQL-WINDOW-FUNCTION"),
    ("spark", "SELECT SUM(a) OVER w FROM r WINDOW v AS (ORDER BY a)", "CROWN-SQL-WINDOW-FUNCTION"),
    ("spark", "SELECT a, GROUPING(a) FROM r GROUP BY a", "CROWN-SQL-GROUPING-SETS"),
    ("clickhouse", "SELECT a FROM r GROUP BY a WITH TOTALS", "CROWN-SQL-GROUPING-SETS"),
    (
        "postgres",
        "WITH RECURSIVE x AS (SELECT a FROM r UNION SELECT MAX(a) FROM x) SELECT a FROM x",
        "CROWN-SQL-RECURSION",
    ),
    (
        "postgres",
        "WITH RECURSIVE x AS (SELECT a FROM r) SEARCH DEPTH FIRST BY a SET o SELECT a FROM x",
        "CROWN-SQL-RECURSION",
    ),
    ("duckdb", "WITH RECURSIVE x USING KEY (a) AS (SELECT a FROM r) SELECT a FROM x", "CROWN-SQL-RECURSION"),
    ("clickhouse", "WITH 1 AS z SELECT a FROM r", "CROWN-SQL-UNSUPPORTED"),
    ("bigquery", "SELECT a FROM r FULL OUTER UNION ALL BY NAME SELECT a FROM s", "CROWN-SQL-SET-OPERATION"),
    ("bigquery", "SELECT a FROM r UNION ALL CORRESPONDING SELECT a FROM s", "CROWN-SQL-SET-OPERATION"),
    ("clickhouse", "SELECT a FROM r PREWHERE a = 1", "CROWN-SQL-UNSUPPORTED"),
    ("mysql", "SELECT SQL_CALC_FOUND_ROWS a FROM r", "CROWN-SQL-UNSUPPORTED"),
    ("mysql", "SELECT a FROM r PARTITION (p0)", "CROWN-SQL-UNSUPPORTED"),
    ("postgres", "SELECT a FROM ONLY r", "CROWN-SQL-UNSUPPORTED"),
    ("oracle", "SELECT a FROM r START WITH a = 1 CONNECT BY PRIOR a = b", "CROWN-SQL-RECURSION"),
    ("oracle", "SELECT a FROM r ORDER SIBLINGS BY a", "CROWN-SQL-RECURSION"),
    ("tsql", "SELECT a INTO x FROM r", "CROWN-SQL-INTO"),
    ("tsql", "SELECT a FROM #r", "CROWN-SQL-UNSUPPORTED"),
    ("bigquery", "SELECT AS STRUCT a FROM r", "CROWN-SQL-STRUCT"),
    ("mysql", "SELECT LENGTH(c) FROM r", "CROWN-SQL-UNKNOWN-FUNCTION"),
    ("postgres", "SELECT COUNT(DISTINCT a ORDER BY a) FROM r", "CROWN-SQL-AGGREGATE-FUNCTION"),
    ("oracle", "SELECT CAST(c AS INT DEFAULT 0 ON CONVERSION ERROR) FROM r", "CROWN-SQL-UNKNOWN-FUNCTION"),
    ("spark", "(SELECT a FROM r) CROSS JOIN s", "CROWN-SQL-SYNTAX"),
    ("spark", "SELECT other.r.a FROM r", "CROWN-SQL-UNKNOWN-TABLE"),
    ("spark", "SELECT x.a FROM one.r x JOIN two.r y ON x.a = y.a", "CROWN-SQL-UNKNOWN-TABLE"),
    # What nothing reads is bound all the same.
    ("spark", "WITH x AS (SELECT a FROM nosuch) SELECT a FROM r", "CROWN-SQL-UNKNOWN-TABLE"),
    ("spark", "WITH x AS (SELECT nosuch FROM r), y AS (SELECT a FROM x) SELECT a FROM r", "CROWN-SQL-UNKNOWN-COLUMN"),
    (
        "spark",
        "WITH x AS (WITH y AS (SELECT nosuch FROM r) SELECT a FROM s) SELECT a FROM r",
        "CROWN-SQL-UNKNOWN-COLUMN",
    ),
    ("spark", "SELECT a FROM (WITH y AS (SELECT nosuch FROM r) SELECT a FROM s) q", "CROWN-SQL-UNKNOWN-COLUMN"),
    ("postgres", "WITH x AS (DELETE FROM r RETURNING a) SELECT a FROM s", "CROWN-SQL-NOT-A-QUERY"),
    ("spark", "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s ORDER BY nosuch)", "CROWN-SQL-UNKNOWN-COLUMN"),
]


@pytest.mark.parametrize("dialect, sql, code", REFUSED, ids=lambda value: value if " " in value else "")
def test_refused(dialect: str, sql: str, code: str) -> None:
    with pytest.raises(SqlError) as caught:
        crown.View(sql, schema=SCHEMA) if dialect == "spark" else parse(sql, SCHEMA, dialect=dialect)
    error = caught.value
    assert error.code == code
    assert error.position is not None
    assert "<class" not in str(error) and "\0" not in str(error)


ACCEPTED = [
    ("spark", "SELECT tx.y, v FROM (s CROSS JOIN t) AS tx(x, y, k, v, d)", "SELECT s.b AS y, t.v FROM s CROSS JOIN t"),
    ("tsql", "SELECT a FROM r WITH (NOLOCK)", "SELECT a FROM r"),
    ("mysql", "SELECT a FROM r USE INDEX (i)", "SELECT a FROM r"),
    ("clickhouse", "SELECT r.a FROM r GLOBAL JOIN s ON r.a = s.a", "SELECT r.a FROM r JOIN s ON r.a = s.a"),
    ("tsql", "SELECT TOP 5 a FROM r ORDER BY a", "SELECT a FROM r ORDER BY a LIMIT 5"),
    (
        "postgres",
        "SELECT a FROM r ORDER BY a NULLS FIRST FETCH FIRST 3 ROWS ONLY",
        "SELECT a FROM r ORDER BY a LIMIT 3",
    ),
    ("postgres", "SELECT a FROM r ORDER BY a NULLS FIRST FETCH FIRST ROW ONLY", "SELECT a FROM r ORDER BY a LIMIT 1"),
    ("mysql", "SELECT a FROM r ORDER BY a LIMIT 2, 5", "SELECT a FROM r ORDER BY a LIMIT 5 OFFSET 2"),
    ("postgres", "WITH x(q) AS NOT MATERIALIZED (SELECT a FROM r) SELECT q FROM x", "SELECT a AS q FROM r"),
    ("spark", "SELECT a FROM r NATURAL LEFT SEMI JOIN s", "SELECT a FROM r LEFT SEMI JOIN s USING (a, b)"),
    ("spark", "SELECT lake.r.a FROM lake.r", "SELECT a FROM r"),
    (
        "mysql",
        "SELECT GREATEST(a, b) AS g FROM r",
        "SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE greatest(a, b) END AS g FROM r",
    ),
]


@pytest.mark.parametrize("dialect, sql, same", ACCEPTED, ids=lambda value: value if " " in value else "")
def test_means_the_same(dialect: str, sql: str, same: str) -> None:
    one, other = parse(sql, SCHEMA, dialect=dialect), parse(same, SCHEMA)
    assert (one.body, one.tables, one.nested, one.order) == (other.body, other.tables, other.nested, other.order)


def test_division_by_zero_is_null_where_the_dialect_says_so() -> None:
    assert "CASE WHEN b = 0 THEN NULL" in describe(parse("SELECT a / b AS q FROM r", SCHEMA, dialect="mysql"))
    assert "CASE" not in describe(parse("SELECT a / b AS q FROM r", SCHEMA))


def test_the_order_of_a_view_in_parentheses_is_kept() -> None:
    view = crown.View("SELECT a FROM v", schema=SCHEMA + "CREATE VIEW v AS (SELECT a FROM s) ORDER BY a DESC LIMIT 1")
    view.insert("s", [(1, 1), (3, 1), (2, 1)])
    assert list(view) == [(3,)]


def test_a_view_is_checked_where_it_is_written() -> None:
    schema = SCHEMA + "CREATE VIEW v AS SELECT a FROM r TABLESAMPLE (10 PERCENT)"
    with pytest.raises(SqlError) as caught:
        crown.View("SELECT a FROM v", schema=schema)
    assert caught.value.code == "CROWN-SQL-SAMPLE"
    assert caught.value.sql == schema


DDL_REFUSED = [
    ("spark", "CREATE TABLE x (c STRING COLLATE UTF8_LCASE)", "CROWN-SCHEMA-UNSUPPORTED"),
    ("mysql", "CREATE TABLE x (a INT) COLLATE=utf8_bin", "CROWN-SCHEMA-UNSUPPORTED"),
    ("mysql", "CREATE TABLE x (a INT INVISIBLE, b INT)", "CROWN-SCHEMA-UNSUPPORTED"),
    ("teradata", "CREATE TABLE x (a VARCHAR(5) NOT CASESPECIFIC)", "CROWN-SCHEMA-UNSUPPORTED"),
    ("postgres", "CREATE TABLE x (a INT, LIKE y INCLUDING ALL)", "CROWN-SCHEMA-UNSUPPORTED"),
    ("postgres", "CREATE TABLE x (a INT) INHERITS (y)", "CROWN-SCHEMA-UNSUPPORTED"),
    ("clickhouse", "CREATE TABLE x (a Int32) ENGINE=MergeTree ORDER BY a TTL a", "CROWN-SCHEMA-UNSUPPORTED"),
    ("spark", "CREATE TABLE x (a INT) AS SELECT 1", "CROWN-SCHEMA-UNSUPPORTED"),
    ("spark", "CREATE TABLE x (a INT PRIMARY KEY, b INT PRIMARY KEY)", "CROWN-SCHEMA-KEY"),
    ("spark", "CREATE TABLE x (a INT, b INT, PRIMARY KEY (a), PRIMARY KEY (b))", "CROWN-SCHEMA-KEY"),
    ("mysql", "CREATE TABLE x (b TEXT, PRIMARY KEY (b(10)))", "CROWN-SCHEMA-KEY"),
]


@pytest.mark.parametrize("dialect, text, code", DDL_REFUSED, ids=lambda value: value if " " in value else "")
def test_ddl_refused(dialect: str, text: str, code: str) -> None:
    with pytest.raises(SchemaError) as caught:
        load_schema(text, dialect=dialect)
    assert caught.value.code == code
    assert caught.value.position is not None


@pytest.mark.parametrize(
    "dialect, text, columns",
    [
        ("spark", "CREATE TABLE x (a INT COMMENT 'n' DEFAULT 1, CHECK (a > 1)) USING parquet LOCATION 'p'", ["a"]),
        ("hive", "CREATE TABLE x (a INT) PARTITIONED BY (dt STRING) STORED AS orc", ["a", "dt"]),
        ("mysql", "CREATE TABLE x (a INT AUTO_INCREMENT, KEY i (a), PRIMARY KEY (a)) ENGINE=InnoDB", ["a"]),
        ("bigquery", "CREATE TABLE x (a INT64 OPTIONS(description='n')) PARTITION BY a OPTIONS(x=1)", ["a"]),
        ("snowflake", "CREATE OR REPLACE TRANSIENT TABLE x (a INT NOT NULL) CLUSTER BY (a)", ["a"]),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_ddl_accepted(dialect: str, text: str, columns: list[str]) -> None:
    assert [c.name for c in load_schema(text, dialect=dialect).tables["x"].columns] == columns


def test_no_dialect_drops_what_another_refuses() -> None:
    """The same odd text in every dialect: refused, or no part of it changes what is read."""
    plain = parse("SELECT r.a FROM r JOIN s ON r.a = s.a", SCHEMA)
    for dialect in sorted(filter(None, Dialect.classes)):
        for odd in ("NEAREST 1 BY DISTANCE r.a", "(+)", "TABLESAMPLE (5 ROWS)", "FOR UPDATE", "LIMIT 5 PERCENT"):
            try:
                found = parse(f"SELECT r.a FROM r JOIN s ON r.a = s.a {odd}", SCHEMA, dialect=dialect)
            except CrownError:
                continue
            assert found.body != plain.body, f"{dialect} drops {odd}"
