"""Queries that once ended in a traceback: each has the right answer, or says why it has none."""

from __future__ import annotations

import random

import pytest

import crown
from crown.errors import CrownError, SqlError
from tests.support.judge import Change, Judge

SCHEMA = """
CREATE TABLE r (a INT, b INT, c STRING);
CREATE TABLE s (a INT, b INT);
CREATE TABLE t (k BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE u (k BIGINT, x INT);
"""


def _doubled(levels: int) -> str:
    names = [f"c{i} AS (SELECT x.a, y.b FROM c{i - 1} x JOIN c{i - 1} y ON x.b = y.a)" for i in range(1, levels + 1)]
    return f"WITH c0 AS (SELECT k AS a, v AS b FROM t), {', '.join(names)} SELECT a, b FROM c{levels}"


ANSWERED = {
    "a CASE over two tables": "SELECT SUM(CASE WHEN s.b > r.a THEN 1 ELSE 0 END) n FROM r JOIN s ON r.b = s.a",
    "a CASE over two tables times a column": (
        "SELECT r.c, SUM(CASE WHEN s.b > r.a THEN s.b ELSE 0 END) n FROM r JOIN s ON r.b = s.a GROUP BY r.c"
    ),
    "a shifted key compared with itself": "SELECT t.k FROM t JOIN u ON t.k + 1 = u.k WHERE t.k <= u.k",
    "a shifted key compared the other way": "SELECT t.k FROM t JOIN u ON t.k + 1 = u.k WHERE u.k < t.k",
    "ON that reads the outer row": (
        "SELECT r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM s JOIN u ON s.b = u.k AND s.a = r.a WHERE s.b > 0)"
    ),
    "ON that reads the outer row beside a comparison": (
        "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s JOIN u ON s.b < u.k AND s.a = r.a)"
    ),
    "ON of a scalar subquery": (
        "SELECT r.a FROM r WHERE r.b = (SELECT MAX(s.b) FROM s JOIN u ON s.b = u.k AND s.a = r.a)"
    ),
    "ON that reads the outer row before an outer join": (
        "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s JOIN u ON s.a = r.a AND s.b = u.x LEFT JOIN t ON u.k = t.k)"
    ),
    "EXISTS in a scalar subquery that reads the outermost row": (
        "SELECT a FROM r WHERE b = "
        "(SELECT MAX(s.a) FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.b AND t.v = r.a))"
    ),
    "EXISTS in a scalar subquery that reads only the outermost row": (
        "SELECT a FROM r WHERE b = (SELECT MAX(s.a) FROM s WHERE s.b = r.b AND EXISTS (SELECT 1 FROM t WHERE r.a = 1))"
    ),
    "names that use the one before twice": _doubled(6),
    "a product of sums over two tables": f"SELECT SUM({' * '.join(['(r.a + s.b)'] * 7)}) n FROM r JOIN s ON r.b = s.a",
    "a long chain of ||": f"SELECT {' || '.join(['c'] * 300)} AS x FROM r",
    "a long AND": f"SELECT a FROM r WHERE {' AND '.join(f'a <> {i}' for i in range(2, 300))}",
    "a long OR": f"SELECT r.a FROM r JOIN s ON r.b = s.a WHERE {' OR '.join(f'r.a = {i}' for i in range(0, 2000, 2))}",
    "a long IN": f"SELECT a FROM r WHERE a IN ({', '.join(map(str, range(0, 5000, 2)))})",
}


@pytest.mark.parametrize("sql", ANSWERED.values(), ids=ANSWERED)
def test_answered(sql: str, rng: random.Random) -> None:
    judge, view = Judge(sql, SCHEMA), crown.View(sql, schema=SCHEMA)
    small = [None, 0, 1, 2, 3]
    for number in range(4):
        changes = [
            *(Change("r", (rng.choice(small), rng.choice(small), rng.choice(["x", None]))) for _ in range(3)),
            *(Change("s", (rng.choice(small), rng.choice(small))) for _ in range(3)),
            *(Change("u", (rng.choice(small), rng.choice(small))) for _ in range(2)),
            Change("t", (number, rng.choice(small))),
        ]
        delta = view.apply(judge.as_arrow(changes))
        judge.apply(changes)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


REFUSED = {
    "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s LEFT JOIN t ON s.b = t.k AND t.k = r.a)": (
        "CROWN-SQL-CORRELATED-SUBQUERY",
        "t.k = r.a",
    ),
    "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s FULL JOIN t ON s.b = t.k AND s.a = r.a WHERE s.a = r.b)": (
        "CROWN-SQL-CORRELATED-SUBQUERY",
        "s.a = r.a",
    ),
    "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s LEFT ANTI JOIN t ON s.b = t.k AND t.v = r.a)": (
        "CROWN-SQL-CORRELATED-SUBQUERY",
        "t.v = r.a",
    ),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused_at_the_place(sql: str) -> None:
    code, place = REFUSED[sql]
    with pytest.raises(SqlError) as caught:
        crown.View(sql, schema=SCHEMA)
    error = caught.value
    assert error.code == code
    assert error.position is not None and sql[slice(*error.position)] == place
    assert error.reason and error.hint


@pytest.mark.parametrize("depth", [40, 400, 2000])
@pytest.mark.parametrize(
    "left, middle, right",
    [
        ("(", "a", ")"),
        ("- ", "a", ""),
        ("NOT ", "(a = 1)", ""),
        ("upper(", "c", ")"),
        ("coalesce(", "a", ", a)"),
        ("CASE WHEN a = 1 THEN 1 ELSE ", "0", " END"),
        ("a + ", "a", ""),
        ("", "a", " - a"),
        ("c || ", "c", ""),
        ("a IN (", "a", ")"),
        ("(SELECT MAX(a) FROM s WHERE b = ", "1", ")"),
        ("CAST(", "a", " AS BIGINT)"),
        ("(a, ", "a", ")"),
        ("[", "a", "]"),
        ("a.b.", "a", ""),
        ("/* ", "a", " */"),
    ],
)
def test_depth(left: str, middle: str, right: str, depth: int) -> None:
    """Deep text gives a view or a `CrownError`."""
    text = left * depth + middle + right * depth
    for sql in (f"SELECT {text} AS x FROM r", f"SELECT a FROM r WHERE {text} = 1", f"SELECT {text} FROM r"):
        try:
            crown.View(sql, schema=SCHEMA)
        except CrownError:
            continue


def test_depth_is_refused_at_the_innermost_place() -> None:
    sql = f"SELECT {'upper(' * 300}c{')' * 300} AS x FROM r"
    with pytest.raises(SqlError) as caught:
        crown.View(sql, schema=SCHEMA)
    assert caught.value.code == "CROWN-SQL-TOO-DEEP"
    assert caught.value.position == (sql.index("(c"), sql.index("(c") + 1)
    assert caught.value.reason and caught.value.hint


@pytest.mark.parametrize("depth", [10, 100, 1000])
def test_deep_queries(depth: int) -> None:
    for sql in (
        "SELECT a FROM " + "(SELECT a FROM " * depth + "r" + ") q" * depth,
        "SELECT a FROM r WHERE " + "EXISTS (SELECT 1 FROM s WHERE s.a = 1 AND " * depth + "TRUE" + ")" * depth,
        " UNION ALL ".join(["SELECT a FROM r"] * depth),
        " UNION ".join(["SELECT a FROM r"] * depth),
        "(" * depth + "SELECT a FROM r" + ")" * depth,
        "SELECT a FROM r " + " ".join(f"JOIN s s{i} USING (a)" for i in range(depth)),
        "SELECT x.a FROM r x " + " ".join(f"LEFT JOIN s s{i} ON s{i}.a = x.a" for i in range(depth)),
    ):
        try:
            crown.View(sql, schema=SCHEMA)
        except CrownError:
            continue
