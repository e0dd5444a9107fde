"""Explain says of every construct what it costs, and which guarantee it loses, if any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import crown
from benchmarks.workloads import WORKLOADS
from crown.plan import explain, plan_with_report
from crown.plan.explain.labels import with_columns
from crown.sql import parse

SCHEMA = """
CREATE TABLE r (a INT, b INT, c STRING, p DECIMAL(6,2), t BIGINT);
CREATE TABLE s (a INT, b INT, t BIGINT, q DECIMAL(6,2));
CREATE TABLE k (id INT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE g (src INT NOT NULL, dst INT NOT NULL);
CREATE TABLE counted (a INT, ts BIGINT NOT NULL) WINDOW (ROWS 100);
CREATE TABLE timed (a INT, ts BIGINT NOT NULL) WINDOW (RANGE 5 ON ts);
"""
FOLDED = "updates in O(λ): the changed rows of the tree are enumerated"
KEPT = "linear space: the values of each group are stored"
RING = "annotations in the tree: O(1) at each node that a change reaches; no values are stored"
RESIDUAL = ("residual predicate", "checked for each enumerated row", "constant delay: rows may be skipped")
ORDERED = (
    "ordered comparison",
    "an ordered index on each side, O(log N) for each row that enters or leaves it; only matching rows are visited",
    "constant delay: a row may have no match",
)
LOOK_UP = (
    "one look-up in the other branch for each changed row",
    "constant delay: rows of the other branch are skipped",
)
UNITED = "whose rows are combined: rows with a match, and (by anti-join) rows without one"
OPTIONAL = "which never remove a row and show one row of NULLs for a key without a match"
PROJECTED = (
    "projection after enumeration",
    "x_dst: enumerated too, then dropped",
    "constant delay per distinct row: a row appears for each value of x_dst",
)
QUERIES = Path(__file__).parent.parent / "queries"
# query: name, what it costs, what it loses ("" for nothing)
CONSTRUCTS = {
    "SELECT x.src, y.dst FROM g x JOIN g y ON x.dst = y.src": PROJECTED,
    "SELECT DISTINCT x.src, y.dst FROM g x JOIN g y ON x.dst = y.src": (
        "DISTINCT after projection",
        "the rows of the result are stored with counts",
        "constant delay and linear space",
    ),
    "SELECT x.src, y.dst, COUNT(*) FROM g x JOIN g y ON x.dst = y.src GROUP BY x.src, y.dst": (
        "partial sums",
        "one addition for each changed row of the tree; one number is stored per group and aggregate",
        FOLDED,
    ),
    "SELECT x.src FROM g x, g y, g z WHERE x.dst = y.src AND y.dst = z.src AND z.dst = x.src": (
        "cycle",
        "delta joins of x, y, z that intersect the smallest list first; its rows are stored and freed",
        "linear space and updates in O(λ): the bag has width 2",
    ),
    "SELECT a FROM r WHERE b > 3 OR c LIKE 'x%'": ("selection", "checked once for each change of r", ""),
    "SELECT a FROM r WHERE soundex(c) = 'X'": ("selection", "checked once for each change of r", ""),
    "SELECT DISTINCT a FROM r": ("DISTINCT", "the tree has each row once; nothing else is stored", ""),
    "SELECT a FROM r UNION SELECT a FROM s": ("UNION", *LOOK_UP),
    "SELECT a FROM r UNION ALL SELECT a FROM s": ("UNION ALL", "2 trees, whose rows are combined", ""),
    "SELECT a FROM r EXCEPT SELECT a FROM s": ("EXCEPT", *LOOK_UP),
    "SELECT a FROM r INTERSECT SELECT a FROM s": ("INTERSECT", *LOOK_UP),
    "SELECT a FROM r EXCEPT SELECT MAX(b) FROM s GROUP BY a": (
        "kept branch",
        "its rows are stored for look-up",
        "linear space",
    ),
    "SELECT r.a, COUNT(*), SUM(r.p * s.q), AVG(r.b) FROM r JOIN s ON r.a = s.a GROUP BY r.a": (
        "AVG, COUNT, SUM",
        RING,
        "",
    ),
    "SELECT COUNT(*) FROM r JOIN s ON r.a = s.a": ("COUNT", f"{RING}; its one row exists from the start", ""),
    "SELECT r.a, MIN(r.b), MAX(s.b) FROM r JOIN s ON r.a = s.a GROUP BY r.a": (
        "MAX, MIN",
        "O(log N) for each changed row of the tree, in an ordered multiset per group",
        f"{FOLDED}; {KEPT}",
    ),
    "SELECT r.a, COUNT(DISTINCT s.b) FROM r JOIN s ON r.a = s.a GROUP BY r.a": (
        "COUNT(DISTINCT)",
        "O(1) for each changed row of the tree, which has each value of a group once; "
        "one number is stored per group and aggregate",
        FOLDED,
    ),
    "SELECT r.a, COUNT(DISTINCT s.b), COUNT(*) FROM r JOIN s ON r.a = s.a GROUP BY r.a": (
        "COUNT, COUNT(DISTINCT)",
        "O(1) for each changed row of the tree, in a counted set per group",
        f"{FOLDED}; {KEPT}",
    ),
    "SELECT r.a, SUM(DISTINCT r.b), COUNT(*) FROM r GROUP BY r.a": (
        "SUM(DISTINCT) with others",
        "computed separately and joined by group",
        "groups are kept twice",
    ),
    "SELECT a, COUNT(*) n FROM r GROUP BY a HAVING n > 1": (
        "HAVING",
        "checked once for each changed group",
        "constant delay: groups may be skipped",
    ),
    "SELECT r.a + s.b AS x FROM r JOIN s ON r.a = s.a": ("computed output", "x: evaluated for each row", ""),
    "SELECT r.a, r.b, s.b x FROM r JOIN s ON r.a = s.a AND r.b <> s.b": RESIDUAL,
    "SELECT r.c, s.b x FROM r JOIN s ON r.a = s.a AND abs(r.b - s.b) < 2": RESIDUAL,
    "SELECT r.a, r.b, s.b x FROM r JOIN s ON r.a = s.a AND r.b < s.b": ORDERED,
    "SELECT r.t, s.t x FROM r JOIN s ON r.t BETWEEN s.t - 5 AND s.t + 5": ORDERED,
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)": (
        "EXISTS",
        "semi-join: s is a subtree below r, like any other table",
        "",
    ),
    "SELECT a FROM r WHERE a IN (SELECT a FROM s)": ("EXISTS", "semi-join: s is a subtree below r", ""),
    "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a)": (
        "NOT EXISTS",
        "anti-join: s is a subtree",
        "",
    ),
    "SELECT a FROM r WHERE a NOT IN (SELECT a FROM s)": ("NOT EXISTS", "anti-join: s_3 is a subtree below r", ""),
    "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM g x, g y, g z WHERE x.src = r.a AND x.dst = y.src "
    "AND y.dst = z.src AND z.dst = x.src)": (
        "EXISTS as a view",
        "its correlation values are kept",
        "linear space: the condition has no join tree",
    ),
    "SELECT r.a, s.b FROM r LEFT JOIN s ON r.a = s.a": ("OUTER JOIN", OPTIONAL, ""),
    "SELECT r.a, COUNT(s.b) FROM r LEFT JOIN s ON r.a = s.a GROUP BY r.a": ("OUTER JOIN", OPTIONAL, ""),
    "SELECT r.a, s.b FROM r FULL JOIN s ON r.a = s.a": ("OUTER JOIN", f"2 trees, {UNITED}", ""),
    "SELECT r.a, s.b FROM r LEFT JOIN (s JOIN g ON g.src = s.b) ON r.a = s.a": ("OUTER JOIN", f"2 trees, {UNITED}", ""),
    "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b < r.b)": (
        "cases",
        f"2 trees, {UNITED}",
        "",
    ),
    "SELECT a, b FROM r ORDER BY b DESC LIMIT 3": (
        "ORDER BY ... LIMIT",
        "O(log N) for each changed row",
        "linear space: the rows of the input are stored in order",
    ),
    "SELECT a, b FROM r ORDER BY b": ("ORDER BY", "sorted when the result is read", "constant delay"),
    "SELECT a FROM counted": ("window", "counted has the last 100 rows; its rows are stored in order of arrival", ""),
    "SELECT a FROM timed": ("window", "timed has rows within 5 of the newest ts", ""),
    "SELECT a FROM r WHERE b > (SELECT AVG(b) FROM s)": (
        "subquery",
        "a separate view, which the outer query reads like a table",
        "the guarantee of a table: one change inside it may be many here",
    ),
}


@pytest.mark.parametrize("sql", CONSTRUCTS)
def test_cost_and_loss_are_said(sql: str) -> None:
    name, cost, loses = CONSTRUCTS[sql]
    plan, report = plan_with_report(parse(sql, SCHEMA))
    found = [c for c in report.constructs if c.name == name and cost in c.cost]
    assert found, f"{sql}\n{report.constructs}"
    assert {c.loses for c in found} == {loses}
    text = " ".join(str(explain(plan, report)).split())
    assert with_columns(f"{name} {found[0].cost}{f'; loses {loses}' if loses else ''}", plan) in text


LEFT = "SELECT r.a, s.b FROM r LEFT JOIN (s JOIN g ON g.src = s.b) ON r.a = s.a"  # not one table by key
COMPARED = "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b < r.b)"


@pytest.mark.parametrize(
    "sql, names",
    [
        # Words that look like an outer join's, and mean something else.
        ("SELECT left(c, 1) x FROM r UNION ALL SELECT c FROM r WHERE a NOT IN (SELECT a FROM s)", ["UNION ALL"]),
        (COMPARED.replace("SELECT a ", "SELECT left(c, 2) x "), ["cases"]),
        (COMPARED.replace("SELECT a ", "SELECT a AS `full` ") + " AND c <> 'right'", ["cases"]),
        ("SELECT a FROM r LEFT ANTI JOIN s ON r.a = s.a UNION ALL SELECT a FROM s", ["UNION ALL"]),
        ("SELECT a /* LEFT JOIN */ FROM r UNION ALL SELECT a FROM r WHERE a NOT IN (SELECT a FROM s)", ["UNION ALL"]),
        # Anti-joins of the author's own don't make a union an outer join, nor the other way round.
        (f"{LEFT} UNION ALL SELECT a, b FROM s", ["OUTER JOIN", "UNION ALL"]),
        (f"{LEFT} WHERE NOT EXISTS (SELECT 1 FROM s z WHERE z.a = r.a AND z.b < r.b)", ["OUTER JOIN", "cases"]),
        (f"SELECT x.a FROM ({LEFT}) x JOIN r ON r.a = x.a", ["OUTER JOIN"]),
        # By key there is one tree.
        ("SELECT r.a, s.b FROM r LEFT JOIN s ON r.a = s.a", []),
        # The padded rows never pass, so there is one tree and nothing to unite.
        (f"{LEFT} WHERE s.b > 0", []),
        (f"{LEFT} WHERE s.b > 0 UNION ALL SELECT a, b FROM s", ["UNION ALL"]),
    ],
)
def test_branches_are_named_after_what_they_come_from(sql: str, names: list[str]) -> None:
    constructs = json.loads(crown.View(sql, SCHEMA).explain().json())["report"]["constructs"]
    assert [c["name"] for c in constructs if "whose rows are combined" in c["cost"]] == names, constructs


def test_every_construct_that_the_planner_notes_is_tested() -> None:
    """Nothing that the suites' and the paper's queries use is missing above."""
    tested = {part for name, _, _ in CONSTRUCTS.values() for part in name.split(", ")}
    queries = [(workload.schema, workload.text()) for workload in WORKLOADS.values()]
    for path in QUERIES.glob("*/*.sql"):
        if path.name != "schema.sql":
            queries.append(((path.parent / "schema.sql").read_text(), path.read_text()))
    noted: set[str] = set()
    for schema, sql in queries:
        for construct in plan_with_report(parse(sql, schema))[1].constructs:
            noted |= set(construct.name.split(", "))
    assert len(noted) > 10
    assert noted <= tested


def test_a_plain_join_loses_nothing() -> None:
    _, report = plan_with_report(parse("SELECT r.a, r.b, s.b AS x FROM r JOIN s ON r.a = s.a", SCHEMA))
    assert not report.constructs
