"""Which comparisons get an ordered index, in what form, and why the others have none."""

from __future__ import annotations

import pytest

from crown.ir.plan import TreeStage
from crown.plan import plan_with_report
from crown.sql import parse

TYPES = "a INT, n BIGINT, t TIMESTAMP, d DATE, p DECIMAL(6,2), q DECIMAL(30,2), e DOUBLE, w STRING"
SCHEMA = f"CREATE TABLE r (k INT, {TYPES}); CREATE TABLE s (k INT, l INT, {TYPES}); CREATE TABLE u (l INT, a INT)"
JOINED = "SELECT r.k x, s.k y FROM r JOIN s ON r.k = s.k WHERE "

ORDERED = {
    "r.a < s.a": ["r_a + 0 < s_a"],
    "r.a >= s.a": ["s_a + 0 <= r_a"],
    "r.a > s.n": ["s_n + 0 < r_a"],
    "NOT (r.a > s.a)": ["r_a + 0 <= s_a"],
    "r.a + 3 < s.a AND r.a > 5": ["r_a_value + 0 < s_a"],
    "r.a - s.a < 3": ["r_a + -3 < s_a"],
    # Two variables of one column: one order has both bounds.
    "r.a BETWEEN s.a - 5 AND s.a + 5": ["s_a_value + 0 <= r_a", "r_a + -10 <= s_a_value"],
    "r.t BETWEEN s.t - INTERVAL 5 SECONDS AND s.t": ["s_t + -5000000 <= r_t", "r_t + 0 <= s_t"],
    "r.t BETWEEN s.t - INTERVAL 1 DAY AND s.t": ["s_t + -86400000000 <= r_t", "r_t + 0 <= s_t"],
    "r.d >= s.d - INTERVAL 5 DAYS AND r.d < date_add(s.d, 3)": ["s_d_value + 0 <= r_d", "r_d + -8 < s_d_value"],
    "datediff(r.d, s.d) <= 3": ["r_d + -3 <= s_d"],
    "r.p < s.p": ["r_p + 0 < s_p"],
    "r.p BETWEEN s.p - 1.5 AND s.p": ["s_p + -150 <= r_p", "r_p + 0 <= s_p"],
    "r.d < s.t": ["r_d_value + 0 < s_t"],
    "r.e < s.e": ["r_e + 0 < s_e"],
}
FILTERED = {
    "r.a <> s.a": "it is not a single <, <=, > or >=",
    "(r.a < s.a OR r.n < s.n)": "it is not a single <, <=, > or >=",
    "r.w < s.w": "its sides are not numbers or times plus a constant",
    "r.q < s.q": "its sides are not numbers or times plus a constant",
    "r.a * s.a < 3": "its sides are not numbers or times plus a constant",
    "r.a + s.a < 3": "it does not compare one value with another",
    "r.k < s.n": "s has both values",
}


def comparisons(sql: str) -> tuple[list[str], list[str]]:
    plan, report = plan_with_report(parse(sql, SCHEMA))
    (stage,) = (stage for stage in plan.stages if isinstance(stage, TreeStage))
    ordered = [f"{c.lower} + {c.offset} {'<' if c.strict else '<='} {c.upper}" for c in stage.ordered]
    return ordered, [c.cost for c in report.constructs if c.name == "residual predicate"]


@pytest.mark.parametrize("condition", ORDERED)
def test_ordered(condition: str) -> None:
    assert comparisons(JOINED + condition) == (ORDERED[condition], [])


@pytest.mark.parametrize("condition", FILTERED)
def test_filtered(condition: str) -> None:
    ordered, filters = comparisons(JOINED + condition)
    assert ordered == []
    assert len(filters) == 1
    assert filters[0].endswith(f"has no ordered index, because {FILTERED[condition]}")


def test_a_list_has_one_order() -> None:
    ordered, filters = comparisons(JOINED + "r.a < s.a AND r.n < s.n")
    assert ordered == ["r_a + 0 < s_a"]
    assert filters[0].endswith("because r is already ordered by r_a")


@pytest.mark.parametrize("name", ["t", "T", "zz", "value", "k_value", "`a b`", "`a + 5`", "`s.t`", "`- 5`", "été"])
@pytest.mark.parametrize("shown", ["r.k x, s.k y", "r.{0} x, s.{0} y", "COUNT(*) n"])
@pytest.mark.parametrize("band", ["r.{0} BETWEEN s.{0} - 5 AND s.{0} + 5", "r.{0} - s.{0} < 5 AND s.{1} - r.{1} < 5"])
def test_a_band_has_one_order_however_its_columns_are_called(name: str, shown: str, band: str) -> None:
    schema = f"CREATE TABLE r (k INT, {name} INT); CREATE TABLE s (k INT, {name} INT)"
    condition = band.format(name, name.upper())
    plan, report = plan_with_report(
        parse(f"SELECT {shown.format(name)} FROM r JOIN s ON r.k = s.k AND {condition}", schema)
    )
    (stage,) = (stage for stage in plan.stages if isinstance(stage, TreeStage))
    assert len(stage.ordered) == 2, [c.cost for c in report.constructs]
    first, second = ({c.lower, c.upper} for c in stage.ordered)
    assert first == second, "the two bounds are over one pair of values"


def test_no_relation_may_be_between() -> None:
    sql = "SELECT r.a x, s.a y, u.a z FROM r JOIN s ON r.k = s.k JOIN u ON s.l = u.l WHERE "
    ordered, filters = comparisons(sql + "r.a < s.a AND s.a < u.a AND r.a < u.a")
    assert ordered == ["r_a + 0 < s_a", "s_a + 0 < u_a"]
    assert filters[0].endswith("because s is between r and u in the tree")


def test_aggregates_and_joins_without_a_key() -> None:
    assert comparisons("SELECT r.k, SUM(r.n) FROM r JOIN s ON r.k = s.k AND r.a < s.a GROUP BY r.k")[0] == [
        "r_a + 0 < s_a"
    ]
    assert comparisons("SELECT r.n, s.n m FROM r, s WHERE r.a <= s.a")[0] == ["r_a + 0 <= s_a"]


def test_the_card_promises_constant_delay_only_where_nothing_is_left_out() -> None:
    sql = "SELECT r.k x, r.a, s.a b FROM r JOIN s ON r.k = s.k"
    delays = [
        plan_with_report(parse(text, SCHEMA))[1].conjunctions[0].delay for text in (sql, f"{sql} WHERE r.a < s.a")
    ]
    assert delays == ["O(1)", "O(1) in the tree"]
