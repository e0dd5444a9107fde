"""UNION, EXCEPT and INTERSECT over operands with several branches: every way to read the view is what DuckDB says."""

from __future__ import annotations

import random
from itertools import product

import pytest

import crown
from crown.ir.plan import MaterializeStage
from tests.support.followed import Followed
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE a (k INT, v INT); CREATE TABLE b (k INT, v INT); CREATE TABLE c (k INT, v INT)"
LEFT = "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k"
OPERANDS = {
    "outer join": LEFT,
    "padded outer join": "SELECT b.v FROM a LEFT JOIN b ON a.k = b.k",
    "full join": "SELECT a.k FROM a FULL JOIN b ON a.k = b.k",
    "computed": "SELECT a.k + 0 AS k FROM a LEFT JOIN b ON a.k = b.k",
    "computed of both": "SELECT a.k + b.v AS k FROM a LEFT JOIN b ON a.k = b.k",
    "cast": "SELECT CAST(CAST(a.k AS STRING) AS INT) AS k FROM a LEFT JOIN b ON a.k = b.k",
    "union all": "SELECT k FROM a UNION ALL SELECT v FROM b",
    "union all, one computed": "SELECT k FROM a UNION ALL SELECT v + 1 FROM b",
    "union": "SELECT k FROM a UNION SELECT v FROM b",
    "except all": "SELECT k FROM a EXCEPT ALL SELECT v FROM b",
    "limit": "SELECT k FROM a ORDER BY k NULLS FIRST LIMIT 3",
    "hidden order": "SELECT k FROM a ORDER BY v NULLS FIRST, k NULLS FIRST LIMIT 3",
    "groups": "SELECT COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k",
    "folded groups": "SELECT CAST(MAX(a.v) AS INT) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.v",
    "distinct": "SELECT DISTINCT a.k FROM a LEFT JOIN b ON a.v = b.v",
}
OPERATORS = ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
OTHER = "SELECT CAST(v AS BIGINT) FROM c"


def batches(rng: random.Random) -> list[list[Change]]:
    """Some of few values, so that rows repeat, then all but a few of them away."""
    live: list[Change] = []
    result = []
    for _ in range(4):
        batch = []
        for _ in range(8):
            if live and rng.random() < 0.4:
                gone = live.pop(rng.randrange(len(live)))
                batch.append(Change(gone.table, gone.row, -1))
            else:
                row = tuple(None if rng.random() < 0.15 else rng.randrange(3) for _ in range(2))
                live.append(Change(rng.choice("abc"), row))
                batch.append(live[-1])
        result.append(batch)
    result.append([Change(change.table, change.row, -1) for change in live[2:]])
    return result


def follow(sql: str, rng: random.Random, threads: int) -> None:
    judge = Judge(sql, SCHEMA)
    followed = Followed(f"threads={threads}", crown.View(sql, schema=SCHEMA, threads=threads))
    for number, batch in enumerate(batches(rng)):
        delta = followed.apply(judge.as_arrow(batch))
        judge.apply(batch)
        followed.check_delta(judge, delta)
        followed.check(judge)
        if number == 2:
            followed.reload()
            followed.check(judge)


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operand_on_either_side(operator: str, operand: str, rng: random.Random) -> None:
    inner = f"SELECT CAST(o.one AS BIGINT) FROM ({OPERANDS[operand]}) AS o(one)"
    follow(f"({OPERANDS[operand]}) {operator} ({OTHER})", rng, 1)
    follow(rng.choice([f"{inner} {operator} {OTHER}", f"{OTHER} {operator} {inner}"]), rng, rng.randint(2, 4))


@pytest.mark.parametrize(("outer", "inner"), list(product(OPERATORS, OPERATORS)))
def test_nested(outer: str, inner: str, rng: random.Random) -> None:
    middle = f"({LEFT}) {inner} (SELECT k + 0 FROM b UNION ALL SELECT v FROM c)"
    follow(f"({middle}) {outer} (SELECT v FROM a)", rng, rng.choice([1, 1, 3]))
    follow(f"(SELECT v FROM a) {outer} ({middle})", rng, 1)


def kept(sql: str) -> int:
    return sum(isinstance(stage, MaterializeStage) for stage in crown.View(sql, schema=SCHEMA).plan.stages)


def test_rows_are_kept_only_where_they_cannot_be_looked_up() -> None:
    assert kept(f"{LEFT} UNION SELECT k FROM c") == 0
    assert kept("SELECT k FROM a UNION ALL SELECT v FROM b UNION ALL SELECT v FROM c EXCEPT ALL SELECT k FROM c") == 0
    both = "SELECT a.v + b.v FROM a JOIN b ON a.k = b.k"
    assert kept(f"{both} UNION SELECT k FROM c") == 1
    assert kept(f"{both} UNION ALL {both} UNION SELECT k FROM c") == 1, "the union, not each branch"
    assert kept(f"SELECT k FROM a UNION ALL {both} EXCEPT SELECT k FROM c") == 1, "the one that is computed"
    assert kept(f"{both} UNION ALL SELECT k FROM c") == 0


def test_explain_tells_the_price() -> None:
    text = str(crown.View("SELECT a.v + b.v FROM a JOIN b ON a.k = b.k UNION SELECT k FROM c", schema=SCHEMA).explain())
    assert "its rows are stored for look-up" in text and "one look-up in the other branch" in text
    text = str(crown.View(f"({LEFT}) UNION ALL (SELECT v FROM b) EXCEPT SELECT k FROM c", schema=SCHEMA).explain())
    assert "one look-up in every other branch for each row that is read" in text


def test_a_lookup_evaluates_only_rows_that_are_there() -> None:
    """`1 / v` of a row of the other operand may fail; it is no row of this one."""
    sql = "SELECT k, v, 6 / v AS w FROM a WHERE v <> 0 EXCEPT SELECT k, v, CAST(k AS DOUBLE) FROM b"
    view = crown.View(sql, schema=SCHEMA)
    view.insert("b", [(1, 0), (3, 2)])
    view.insert("a", [(3, 2), (1, 1)])
    assert list(view) == [(1, 1, 6.0)] and (1, 0, 1.0) not in view
