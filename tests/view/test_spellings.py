"""What dialects write in their own ways: a view shows what DuckDB or SQLite says of the same text."""

from __future__ import annotations

import datetime
import sqlite3

import pytest

import crown
from crown.errors import SqlError
from crown.testing import check
from crown.testing.batches import Batch

SCHEMA = "CREATE TABLE r (a INT, b INT, c STRING, d DATE, t TIMESTAMP)"
DAY, LATER = datetime.date(2024, 1, 31), datetime.date(2024, 3, 1)
NOON = datetime.datetime(2024, 1, 31, 12, 0, 30)
ROWS = [
    (1, 1, "x", DAY, NOON),
    (1, 2, "yx", LATER, None),
    (2, 1, None, None, NOON),
    (None, None, "x", DAY, NOON),
    (1, 1, "x", DAY, NOON),
    (3, 0, "a,b,,c", LATER, NOON),
    (-2, 0, "", DAY, NOON),
]
BATCHES: list[Batch] = [{"r": ROWS[:5]}, [("r", ROWS[0], -1)], {"r": ROWS[5:]}]
IN_BOTH = [
    ("spark", "SELECT * FROM (SELECT a, b, a AS v FROM r) PIVOT (SUM(v) AS s, MAX(v) AS m FOR b IN (1 AS p, 2 AS q))"),
    ("spark", "SELECT * FROM (SELECT a, b FROM r) PIVOT (MIN(a) FOR b IN (1 AS p, 2 AS q))"),
    ("spark", "SELECT c, k, v FROM r UNPIVOT (v FOR k IN (a, b)) WHERE v > 0"),
    ("duckdb", "SELECT k, SUM(v) AS s FROM (SELECT a, b FROM r) UNPIVOT (v FOR k IN (a, b)) GROUP BY k"),
    ("spark", "SELECT a FROM r WHERE c LIKE ANY ('x%', '%b%')"),
    ("spark", "SELECT a FROM r WHERE c NOT LIKE ALL ('x%', '%b%')"),
    ("duckdb", "SELECT date_diff('month', DATE '2023-12-31', d) AS m, date_diff('year', d, t) AS y FROM r"),
    ("duckdb", "SELECT date_diff('quarter', d, t) AS q, date_diff('hour', d, t) AS h FROM r"),
    ("duckdb", "SELECT DAYOFWEEK(d) AS w, EXTRACT(DOW FROM t) AS x, EXTRACT(ISODOW FROM d) AS i FROM r"),
    ("duckdb", "SELECT a / b AS q, c FROM r"),
    ("duckdb", "SELECT a * 2 AS twice, twice + 1 AS more FROM r WHERE twice > 2 AND more < 6"),
    ("duckdb", "SELECT a, SUM(b > 1) AS n, COUNT() AS k FROM r WHERE b GROUP BY a"),
    ("duckdb", "SELECT a FROM r WHERE t - TIMESTAMP '2024-01-31 11:00:00' > INTERVAL '60 minutes'"),
    ("duckdb", "SELECT a, EXTRACT(EPOCH FROM t) AS e, t + INTERVAL 90 MINUTE * a AS later FROM r"),
    ("duckdb", "SELECT UNNEST(generate_series(DATE '2024-01-30', DATE '2024-02-02', INTERVAL 1 DAY))::DATE AS day"),
    ("duckdb", "SELECT s.day, r.a FROM generate_series(DATE '2024-01-30', DATE '2024-02-02', INTERVAL 1 DAY) AS s(day) "
     "LEFT JOIN r ON r.d = s.day"),
    ("duckdb", "SELECT range FROM range(DATE '2024-01-01', DATE '2024-06-01', INTERVAL 2 MONTH)"),
    ("duckdb", "SELECT a, UNNEST(string_split(c, ',')) AS part FROM r"),
    ("spark", "SELECT a, part FROM r LATERAL VIEW EXPLODE(SPLIT(c, ',')) AS part"),
    ("spark", "SELECT n, COUNT(a) AS k FROM (SELECT EXPLODE(SEQUENCE(1, 4)) AS n) LEFT JOIN r ON a = n GROUP BY n"),
    ("spark", "SELECT a, ARRAY_JOIN(SPLIT(c, ','), ';') AS j, ARRAY_MAX(ARRAY(a, b)) AS m FROM r"),
]  # fmt: skip
IN_SQLITE = [
    "SELECT a FROM r WHERE a IN ()",
    "SELECT a NOT IN () FROM r",
    "SELECT a FROM r WHERE b",
    "SELECT COUNT(), SUM(a > 1), (a > 1) + 1 FROM r GROUP BY a > 1",
    "SELECT a FROM r WHERE (a, b) < (2, 1)",
    "SELECT a, b FROM r WHERE (a, b) >= (1, 2)",
    "SELECT (a, b) <> (1, 1) FROM r",
    "SELECT a / b, a % b, - NULL FROM r",
    "SELECT NOT a, a AND b FROM r",
    "SELECT a + 1 AS z FROM r WHERE z > 1",
]


@pytest.mark.parametrize("dialect, sql", IN_BOTH)
def test_spellings_as_duckdb_reads_them(dialect: str, sql: str) -> None:
    check(sql, SCHEMA, [b for b in BATCHES if " r" in sql], dialect=dialect)


@pytest.mark.parametrize("sql", IN_SQLITE)
def test_spellings_as_sqlite_reads_them(sql: str) -> None:
    view = crown.View(sql, SCHEMA, dialect="sqlite")
    view.insert("r", ROWS)
    judge = sqlite3.connect(":memory:")
    judge.execute("CREATE TABLE r (a INT, b INT, c TEXT, d TEXT, t TEXT)")
    judge.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", [(*row[:3], str(row[3]), str(row[4])) for row in ROWS])
    assert sorted(map(repr, judge.execute(sql))) == sorted(repr(tuple(map(_number, row))) for row in view)


def _number(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def test_a_count_without_rows_is_null_in_a_pivot_of_spark() -> None:
    view = crown.View("SELECT * FROM (SELECT a, b FROM r) PIVOT (COUNT(*) FOR b IN (1, 2))", SCHEMA)
    view.insert("r", ROWS)
    assert [c.name for c in view.plan.columns] == ["a", "1", "2"]
    assert (1, 2, 1) in list(view) and (2, 1, None) in list(view)


def test_snowflake_writes_dates_numbers_and_json() -> None:
    sql = (
        "SELECT to_varchar(d, 'YYYY-MM') AS m, try_to_number(c) AS n, parse_json(j):k.l::string AS v, "
        "datediff('week', d, t) AS w, split_part(c, ',', 2) AS p, iff(a > 1, 'x', 'y') AS i FROM r"
    )
    view = crown.View(sql, f"{SCHEMA.replace(')', ', j STRING)')}", dialect="snowflake")
    view.insert("r", [(*ROWS[5], '{"k": {"l": "found"}}'), (None, None, "12", None, NOON, "{}")])
    assert list(view) == [("2024-03", None, "found", -4, "b", "x"), (None, 12, None, None, "", "y")]


@pytest.mark.parametrize(
    "dialect, sql, code",
    [
        ("spark", "SELECT a IN () FROM r", "SYNTAX"),
        ("spark", "SELECT * FROM r PIVOT (SUM(a) FOR b IN (SELECT 1))", "PIVOT"),
        ("duckdb", "SELECT list_distinct([a]) FROM r", "UNKNOWN-FUNCTION"),
        ("snowflake", "SELECT a FROM r WHERE c NOT LIKE ANY ('x', 'y')", "UNKNOWN-FUNCTION"),
        ("spark", "SELECT GROUPING(a) FROM r", "GROUPING-SETS"),
    ],
)
def test_what_is_refused(dialect: str, sql: str, code: str) -> None:
    with pytest.raises(SqlError) as raised:
        crown.View(sql, SCHEMA, dialect=dialect)
    assert raised.value.code == f"CROWN-SQL-{code}"
