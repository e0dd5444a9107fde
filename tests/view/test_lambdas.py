"""transform, filter, aggregate and the other functions that take a function, after every batch and in every place."""

from __future__ import annotations

import random

import pytest

import crown
from crown.errors import SqlError
from tests.support.followed import Followed, follow
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE t (k INT, v INT, s STRING); CREATE TABLE u (k INT, w INT)"
ARRAY = "ARRAY(t.k, t.v, NULL)"
QUERIES = (
    f"SELECT t.k, ARRAY_MAX(TRANSFORM({ARRAY}, x -> x * t.v + u.w)) AS m FROM t JOIN u ON u.k = t.k",
    f"SELECT t.k, u.w FROM t LEFT JOIN u ON u.k = t.k AND SIZE(FILTER({ARRAY}, x -> x > t.k)) > 0",
    f"SELECT AGGREGATE({ARRAY}, 0, (a, x) -> a + COALESCE(x, t.v)) AS a, COUNT(*) AS n FROM t "
    f"GROUP BY AGGREGATE({ARRAY}, 0, (a, x) -> a + COALESCE(x, t.v))",
    "SELECT k, ARRAY_MAX(TRANSFORM(ARRAY(n, m), x -> x + n)) AS c "
    "FROM (SELECT k, COUNT(*) AS n, SUM(v) AS m FROM t GROUP BY k) AS g",
    "SELECT k, ARRAY_MAX(TRANSFORM(ARRAY(k, 1), x -> x + SUM(v))) AS c FROM t GROUP BY k",
    "SELECT t.k, SIZE(FILTER(ARRAY(t.v, 1), x -> x IN (t.k, 1, 2))) AS n, SUM(t.v) OVER (PARTITION BY t.k) AS s FROM t",
    f"SELECT ARRAY_MAX(TRANSFORM({ARRAY}, x -> ARRAY_MAX(TRANSFORM(ARRAY(x, t.v), y -> y * 10 + x)))) AS m FROM t",
    # The error of a value that is not read does not count.
    "SELECT t.k, ARRAY_MAX(TRANSFORM(ARRAY(t.v, 1), x -> CASE WHEN d.q > 0 THEN x END)) AS m FROM t JOIN "
    "(SELECT k, CASE WHEN w <> 0 THEN 6 / w ELSE 0 END AS q FROM u) AS d ON d.k = t.k",
)


def batches(rng: random.Random) -> list[list[Change]]:
    def number() -> int | None:
        return rng.choice([None, 0, 1, 2, 3])

    came = [Change("t", (number(), number(), rng.choice("ab"))) for _ in range(14)]
    came += [Change("u", (number(), number())) for _ in range(10)]
    rng.shuffle(came)
    gone = [Change(change.table, change.row, -1) for change in rng.sample(came, 8)]
    return [came[:12], came[12:], gone]


@pytest.mark.parametrize("sql", QUERIES)
def test_functions_that_take_a_function(sql: str, rng: random.Random) -> None:
    judge = Judge(sql, SCHEMA)
    views = [Followed("one cell", crown.View(sql, SCHEMA)), Followed("2 threads", crown.View(sql, SCHEMA, threads=2))]
    follow(judge, views, batches(rng), reloads={1})


def test_a_subquery_in_a_function(rng: random.Random) -> None:
    """DuckDB has none: the same query with the subquery outside is compared."""
    count = "(SELECT COUNT(*) FROM u WHERE u.k = t.k)"
    judge = Judge(f"SELECT t.k, ARRAY_MIN({ARRAY}) + {count} AS c FROM t", SCHEMA)
    view = crown.View(f"SELECT t.k, ARRAY_MIN(TRANSFORM({ARRAY}, x -> x + {count})) AS c FROM t", SCHEMA)
    follow(judge, [Followed("one cell", view)], batches(rng))


def test_what_a_function_reads_is_shown_in_the_plan() -> None:
    sql = "SELECT k, AGGREGATE(ARRAY(k, v), 0, (a, e) -> a + e * v) AS m FROM t WHERE EXISTS(ARRAY(k, v), e -> e = k)"
    assert "exists(array(k, v), x -> x = k)" in str(crown.View(sql, SCHEMA).explain())


def test_a_nested_value_of_a_column() -> None:
    view = crown.View(
        "SELECT k, TRANSFORM(FILTER(items, i -> i.price > k), i -> i.name) AS names, "
        "FORALL(items, i -> i.price > 0) AS paid, ZIP_WITH(items, tags, (i, g) -> CONCAT(i.name, g)) AS z FROM o",
        "CREATE TABLE o (k INT, items ARRAY<STRUCT<name: STRING, price: INT>>, tags ARRAY<STRING>)",
    )
    view.insert(
        "o", [(1, [{"name": "a", "price": 1}, {"name": "b", "price": 2}], ["x"]), (2, None, []), (3, [], ["y"])]
    )
    view.delete("o", [(2, None, [])])
    assert sorted(view) == [(1, ["b"], True, ["ax", None]), (3, [], True, [None])]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT TRANSFORM(ARRAY(k), x -> SUM(x)) FROM t GROUP BY k", "can't read a parameter"),
        ("SELECT TRANSFORM(ARRAY(k), x -> (SELECT MAX(w) FROM u WHERE u.k = x)) FROM t", "can't read a parameter"),
        ("SELECT TRANSFORM(ARRAY(k), x -> half(x)) FROM t", "half can't be called for each element"),
        ("SELECT TRANSFORM(ARRAY(k), 1) FROM t", "takes a function"),
        ("SELECT TRANSFORM(ARRAY(k), (x, i, j) -> x) FROM t", "1 or 2 parameters"),
        ("SELECT ZIP_WITH(ARRAY(k), ARRAY(v), x -> x) FROM t", "2 parameters"),
        ("SELECT TRANSFORM(ARRAY(k), x -> x + y) FROM t", "no table in FROM has a column y"),
        ("SELECT TRANSFORM(k, x -> x) FROM t", "takes an array"),
        ("SELECT AGGREGATE(ARRAY(k), 0, (a, x) -> a + 0.5D) FROM t", "starts with INT"),
        ("SELECT AGGREGATE(ARRAY(k), 0, (a, x) -> a + x, (a, i) -> a) FROM t", "last function .* has 1 parameter"),
        ("SELECT ARRAY_SORT(ARRAY(k), (a, b) -> a - b) FROM t", "not supported"),
    ],
)
def test_functions_that_are_refused(sql: str, message: str) -> None:
    def half(value: int) -> float:
        return value / 2

    with pytest.raises(SqlError, match=message):
        crown.View(sql, SCHEMA, functions={"half": half})
