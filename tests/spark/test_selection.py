"""Which conditions go to Spark: only those that can't mean anything else there."""

from __future__ import annotations

import pytest

from crown.plan import plan
from crown.spark.flow.selection import selection
from crown.sql import parse

SCHEMA = "CREATE TABLE t (a INT, b BIGINT, s STRING, d DATE, w TIMESTAMP, f FLOAT)"


@pytest.mark.parametrize(
    "condition, text",
    [
        ("a > 1", "((`a` > 1))"),
        ("a > 1 AND s = 'x'", "((`a` > 1) AND (`s` = 'x'))"),
        ("a > 1 OR s IS NOT NULL", "((`a` > 1 OR `s` IS NOT NULL))"),
        ("a IN (1, 2) AND NOT (s < 'b')", "((`a` IN (1, 2)) AND (`s` >= 'b'))"),
        ("w >= TIMESTAMP '2020-01-01'", "((`w` >= TIMESTAMP '2020-01-01 00:00:00+00:00'))"),
        ("d = DATE '2020-01-01'", "((`d` = DATE '2020-01-01'))"),
        ("f = CAST(0.5 AS FLOAT)", "((`f` = 0.5F))"),
        # what may differ is left to the kernel, the rest still goes
        ("a > 1 AND upper(s) = 'X'", "((`a` > 1))"),
        ("a > 1 AND s = 'it\\'s'", "((`a` > 1))"),
        ("upper(s) = 'X'", None),
        ("a > 1 OR upper(s) = 'X'", None),
    ],
)
def test_conditions_of_one_atom(condition: str, text: str | None) -> None:
    assert selection(plan(parse(f"SELECT a FROM t WHERE {condition}", SCHEMA)), "t") == text


def test_a_row_is_kept_for_any_atom() -> None:
    two = "SELECT x.b FROM t x JOIN t y ON x.a = y.a WHERE x.b = 1 AND y.b = 2"
    kept = "(`a` IS NOT NULL AND (`b` = 1)) OR (`a` IS NOT NULL AND (`b` = 2))"
    assert selection(plan(parse(two, SCHEMA)), "t") == kept
    assert selection(plan(parse("SELECT x.b FROM t x, t y WHERE x.b = 1", SCHEMA)), "t") is None
