"""Clauses of everyday SQL, with one thread and two: after every batch a view shows what DuckDB says."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pytest

import crown
from crown.errors import CrownError
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE t (a INT, b INT, c STRING); CREATE TABLE u (x INT NOT NULL, y INT)"
QUERIES = [
    # ORDER BY, LIMIT and OFFSET
    "SELECT a FROM t ORDER BY ALL",
    "SELECT a FROM t LIMIT ALL",
    "SELECT a, b FROM t ORDER BY a, b, c OFFSET 2",
    "SELECT a, b, c FROM t ORDER BY 1, 2, 3 LIMIT 4 OFFSET 1",
    "SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS ONLY",
    "SELECT a FROM t ORDER BY b",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a ORDER BY MAX(b)",
    "SELECT a FROM (SELECT a FROM t ORDER BY b) q",
    # the order of a subquery under LIMIT
    "SELECT * FROM (SELECT a, b, c FROM t ORDER BY b DESC, a, c) AS q LIMIT 2",
    "SELECT a + 1 AS next FROM (SELECT a, b, c FROM t ORDER BY b, a DESC, c) LIMIT 3 OFFSET 1",
    "SELECT n FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a ORDER BY n DESC, a) LIMIT 1",
    "SELECT a FROM (SELECT a, b, c FROM t ORDER BY b DESC, a, c LIMIT 4) LIMIT 2",
    "SELECT a FROM (SELECT a, b, c FROM t ORDER BY b DESC, a, c LIMIT 2) LIMIT 4",
    "SELECT COUNT(*) AS n FROM (SELECT a FROM t ORDER BY b DESC) LIMIT 1",
    "SELECT a AS k FROM t UNION SELECT x FROM u ORDER BY k + 1",
    "SELECT DISTINCT a + 1 AS p FROM t ORDER BY a + 1",
    "SELECT COUNT(*) AS n FROM t LIMIT 1",
    # the columns of *
    "SELECT * EXCEPT (a) FROM t",
    "SELECT t.* EXCEPT (a, b), x FROM t JOIN u ON a = x",
    # parentheses
    "SELECT t.a FROM ((t)) JOIN ((u JOIN t AS v ON u.x = v.b)) ON t.a = u.x",
    "SELECT q.a FROM (((SELECT a FROM t))) q",
    "SELECT t.a, v.b FROM ((t JOIN u ON t.a = u.x) JOIN t AS v ON v.a = t.a)",
    # groups of constants
    "SELECT COUNT(*) AS n FROM t GROUP BY NULL",
    "SELECT COUNT(*) AS n FROM t GROUP BY 1 + 1",
    "SELECT COUNT(*) AS n, 'k' AS k FROM t GROUP BY 'k'",
    "SELECT COUNT(*) AS n FROM t GROUP BY ()",
    "SELECT 5 AS five, COUNT(*) AS n FROM t GROUP BY 1",
    "SELECT NULL AS k, COUNT(*) AS n FROM t GROUP BY 1",
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY (a, b)",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a, NULL",
    "SELECT a, b, SUM(a) AS s FROM t GROUP BY ALL",
    # expressions
    "SELECT a + b * 2 AS p, CASE WHEN b > 1 THEN a * 2 ELSE b * 10 END AS q, ABS(b - a) AS r FROM t "
    "WHERE a BETWEEN 0 AND b + 2 ORDER BY 1, 2, 3",
    "SELECT +a AS x, -b AS y, COALESCE(a, b, 3) AS z FROM t WHERE (a > 0 OR b > 0) AND NOT (a = 1) ORDER BY 3, 1",
    "SELECT a DIV 2 AS d, a % 2 AS m, a & 1 AS n, a | 1 AS o, a ^ 3 AS x, ~a AS z FROM t WHERE a IS NOT NULL",
    # rows of the query
    "SELECT t.a, v.y FROM t JOIN (VALUES (1, 'x'), (2, 'y'), (2, NULL)) AS v(k, y) ON t.a = v.k",
    "SELECT t.a, v.y FROM t LEFT JOIN (VALUES (1, 'x'), (2, 'y'), (2, NULL)) AS v(k, y) ON t.a = v.k",
    "SELECT k, COUNT(*) AS n FROM (VALUES (1), (2), (2)) AS v(k) GROUP BY k",
    "SELECT a FROM t UNION ALL SELECT 7 AS a",
    "SELECT a FROM t UNION SELECT 1",
    "SELECT a FROM t EXCEPT SELECT k FROM (VALUES (1), (2)) v(k)",
    "SELECT 1 AS x, 'a' || 'b' AS y",
    "SELECT * FROM (VALUES (1, 2), (1, 2), (NULL, 3)) AS v(a, b)",
    "SELECT COUNT(*) AS n FROM (VALUES (1, 2), (1, 2), (NULL, 3)) AS v(a, b)",
    "SELECT 1 AS one WHERE 1 = 2",
    "SELECT COUNT(*) AS n",
    "SELECT a FROM t WHERE a IN (SELECT k FROM (VALUES (1), (2)) v(k))",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM (VALUES (1), (2)) v(k) WHERE v.k = t.a)",
    "WITH w AS (SELECT 1 AS k UNION ALL SELECT 2) SELECT t.a, w.k FROM t JOIN w ON t.a = w.k",
    "SELECT a, b FROM t CROSS JOIN (SELECT 1 AS one) q",
    "SELECT x.a, y.a AS b FROM (VALUES (1), (2)) x(a), (VALUES (1), (3)) y(a)",
    "SELECT t.a, e.x FROM t LATERAL VIEW EXPLODE(ARRAY(10, 20)) e AS x",
    "SELECT t.a, e.x FROM t LATERAL VIEW EXPLODE(ARRAY(a, b)) e AS x",
    "SELECT a, SUM(y) AS s FROM t LEFT JOIN u ON a = x GROUP BY a",
]


def _batches(rng: random.Random) -> list[list[Change]]:
    present: list[Change] = []
    batches = []
    for number in range(3):
        coming = [
            Change("t", (rng.choice([None, 0, 1, 2]), rng.choice([None, 0, 1, 2]), rng.choice([None, "p", "q"])))
            if rng.random() < 0.6
            else Change("u", (rng.choice([0, 1, 2]), rng.choice([None, 0, 1])))
            for _ in range(8)
        ]
        going = [present.pop(rng.randrange(len(present))) for _ in range(3 if number else 0)]
        present += coming
        batches.append([*coming, *(Change(c.table, c.row, -1) for c in going)])
    return batches


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sql", QUERIES)
def test_clause(sql: str, threads: int, rng: random.Random) -> None:
    view, judge = crown.View(sql, SCHEMA, threads=threads), Judge(sql, SCHEMA)
    judge.check_result(view.to_arrow())
    read = {table.name for table in view.plan.tables}
    for batch in _batches(rng):
        delta = view.apply(judge.as_arrow([change for change in batch if change.table in read]))
        judge.apply(batch)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


def rows_of(sql: str, dialect: str = "spark", threads: int = 1) -> list[tuple[object, ...]]:
    view = crown.View(sql, SCHEMA, dialect=dialect, threads=threads)
    if any(table.name == "t" for table in view.plan.tables):
        view.insert("t", [(1, 3, "x"), (2, 2, "y"), (1, 1, "z"), (9, 9, "p")])
    return list(view)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_order_of_a_column_that_is_not_shown(threads: int) -> None:
    assert rows_of("SELECT a FROM t ORDER BY b DESC", threads=threads) == [(9,), (1,), (2,), (1,)]
    assert rows_of("SELECT a FROM t ORDER BY b DESC OFFSET 1", threads=threads) == [(1,), (2,), (1,)]


@pytest.mark.parametrize("threads", [1, 2])
def test_limit_without_order_keeps_its_choice(threads: int) -> None:
    view = crown.View("SELECT a, b FROM t LIMIT 2", SCHEMA, threads=threads)
    view.insert("t", [(1, 3, "x"), (2, 2, "y"), (1, 1, "z")])
    assert list(view) == [(1, 1), (1, 3)]
    assert view.insert("t", [(5, 5, "q")]).num_rows == 0
    view.delete("t", [(1, 1, "z")])
    assert list(view) == [(1, 3), (2, 2)]
    assert "without ORDER BY any rows would do" in " ".join(str(view.explain()).split())


@pytest.mark.parametrize(
    "dialect, sql, expected",
    [
        ("duckdb", "SELECT * EXCLUDE (c) REPLACE (a + 1 AS a) RENAME (b AS z) FROM t WHERE b = 9", [(10, 9)]),
        ("snowflake", "SELECT * EXCLUDE c FROM t WHERE b = 9", [(9, 9)]),
        ("duckdb", "SELECT a FROM t ORDER BY ALL DESC", [(9,), (2,), (1,), (1,)]),
        ("duckdb", "SELECT * FROM UNNEST([3, 1]) AS u(x)", [(3,), (1,)]),
        ("duckdb", "SELECT * FROM range(1, 4) r(i)", [(1,), (2,), (3,)]),
        ("postgres", "SELECT * FROM generate_series(1, 7, 3) AS g(i)", [(1,), (4,), (7,)]),
        ("spark", "SELECT * FROM range(3)", [(0,), (1,), (2,)]),
        ("spark", "SELECT * FROM EXPLODE(ARRAY(1, 2)) AS e(x)", [(1,), (2,)]),
        ("spark", "VALUES (1, 'a'), (2, 'b')", [(1, "a"), (2, "b")]),
        ("sqlite", "SELECT a FROM t ORDER BY b LIMIT 1, 2", [(2,), (1,)]),
        ("tsql", "SELECT TOP 1 a FROM t ORDER BY b", [(1,)]),
        ("postgres", "SELECT 1.25::numeric, a::numeric FROM t WHERE b = 9", [(Decimal("1.25"), Decimal(9))]),
        ("bigquery", "SELECT CAST(1.25 AS NUMERIC) AS n", [(Decimal("1.25"),)]),
        ("spark", "SELECT CAST(1.25 AS DECIMAL) AS n", [(Decimal(1),)]),
    ],
)
def test_other_dialects(dialect: str, sql: str, expected: list[tuple[object, ...]]) -> None:
    assert rows_of(sql, dialect) == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_constants_are_saved_with_the_view(threads: int, tmp_path: Path) -> None:
    view = crown.View("SELECT a FROM t UNION ALL SELECT 1", SCHEMA, threads=threads)
    view.insert("t", [(4, 3, "x")])
    view.save(tmp_path / "view")
    loaded = crown.View.load(tmp_path / "view")
    assert sorted(loaded) == [(1,), (4,)]
    loaded.delete("t", [(4, 3, "x")])
    assert list(loaded) == [(1,)]


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELECT * EXCEPT (z) FROM t", "* has no column z"),
        ("SELECT * EXCEPT (a, A) FROM t", "* names the column A twice"),
        ("SELECT c LIKE ANY () FROM t", "LIKE ANY and LIKE ALL need a pattern"),
        ("SELECT sort_array(array(a), '1') FROM t", "the order of sort_array is TRUE or FALSE, not STRING"),
        ("SELECT array_size(map(a, b)) FROM t", "expected an array, not MAP<INT, INT>"),
        ("SELECT '2024-01-31' + INTERVAL 1 MONTH FROM t", "months can't be added to a string"),
        ("SELECT explode(map(a, b)) AS k FROM t", "EXPLODE returns key and value, and AS has 1 names for it"),
        (
            "SELECT explode(array(a, b)), explode(array(b)) FROM t",
            "a SELECT has at most one function that returns rows",
        ),
        ("SELECT array(SELECT a FROM t WHERE b > 1) AS x", "ARRAY of a query is not supported"),
        ("SELECT posexplode(map(a, b)) FROM t", "posexplode of a map is not supported"),
        ("SELECT array_insert(array(a), 1, 'x') FROM t", "a STRING can't be inserted into an array of INT"),
        ("SELECT try_add(c, 1) FROM t", "try_add is only supported for integers and floats"),
        ("SELECT regexp_count(c, 'x*') FROM t", "a pattern that matches an empty string"),
        ("SELECT array_insert(array(a), b, 1) FROM t", "the position in array_insert must be a literal"),
        ("SELECT floor(CAST(a AS DECIMAL(38, 10)), 10) FROM t", "floor to 10 digits is not supported"),
        ("SELECT * FROM (VALUES (1, 2), (3)) v", "the rows of VALUES have different lengths"),
        ("SELECT * FROM (VALUES (a)) v", "no table in FROM has a column a"),
        ("SELECT * FROM range(20000)", "the query contains 20,000 rows, more than 10,000"),
        ("SELECT * FROM t LATERAL VIEW EXPLODE(c) e AS x", "STRING can't be unnested"),
        ("SELECT DISTINCT a FROM t ORDER BY b", "ORDER BY uses a column that is not in the output"),
    ],
)
def test_refusals(sql: str, message: str) -> None:
    with pytest.raises(CrownError) as caught:
        crown.View(sql, SCHEMA)
    assert message in str(caught.value)
