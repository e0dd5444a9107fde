"""Grouping sets and the statistical, ordered and bitwise aggregates through a view, against DuckDB."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest

import crown
from crown.errors import SqlError
from tests.support.followed import Followed, follow
from tests.support.judge import Judge, Row
from tests.support.stream import changes

SCHEMA = "CREATE TABLE t (p INT, q STRING, x INT, d DOUBLE, e DECIMAL(10,2), b BIGINT NOT NULL)"

SETS = {
    "rollup": "SELECT p, q, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY ROLLUP (p, q)",
    "cube": "SELECT p, q, GROUPING(p) AS gp, GROUPING(q) AS gq, MAX(d) AS m FROM t GROUP BY CUBE (p, q)",
    "sets": "SELECT p, q, b, AVG(x) AS a FROM t GROUP BY GROUPING SETS ((p, q), (b), (p))",
    "mixed": "SELECT p, q, b, COUNT(DISTINCT x) AS n FROM t GROUP BY p, ROLLUP (q, b)",
    "having": "SELECT p, b, MIN(q) AS m FROM t GROUP BY ROLLUP (p, b) HAVING COUNT(*) > 1",
    "identity": "SELECT GROUPING_ID(p, q) AS g, p, q, SUM(DISTINCT x) AS s FROM t GROUP BY CUBE (p, q)",
    "expression": "SELECT p + 1 AS k, COUNT(*) AS n FROM t GROUP BY ROLLUP (p + 1)",
    "no aggregate": "SELECT p, b FROM t GROUP BY ROLLUP (p, b)",
    "beside a subquery": "SELECT p, GROUPING(p) AS g, (SELECT COUNT(*) FROM t u WHERE u.p = t.p) AS c FROM t "
    "GROUP BY ROLLUP (p)",
    "beside a mark": "SELECT p, b, GROUPING_ID(p, b) AS g, p IN (SELECT p FROM t u WHERE u.x > 2) AS m FROM t "
    "GROUP BY CUBE (p, b) HAVING GROUPING(p) = 0 OR p IN (SELECT p FROM t)",
    "joined": "SELECT l.p, r.q, COUNT(*) AS n FROM t l JOIN t r ON l.p = r.b GROUP BY ROLLUP (l.p, r.q)",
    "two trees": "SELECT p, b, COUNT(*) AS n FROM (SELECT p, b FROM t UNION ALL SELECT x, b FROM t) "
    "GROUP BY CUBE (p, b)",
    "ranked": "SELECT p, b, SUM(x) AS s FROM t GROUP BY ROLLUP (p, b) "
    "QUALIFY RANK() OVER (PARTITION BY GROUPING(p) + GROUPING(b) ORDER BY SUM(x) DESC) <= 2",
}
AGGREGATES = {
    "spread": "STDDEV(x) AS a, STDDEV_POP(x) AS b1, VARIANCE(d) AS c, VAR_POP(e) AS f",
    "regression": "REGR_COUNT(x, d) AS a, REGR_AVGX(x, d) AS c, REGR_AVGY(x, d) AS f, REGR_SXX(x, d) AS g, "
    "REGR_SYY(x, d) FILTER (WHERE b > 0) AS h, REGR_SXY(x, d) AS i",
    "pairs": "COVAR_POP(x, d) AS a, COVAR_SAMP(x, b) AS b1",
    "by": "MAX_BY(b * 2, b * 100 + x) AS a, MIN_BY(x, x) FILTER (WHERE b > 0) AS c",
    "ordered": "LISTAGG(q, '-') WITHIN GROUP (ORDER BY q DESC) AS a, "
    "STRING_AGG(DISTINCT q, ',') WITHIN GROUP (ORDER BY q) AS c",
    "middle": "MEDIAN(x) AS a, PERCENTILE(d, 0.25) AS c, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY b DESC) AS f",
    "discrete": "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS a, "
    "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY d) AS c",
    "bits": "BIT_AND(x) AS a, BIT_OR(x) AS c, BIT_XOR(b) AS f",
    "distinct": "COUNT(DISTINCT p, x) AS a, COUNT(DISTINCT q, d, b) AS c, STDDEV(DISTINCT x) AS f, "
    "MEDIAN(DISTINCT x) AS g",
    "filtered": "STDDEV(x) FILTER (WHERE b > 0) AS a, BIT_OR(b) FILTER (WHERE x IS NULL) AS c",
    "beside": "SUM(x) AS a, COUNT(*) AS c, STDDEV(x) AS f, MIN(q) AS g, SUM(DISTINCT x) AS h",
}


def row(draw: random.Random) -> Row:
    return (
        draw.choice([None, 0, 1, 2]),
        draw.choice([None, "", "a", "b"]),
        draw.choice([None, 0, 1, 2, 3, 7]),
        draw.choice([None, -1.5, 0.0, 2.5]),
        draw.choice([None, Decimal("1.25"), Decimal("-3.50")]),
        draw.choice([0, 1, 2]),
    )


def check(sql: str, seed: int) -> None:
    print(f"seed {seed}: {sql}")
    judge = Judge(sql, SCHEMA)
    followed = [Followed(f"{n} threads", crown.View(sql, schema=SCHEMA, threads=n)) for n in (1, 2, 3)]
    follow(judge, followed, changes(seed, "t", row), reloads={3})


@pytest.mark.parametrize("name", SETS)
def test_grouping_sets(name: str) -> None:
    check(SETS[name], 1)


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize("by", ["p", ""])
def test_aggregates(name: str, by: str) -> None:
    check(f"SELECT {'p, ' if by else ''}{AGGREGATES[name]} FROM t{' GROUP BY p' if by else ''}", 2)


def test_grouping_sets_over_no_rows_have_no_row() -> None:
    view = crown.View("SELECT p, COUNT(*) AS n FROM t GROUP BY ROLLUP (p)", schema=SCHEMA)
    assert not len(view)
    view.insert("t", [(1, None, None, None, None, 0)])
    assert sorted(view, key=str) == [(1, 1), (None, 1)]
    view.delete("t", [(1, None, None, None, None, 0)])
    assert not len(view)


def test_grouping_sets_join_their_rows_once() -> None:
    plan = crown.View(SETS["joined"], schema=SCHEMA).plan
    assert sum(stage.id.startswith("$tree") for stage in plan.stages) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p, b WITH ROLLUP", "ROLLUP (p, b)"),
        ("p, b WITH CUBE", "GROUPING SETS ((p, b), (p), (b), ())"),
        ("p, b GROUPING SETS ((p), (b))", "GROUPING SETS (p, b)"),
        ("p, CUBE (b)", "GROUPING SETS ((p, b), (p))"),
        ("ROLLUP ((p, b))", "GROUPING SETS ((p, b), ())"),
    ],
)
def test_ways_to_write_grouping_sets(one: str, other: str) -> None:
    rows = [row(random.Random(seed)) for seed in range(20)]
    results = []
    for by in (one, other):
        view = crown.View(f"SELECT p, b, GROUPING_ID(p, b) AS g, COUNT(*) AS n FROM t GROUP BY {by}", schema=SCHEMA)
        view.insert("t", rows)
        results.append(sorted(view, key=str))
    assert results[0] == results[1]


def test_regressions_are_those_of_spark() -> None:
    """Where all x are equal, DuckDB's slope is not a number; Spark's is NULL."""
    sql = "SELECT p, REGR_SLOPE(x, d) AS s, REGR_INTERCEPT(x, d) AS i, REGR_R2(x, d) AS r FROM t GROUP BY p"
    view = crown.View(sql, schema=SCHEMA)
    pairs = [(1, 2, 0.0), (1, 5, 1.5), (1, 1, None), (2, 1, 2.5), (2, 7, 2.5), (3, 3, 1.0), (3, 3, 2.0)]
    view.insert("t", [(p, None, x, d, None, 0) for p, x, d in pairs])
    assert sorted(view) == [(1, 2.0, 2.0, 1.0), (2, None, None, None), (3, 0.0, 3.0, 1.0)]
    view.delete("t", [(1, None, 5, 1.5, None, 0), (2, None, 7, 2.5, None, 0), (3, None, 3, 1.0, None, 0)])
    assert sorted(view) == [(1, None, None, None), (2, None, None, None), (3, None, None, None)]


def test_all_columns_of_a_row_are_counted_once() -> None:
    sql = "SELECT COUNT(DISTINCT *) AS n, COUNT(DISTINCT p, t.*) AS m FROM t"
    view = crown.View(sql, schema=SCHEMA)
    same, other = (1, "a", 1, 1.0, Decimal("1.25"), 0), (1, "b", 1, 1.0, Decimal("1.25"), 0)
    view.insert("t", [same, same, other, (1, None, 1, 1.0, Decimal("1.25"), 0)])
    assert list(view) == [(2, 2)]
    view.delete("t", [other, same])
    assert list(view) == [(1, 1)]
    with pytest.raises(SqlError, match=r"\* is not allowed here"):
        crown.View("SELECT COUNT(DISTINCT t.*) FROM t", schema=SCHEMA)


def test_percentile_disc_is_a_double_in_spark() -> None:
    sql = "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS a FROM t"
    types = [
        str(crown.View(sql, schema=SCHEMA, dialect=dialect).schema.field(0).type) for dialect in ("spark", "duckdb")
    ]
    assert types == ["double", "int32"]


def test_grouping__id_is_hives_grouping_id() -> None:
    rows = [row(random.Random(seed)) for seed in range(20)]
    results = []
    for written in ("grouping__id", "GROUPING_ID()"):
        sql = f"SELECT p, b, {written} AS g FROM t GROUP BY CUBE (p, b) HAVING {written} > 0 ORDER BY {written}, p, b"
        view = crown.View(sql, schema=SCHEMA)
        view.insert("t", rows)
        results.append(list(view))
    assert results[0] == results[1] and results[0]


def test_any_value_is_one_of_them() -> None:
    view = crown.View("SELECT ANY_VALUE(q) AS a, FIRST(x) AS f, LAST(x) AS l FROM t", schema=SCHEMA)
    view.insert("t", [(1, "b", 3, None, None, 0), (1, "a", 5, None, None, 0), (1, None, None, None, None, 0)])
    assert list(view) == [("a", 3, 5)]


def test_first_and_last_go_by_their_order() -> None:
    sql = "SELECT FIRST(q ORDER BY b) AS a, LAST(q ORDER BY b) AS c, FIRST(x ORDER BY b DESC) AS f FROM t"
    view = crown.View(sql, schema=SCHEMA)
    view.insert("t", [(1, "a", 5, None, None, 1), (1, "b", 6, None, None, 2), (1, None, None, None, None, 3)])
    assert list(view) == [("a", None, None)]
    view.delete("t", [(1, None, None, None, None, 3), (1, "a", 5, None, None, 1)])
    assert list(view) == [("b", "b", 6)]


def test_mode_is_the_least_of_the_most_frequent_values() -> None:
    view = crown.View("SELECT MODE(x) AS m FROM t", schema=SCHEMA)
    view.insert("t", [(1, "a", x, None, None, 0) for x in (3, 3, 2, 2, 9, None, None, None)])
    assert list(view) == [(2,)]
    view.insert("t", [(1, "a", 9, None, None, 0)] * 2)
    assert list(view) == [(9,)]


def test_a_variance_does_not_remember_what_has_left() -> None:
    view = crown.View("SELECT VAR_SAMP(d) AS v, CORR(d, b) AS c FROM t", schema=SCHEMA)
    small = [(1, "a", 0, 1e9 + i, None, i) for i in range(3)]
    view.insert("t", small)
    assert list(view) == [(1.0, 1.0)]
    large = [(1, "a", 0, 1e200, None, 5), (1, "a", 0, math.nan, None, 7), (1, "a", 0, math.inf, None, 7)]
    view.insert("t", large)
    assert math.isnan(next(iter(view))[0])
    view.delete("t", large)
    assert list(view) == [(1.0, 1.0)]
    view.delete("t", small[1:])
    assert list(view) == [(None, None)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT GROUPING(p) AS g FROM t GROUP BY p", "CROWN-SQL-GROUPING-SETS"),
        ("SELECT GROUPING(x) AS g FROM t GROUP BY ROLLUP (p)", "CROWN-SQL-GROUPING-SETS"),
        ("SELECT PERCENTILE(x, 1.5) AS g FROM t", "CROWN-SQL-AGGREGATE-ARGUMENTS"),
        ("SELECT SUM(x ORDER BY b) AS g FROM t", "CROWN-SQL-AGGREGATE-FUNCTION"),
        ("SELECT BIT_AND(d) AS g FROM t", "CROWN-SQL-TYPE-CLASH"),
        ("SELECT LISTAGG(DISTINCT q, ',') WITHIN GROUP (ORDER BY b) AS g FROM t", "CROWN-SQL-AGGREGATE-ARGUMENTS"),
    ],
)
def test_refusals(sql: str, code: str) -> None:
    with pytest.raises(SqlError) as caught:
        crown.View(sql, schema=SCHEMA)
    assert caught.value.code == code
