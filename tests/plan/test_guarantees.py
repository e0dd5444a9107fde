"""Which guarantee a query gets under which updates, and why not a better one."""

from __future__ import annotations

import re

import pytest

from crown.ir.query import Query
from crown.ir.tables import Profile
from crown.plan import plan_with_report
from crown.plan.explain.report import ConjunctionReport
from crown.sql import parse
from tests.support.build import query

CHAIN = "R(a, b), S(b, c), T(c, d)"


def costs(built: Query) -> dict[str, str]:
    return {guarantee.profile: guarantee.update for guarantee in report(built).guarantees}


def report(built: Query) -> ConjunctionReport:
    (conjunction,) = plan_with_report(built)[1].conjunctions
    return conjunction


def test_q_hierarchical_is_constant_whatever_comes() -> None:
    assert set(costs(query("R(a, b), S(a, c)", "a b c")).values()) == {"O(1)"}
    assert not report(query("R(a, b), S(a, c)", "a b c")).why_not_better


def test_height_two_is_constant_first_in_first_out() -> None:
    of_chain = costs(query(CHAIN, "a b c d"))
    assert of_chain == {"arbitrary": "O(λ)", "fifo": "O(1)", "insert_only": "O(1)", "declared": "O(λ)"}


def test_height_three_is_not() -> None:
    assert costs(query("R(a, b), S(b, c), T(c, d), U(d, e), V(e, f)", "a b c d e f"))["fifo"] == "O(λ)"


@pytest.mark.parametrize(
    "profiles, expected",
    [
        (("fifo", "fifo", "fifo"), "O(1)"),
        (("insert_only", "insert_only", "insert_only"), "O(1)"),
        (("static", "arbitrary", "static"), "O(1)"),
        (("arbitrary", "arbitrary", "static"), "O(1)"),
        (("arbitrary", "arbitrary", "insert_only"), "O(1)"),  # it hangs below, and never takes back
        (("fifo", "arbitrary", "fifo"), "O(λ)"),
        (("arbitrary", "arbitrary", "arbitrary"), "O(λ)"),
    ],
)
def test_declared_profiles_combine(profiles: tuple[Profile, ...], expected: str) -> None:
    built = query(CHAIN, "a b c d", profiles=dict(zip("RST", profiles, strict=True)))
    assert costs(built)["declared"] == expected


def test_a_window_is_first_in_first_out() -> None:
    schema = "CREATE TABLE g (src INT NOT NULL, dst INT NOT NULL)"
    sql = "SELECT a.src, b.src AS s2, c.src AS s3, c.dst FROM g a, g b, g c WHERE a.dst = b.src AND b.dst = c.src"
    assert costs(parse(sql, schema))["declared"] == "O(λ)"
    assert costs(parse(sql, schema, windows={"g": 100}))["declared"] == "O(1)"


def test_a_condition_on_the_whole_row_is_constant() -> None:
    assert costs(query("R(a, b)", "a b", without=["S(a, b)"]))["arbitrary"] == "O(1)"
    assert costs(query("R(a, b)", "a b", without=["S(a)"]))["arbitrary"] == "O(λ)"
    assert costs(query("R(a, b)", "a b", without=["S(a)"], keys={"R": (0,)}))["arbitrary"] == "O(1)"


def test_keys_make_a_star_schema_free_connex_and_say_so() -> None:
    star = "F(d, p, v), D(d, y), P(p, n)"
    keys: list[dict[str, tuple[int, ...]] | None] = [{"D": (0,), "P": (0,)}, None]
    with_keys, without = (report(query(star, "y n", distinct=True, keys=k)) for k in keys)
    assert (with_keys.class_without_keys, with_keys.query_class) == ("acyclic", "free-connex")
    assert [added.determined_by for added in with_keys.added] == ["PRIMARY KEY (c0) of D", "PRIMARY KEY (c0) of P"]
    assert without.query_class == "acyclic"
    assert [added.determined_by for added in without.added] == ["", ""]
    assert any("PRIMARY KEY" in hint for hint in without.improvements)


def test_keys_keep_bags_linear() -> None:
    cycle = "C(c, n), O(o, c), L(o, s), S(s, n)"
    assert report(query(cycle, "o")).width == 2
    linear = report(query(cycle, "o", keys={"C": (0,), "O": (0,), "S": (0,)}))
    assert (linear.query_class, linear.width) == ("cyclic", 1)


def test_sums_over_the_optional_side_of_windows_promise_no_constant() -> None:
    outer = "SELECT r.a, SUM(s.b) AS n FROM g AS r LEFT JOIN g AS s ON r.c = s.b GROUP BY r.a"
    built = parse(outer, "CREATE TABLE g (a INT, b INT, c INT) WINDOW (ROWS 3)")
    assert costs(built) == {"arbitrary": "O(λ)", "fifo": "O(λ)", "insert_only": "O(1)", "declared": "O(λ)"}


JOINED = "CREATE TABLE o (id INT, c INT, x INT); CREATE TABLE c (id INT, n INT, name STRING); CREATE TABLE n (id INT)"
GRAPH = "CREATE TABLE g (s INT, d INT); CREATE TABLE h (s INT, d INT)"


@pytest.mark.parametrize(
    ("sql", "schema", "keys", "gain"),
    [
        ("SELECT o.id, c.name FROM o JOIN c ON o.c = c.id", JOINED, {"c": "id"}, "linear"),
        ("SELECT o.id, c.name FROM o LEFT JOIN c ON o.c = c.id", JOINED, {"c": "id"}, "linear"),
        ("SELECT DISTINCT o.x, c.name FROM o JOIN c ON o.c = c.id", JOINED, {"c": "id"}, "linear"),
        ("SELECT o.x, n.id FROM o, c, n WHERE o.c = c.id AND c.n = n.id", JOINED, {"c": "id"}, "linear"),
        ("SELECT c.name, SUM(o.x) AS s FROM o JOIN c ON o.c = c.id GROUP BY c.name", JOINED, {"c": "id"}, "updates"),
        ("SELECT a.s, b.d FROM g a JOIN g b ON a.d = b.s", GRAPH, {"g": "s"}, "linear"),
        ("SELECT a.s FROM g a JOIN g b ON a.d = b.s JOIN g c ON b.d = c.s AND c.d = a.s", GRAPH, {"g": "s"}, "space"),
        ("SELECT a.s FROM g a, h b WHERE a.s = b.s AND a.d > 1 AND b.d > 1", GRAPH, {}, ""),
    ],
)
def test_keys_that_would_bring_a_guarantee_back_are_named_and_do(
    sql: str, schema: str, keys: dict[str, str], gain: str
) -> None:
    """Declaring what is suggested gives what is promised."""
    before = report(parse(sql, schema))
    named = [hint for hint in before.improvements if "PRIMARY KEY" in hint]
    assert bool(named) == bool(keys)
    if not keys:
        return
    wanted = "declare " + " and ".join(f"PRIMARY KEY ({k}) of {t}" for t, k in keys.items())
    assert any(hint.startswith(wanted) for hint in named), named
    for hint in named:
        declared = schema
        for columns, table in re.findall(r"PRIMARY KEY \(([\w, ]+)\) of (\w+)", hint):
            declared = re.sub(rf"(TABLE {table} \([^)]*)\)", rf"\1, PRIMARY KEY ({columns}))", declared)
        after = report(parse(sql, declared))
        assert not any("PRIMARY KEY" in other for other in after.improvements)
        if "linear" in gain:
            assert after.added and all(added.determined_by for added in after.added)
        elif gain == "updates":
            assert {g.profile: g.update for g in after.guarantees}["arbitrary"] == "O(1)"
            assert {g.profile: g.update for g in before.guarantees}["arbitrary"] == "O(λ)"
        else:
            assert (before.space, after.space) == ("O(N^2)", "O(N)")
