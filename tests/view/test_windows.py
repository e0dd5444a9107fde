"""Window functions through a view, against DuckDB: bounded ranks and aggregates of partitions."""

from __future__ import annotations

import random

import pytest

import crown
from crown.ir.plan import TopStage
from tests.support.followed import Followed, follow
from tests.support.judge import Judge, Row
from tests.support.stream import changes

SCHEMA = "CREATE TABLE t (p INT, q STRING, x INT, d DOUBLE, n INT NOT NULL)"

# The order of ROW_NUMBER names all columns, so that ties are equal rows.
ALL = "x DESC, q, p NULLS LAST, d, n"
TOP = {
    "latest": f"SELECT p, q, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY {ALL}) AS rn FROM t) "
    f"WHERE rn = 1",
    "qualify": f"SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY p, n ORDER BY {ALL}) <= 2",
    "number shown": f"SELECT p, x, ROW_NUMBER() OVER (PARTITION BY p ORDER BY {ALL}) AS rn FROM t QUALIFY rn < 4",
    "rank": "SELECT p, x, RANK() OVER (PARTITION BY p ORDER BY x) AS r FROM t QUALIFY r <= 3",
    "rank hidden": "SELECT n, x FROM (SELECT *, RANK() OVER (PARTITION BY n ORDER BY x NULLS LAST) "
    "AS r FROM t) WHERE r "
    "<= 2",
    "dense rank": "SELECT q, x FROM t QUALIFY DENSE_RANK() OVER (PARTITION BY q ORDER BY x DESC) IN (1, 2)",
    "second": f"SELECT p, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY {ALL}) AS rn FROM t) WHERE "
    f"rn = 2",
    "between": "SELECT p, x, r FROM (SELECT p, x, RANK() OVER (PARTITION BY p ORDER BY x) AS r FROM t) WHERE r "
    "BETWEEN 2 AND 3",
    "several ranks": "SELECT p, x, RANK() OVER w AS r, DENSE_RANK() OVER w AS e FROM t WINDOW w AS "
    "(PARTITION BY p ORDER "
    "BY x) "
    "QUALIFY e <= 2",
    "whole table": f"SELECT x, ROW_NUMBER() OVER (ORDER BY {ALL}) AS rn FROM t QUALIFY rn <= 5",
    "no order": "SELECT p FROM (SELECT p, ROW_NUMBER() OVER (PARTITION BY p) AS rn FROM t) WHERE rn = 1",
    "expressions": "SELECT p + 1 AS k, x * 2 AS y FROM t QUALIFY RANK() OVER (PARTITION BY p + 1, n "
    "% 2 ORDER BY x * n, "
    "d) = 1",
    "of groups": "SELECT p, n, COUNT(*) AS c FROM t GROUP BY p, n QUALIFY RANK() OVER (PARTITION BY p ORDER BY "
    "COUNT(*) DESC) = 1",
    "joined": f"SELECT a.n, b.x FROM t a LEFT JOIN (SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY {ALL}) AS "
    f"rn FROM t) b "
    "ON a.p = b.n AND b.rn = 1",
    "read twice": f"WITH w AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY {ALL}) AS rn FROM t) "
    "SELECT a.p, a.x, b.x AS y FROM w a JOIN w b ON a.p = b.p WHERE a.rn = 1 AND b.rn <= 2",
    "counted": f"SELECT COUNT(*) AS c, SUM(x) AS s FROM (SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY p "
    f"ORDER BY {ALL}) <= 2)",
    "distinct": "SELECT DISTINCT p, x FROM t QUALIFY RANK() OVER (PARTITION BY p ORDER BY d) = 1",
    "never": "SELECT p FROM t QUALIFY RANK() OVER (PARTITION BY p ORDER BY d) < 1",
}
GROUPS = {
    "sum": "SELECT p, x, SUM(x) OVER (PARTITION BY p) AS s FROM t",
    "share": "SELECT n, x, x / SUM(x) OVER (PARTITION BY n) AS s FROM t WHERE x > 0",
    "global": "SELECT x, COUNT(*) OVER () AS c, MAX(d) OVER () AS m FROM t",
    "several": "SELECT p, q, COUNT(*) OVER (PARTITION BY p, q) AS c, MIN(x) OVER (PARTITION BY q) AS m, AVG(d) OVER "
    "() AS a FROM t",
    "filter": "SELECT p, x, COUNT(*) FILTER (WHERE x > 1) OVER (PARTITION BY p) AS c FROM t",
    "compared": "SELECT p, x FROM t QUALIFY x >= AVG(x) OVER (PARTITION BY p)",
    "of groups": "SELECT p, n, SUM(x) AS s, SUM(SUM(x)) OVER (PARTITION BY p) AS whole FROM t GROUP BY p, n",
    "join": "SELECT a.p, b.x, SUM(b.x) OVER (PARTITION BY a.p) AS s FROM t a JOIN t b ON a.n = b.n AND a.p < b.p",
    "left join": "SELECT a.x, b.q, COUNT(b.q) OVER (PARTITION BY b.q) AS c FROM t a LEFT JOIN t b ON a.p = b.n",
    "whole frame": "SELECT p, MAX(x) OVER (PARTITION BY p ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
    "FOLLOWING) AS m "
    "FROM t",
    "expression": "SELECT COUNT(*) OVER (PARTITION BY x % 2, q IS NULL) AS c, n FROM t",
    "and a rank": f"SELECT p, x, COUNT(*) OVER (PARTITION BY p) AS c FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY p "
    f"ORDER BY {ALL}) = 1",
    "distinct": "SELECT p, COUNT(DISTINCT x) OVER (PARTITION BY p) AS c FROM t",
    "in a union": "SELECT p, SUM(x) OVER (PARTITION BY p) AS s FROM t UNION ALL SELECT n, COUNT(*) OVER () FROM t",
}

# Each names all columns in its order, where rows with equal order would differ.
BY_ALL = f"OVER (PARTITION BY p ORDER BY {ALL})"
ORDERED = {
    "ranks": "SELECT p, x, RANK() OVER w AS r, DENSE_RANK() OVER w AS e, PERCENT_RANK() OVER w AS c, "
    "CUME_DIST() OVER w AS d "
    "FROM t WINDOW w AS (PARTITION BY p ORDER BY x)",
    "numbers": f"SELECT p, x, ROW_NUMBER() {BY_ALL} AS n, NTILE(3) {BY_ALL} AS b FROM t",
    "global number": f"SELECT q, ROW_NUMBER() OVER (ORDER BY {ALL}) AS n FROM t",
    "neighbours": f"SELECT x, LAG(x) {BY_ALL} AS a, LEAD(q, 2, 'none') {BY_ALL} AS b, LAG(d, 1, 0.5) {BY_ALL} AS c "
    f"FROM t",
    "without nulls": f"SELECT x, LAG(x) IGNORE NULLS {BY_ALL} AS a, LEAD(x) IGNORE NULLS {BY_ALL} AS b FROM t",
    "ends": f"SELECT x, FIRST_VALUE(q) {BY_ALL} AS a, LAST_VALUE(d) {BY_ALL} AS b, NTH_VALUE(x, 2) {BY_ALL} "
    f"AS c FROM t",
    "ends without nulls": f"SELECT x, FIRST_VALUE(q) IGNORE NULLS {BY_ALL} AS a, LAST_VALUE(d) IGNORE NULLS "
    f"{BY_ALL} AS b "
    f"FROM t",
    "running": "SELECT p, x, SUM(x) OVER w AS s, COUNT(*) OVER w AS c, MAX(q) OVER w AS m, AVG(d) OVER w AS a FROM t "
    "WINDOW w AS (PARTITION BY p ORDER BY n, x)",
    "running rows": f"SELECT x, SUM(x) OVER (PARTITION BY n ORDER BY {ALL} ROWS UNBOUNDED PRECEDING) AS s FROM t",
    "moving": f"SELECT x, SUM(x) OVER (PARTITION BY n ORDER BY {ALL} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s, "
    f"MIN(q) OVER (PARTITION BY n ORDER BY {ALL} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS m FROM t",
    "before": f"SELECT x, COUNT(x) OVER (PARTITION BY n ORDER BY {ALL} ROWS BETWEEN 3 PRECEDING AND 2 "
    f"PRECEDING) AS s FROM t",
    "after": f"SELECT x, SUM(x) OVER (PARTITION BY n ORDER BY {ALL} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED "
    f"FOLLOWING) AS s FROM t",
    "range": "SELECT x, n, COUNT(*) OVER (PARTITION BY n ORDER BY x RANGE BETWEEN 1 PRECEDING AND 2 "
    "FOLLOWING) AS c FROM t",
    "range back": "SELECT x, SUM(x) OVER (ORDER BY x DESC NULLS LAST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) "
    "AS c FROM t",
    "reverse running": "SELECT x, COUNT(*) OVER (PARTITION BY p ORDER BY x RANGE BETWEEN CURRENT ROW AND UNBOUNDED "
    "FOLLOWING) AS c "
    "FROM t",
    "of groups": "SELECT p, n, SUM(COUNT(*)) OVER (PARTITION BY p ORDER BY n) AS s FROM t GROUP BY p, n",
    "several": "SELECT p, x, RANK() OVER (PARTITION BY p ORDER BY x) AS a, RANK() OVER (PARTITION BY n ORDER "
    "BY d) AS b, "
    "SUM(x) OVER (PARTITION BY p) AS c FROM t",
    "filtered": "SELECT p, x FROM (SELECT p, x, RANK() OVER (PARTITION BY p ORDER BY x) AS r FROM t) WHERE r % 2 = 0",
    "then grouped": "SELECT r, COUNT(*) AS c FROM (SELECT DENSE_RANK() OVER (PARTITION BY p ORDER BY x) AS r FROM "
    "t) GROUP BY r",
    "in a join": f"SELECT a.x, b.r FROM t a JOIN (SELECT n, ROW_NUMBER() OVER (ORDER BY {ALL}) AS r FROM t) b ON "
    f"a.x = b.r",
    "distinct": "SELECT x, COUNT(DISTINCT q) OVER (PARTITION BY p ORDER BY x) AS c, STDDEV(d) OVER (PARTITION "
    "BY p ORDER BY x) AS s "
    "FROM t",
    "limited": "SELECT x, RANK() OVER (ORDER BY x) AS r FROM t ORDER BY r DESC, x LIMIT 3",
    "a window of a window": "SELECT p, x, SUM(x) OVER c AS s, COUNT(*) OVER b AS n, COUNT(x) OVER (a ORDER BY d) AS m "
    "FROM t WINDOW a AS (PARTITION BY p), b AS (a ORDER BY x), c AS (b RANGE UNBOUNDED PRECEDING)",
    "a name for a window": "SELECT p, x, SUM(x) OVER b AS s FROM t WINDOW a AS (PARTITION BY p ORDER BY x), b AS a",
    "lists": f"SELECT x, LISTAGG(q, '-') {BY_ALL} AS a, LISTAGG(q, '-') OVER (PARTITION BY p ORDER BY {ALL} ROWS "
    "BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS b FROM t",
    "lists of partitions": f"SELECT x, COLLECT_LIST(n) OVER (PARTITION BY p ORDER BY {ALL} ROWS BETWEEN UNBOUNDED "
    "PRECEDING AND UNBOUNDED FOLLOWING) AS a FROM t",
    "over a rank": "SELECT x, SUM(x) OVER (ORDER BY r) AS s FROM (SELECT x, RANK() OVER (ORDER BY x) AS r FROM t)",
}


def row(draw: random.Random) -> Row:
    return (
        draw.choice([None, 0, 1, 2]),
        draw.choice([None, "", "a", "b"]),
        draw.choice([None, 0, 1, 2, 3, 7]),
        draw.choice([None, -1.5, 0.0, 2.5]),
        draw.choice([0, 1, 2]),
    )


def check(sql: str, seed: int, *, threads: tuple[int, ...] = (1, 2, 3)) -> None:
    print(f"seed {seed}: {sql}")
    judge = Judge(sql, SCHEMA)
    followed = [Followed(f"{n} threads", crown.View(sql, schema=SCHEMA, threads=n)) for n in threads]
    followed.append(Followed("single updates", crown.View(sql, schema=SCHEMA), single=True))
    follow(judge, followed, changes(seed, "t", row), reloads={3})


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", TOP)
def test_bounded_ranks(name: str, seed: int) -> None:
    check(TOP[name], seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", GROUPS)
def test_aggregates_of_partitions(name: str, seed: int) -> None:
    check(GROUPS[name], seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_partitions(name: str, seed: int) -> None:
    check(ORDERED[name], seed)


@pytest.mark.parametrize("name", ["latest", "qualify", "rank hidden", "dense rank"])
def test_a_bounded_rank_is_a_top_of_each_key(name: str) -> None:
    """No tree above the ranked rows, and no rank where none is shown."""
    plan = crown.View(TOP[name], schema=SCHEMA).plan
    (top,) = [stage for stage in plan.stages if isinstance(stage, TopStage)]
    assert top.partition and not top.ranks
    assert sum(stage.id.startswith("$tree") for stage in plan.stages) == 1


def test_only_what_crosses_the_bound_is_in_the_delta() -> None:
    sql = "SELECT p, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY p ORDER BY x DESC) <= 3"
    view = crown.View(sql, schema=SCHEMA)
    view.insert("t", [(1, "a", x, 0.0, 0) for x in range(100)])
    delta = view.insert("t", [(1, "a", 98, 0.0, 0)])
    assert sorted(zip(delta["x"].to_pylist(), delta["_change_type"].to_pylist(), strict=True)) == [
        (97, "delete"),
        (98, "insert"),
    ]
    assert not view.insert("t", [(1, "a", 5, 0.0, 0)]).num_rows


def test_a_failed_batch_leaves_ranked_rows_as_they_were() -> None:
    sql = (
        "SELECT p, 10 / x AS y FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY n) AS rn FROM t) WHERE rn = 1"
    )
    view = crown.View(sql, schema=SCHEMA)
    view.insert("t", [(1, "a", 5, 0.0, 2), (2, "a", 2, 0.0, 2)])
    before = sorted(view)
    with pytest.raises(crown.CrownError):
        view.apply({"t": [(1, "b", 0, 0.0, 1), (2, "b", 1, 0.0, 1)]})
    assert sorted(view) == before
    assert view.insert("t", [(2, "b", 1, 0.0, 1)]).num_rows == 2


def test_a_failed_batch_leaves_ordered_partitions_as_they_were() -> None:
    sql = (
        "SELECT p, q, MAX(q) OVER (PARTITION BY p ORDER BY n) AS m, SUM(b) OVER (PARTITION BY p ORDER BY n) AS s FROM u"
    )
    view = crown.View(sql, schema="CREATE TABLE u (p INT, q STRING, b BIGINT, n INT)")
    view.insert("u", [(1, "a", 2**62, 1), (2, "b", 5, 1), (2, "c", 6, 2)])
    before = sorted(view)
    with pytest.raises(crown.CrownError):
        view.apply({"u": [(2, "z", 1, 0), (1, "y", 2**62, 2), (3, "x", 1, 1)]})
    assert sorted(view) == before
    assert view.delete("u", [(2, "b", 5, 1)]).num_rows == 3
    assert sorted(view) == [(1, "a", "a", 2**62), (2, "c", "c", 6)]


def test_a_change_at_the_end_changes_one_row() -> None:
    view = crown.View("SELECT n, SUM(x) OVER (ORDER BY n) AS s, LAG(x) OVER (ORDER BY n) AS l FROM t", schema=SCHEMA)
    view.insert("t", [(1, "a", 1, 0.0, n) for n in range(1000)])
    assert view.insert("t", [(1, "a", 5, 0.0, 1000)]).to_pylist() == [
        {"n": 1000, "s": 1005, "l": 1, "_change_type": "insert", "_multiplicity": 1}
    ]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (TOP["latest"], "top-k of each key"),
        (GROUPS["sum"], "annotations in the tree"),
        (ORDERED["neighbours"], "the rows around the change"),
        (ORDERED["running"], "the rows after the change"),
        (ORDERED["range"], "all rows of the partition"),
    ],
)
def test_explain_tells_the_kind_and_the_price(sql: str, kind: str) -> None:
    assert kind in " ".join(str(crown.View(sql, schema=SCHEMA).explain()).split())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT RANK() OVER () AS r FROM t",
        "SELECT NTILE(0) OVER (ORDER BY x) AS r FROM t",
        "SELECT SUM(x) OVER (ORDER BY d RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM t",
        "SELECT SUM(RANK() OVER (ORDER BY x)) OVER () AS r FROM t",
        "SELECT p FROM t WHERE RANK() OVER (ORDER BY x) = 1",
        "SELECT p FROM t QUALIFY p > 1",
        "SELECT SUM(x) OVER nothing AS r FROM t",
        "SELECT SUM(x) OVER w AS r FROM t WINDOW w AS (nothing ORDER BY x)",
        "SELECT SUM(x) OVER a AS r FROM t WINDOW a AS (b), b AS (a ORDER BY x)",
        "SELECT SUM(x) OVER (w PARTITION BY q) AS r FROM t WINDOW w AS (PARTITION BY p)",
        "SELECT SUM(x) OVER b AS r FROM t WINDOW a AS (ORDER BY p), b AS (a ORDER BY q)",
        "SELECT SUM(x) OVER w AS r FROM t WINDOW w AS (PARTITION BY p), W AS (PARTITION BY q)",
    ],
)
def test_refusals(sql: str) -> None:
    with pytest.raises(crown.CrownError) as caught:
        crown.View(sql, schema=SCHEMA)
    assert caught.value.code == "CROWN-SQL-WINDOW-FUNCTION"
