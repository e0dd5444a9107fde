"""Random recursive queries over random graphs: after every batch, all that a view shows is what DuckDB says.

UNION runs over any graph, cycles included. UNION ALL, and values that each round computes anew, would go on for ever
over a cycle, also in DuckDB: their edges lead from smaller to larger nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from tests.support.followed import Followed
from tests.support.judge import Change, Judge, Row

SCHEMA = """
CREATE TABLE e (src INT, dst INT, w INT);
CREATE TABLE n (id INT, tag STRING);
CREATE TABLE x (id INT);
"""
NODES = 6
BASES = ("SELECT id FROM x", "SELECT src FROM e WHERE w = 1", "SELECT n.id FROM n JOIN x ON x.id = n.id", "SELECT 1")
# From what node to what node the step leads: FROM without the recursion, the two nodes, and
# conditions.
STEPS = (
    ("e", "e.src", "e.dst", ""),
    ("e", "e.src", "e.dst", "e.w <> 2"),
    ("e JOIN n ON n.id = e.dst", "e.src", "n.id", ""),
    ("e JOIN n ON n.id = e.src AND n.tag <> 'b'", "n.id", "e.dst", ""),
    ("e", "e.src", "e.dst", "EXISTS (SELECT 1 FROM n WHERE n.id = e.dst)"),
    ("e", "e.src", "e.dst", "NOT EXISTS (SELECT 1 FROM x AS stop WHERE stop.id = e.dst)"),
    ("e LEFT JOIN n ON n.id = e.dst", "e.src", "e.dst", "n.id IS NULL"),
    ("(SELECT src, dst, COUNT(*) AS c FROM e GROUP BY src, dst) AS e", "e.src", "e.dst", "e.c < 3"),
    ("(SELECT src, dst FROM e UNION ALL SELECT src, w FROM e WHERE src < w) AS e", "e.src", "e.dst", ""),
    ("e JOIN e AS f ON f.src = e.dst", "e.src", "f.dst", ""),
    ("e, x", "e.src", "e.dst", "x.id <= e.dst"),
)
# What the rows carry beside the node: the base's value, and the next one, of the last.
CARRIED = {
    "nothing": (),
    "the start": (("{base}", "r.{0}"),),
    "the depth": (("0", "r.{0} + 1"),),
    "the path": (("CAST('' AS STRING)", "r.{0} || '-' || CAST(r.node AS STRING)"),),
    "a sum": (("CAST(0 AS BIGINT)", "r.{0} + CAST(COALESCE(r.node, 0) AS BIGINT)"),),
    "the start and the depth": (("{base}", "r.{0}"), ("0", "r.{0} + 1")),
}
OUTSIDE = (
    "SELECT * FROM r",
    "SELECT node FROM r",
    "SELECT DISTINCT node FROM r",
    "SELECT node, COUNT(*) AS c FROM r GROUP BY node",
    "SELECT r.node, n.tag FROM r LEFT JOIN n ON n.id = r.node",
    "SELECT x.id FROM x WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.node = x.id)",
    "SELECT a.node, b.node AS other FROM r AS a JOIN r AS b ON b.node = a.node",
)


@dataclass(frozen=True)
class Case:
    sql: str
    batches: list[list[Change]]
    threads: int
    single: bool
    reloads: frozenset[int]


@st.composite
def recursions(draw: st.DrawFn) -> tuple[str, bool]:
    """A query, and whether it needs a graph without cycles."""
    carried = draw(st.sampled_from(sorted(CARRIED)))
    source, start, end, where = draw(st.sampled_from(STEPS))
    base = draw(st.sampled_from(BASES))
    first, _, rest = base.removeprefix("SELECT ").partition(" FROM ")
    names = ["node", *(f"c{i}" for i in range(len(CARRIED[carried])))]
    shown = [first, *(one.format(base=first) for one, _ in CARRIED[carried])]
    then = [end, *(step.format(name) for name, (_, step) in zip(names[1:], CARRIED[carried], strict=True))]
    operator = draw(st.sampled_from(["UNION", "UNION", "UNION ALL"]))
    joined = draw(st.sampled_from([f"r JOIN {source}", f"{source} JOIN r"]))
    if "," in source:
        joined = f"r, {source}"
    on = f"WHERE {start} = r.node" if "," in source else f"ON {start} = r.node"
    if joined.endswith("JOIN r") and "LEFT" in source:
        joined = f"r JOIN {source}"
    if not joined.endswith("JOIN r") and "JOIN" in source:
        joined, on = f"r, {source}", f"WHERE {start} = r.node"
    text = f"SELECT {', '.join(then)} FROM {joined} {on}"
    text += f" {'AND' if 'WHERE' in on else 'WHERE'} {where}" if where else ""
    whole = f"SELECT {', '.join(shown)}{f' FROM {rest}' if rest else ''} {operator} {text}"
    sql = f"WITH RECURSIVE r({', '.join(names)}) AS ({whole}) {draw(st.sampled_from(OUTSIDE))}"
    return sql, operator == "UNION ALL" or carried not in ("nothing", "the start")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sql, acyclic = draw(recursions())
    node = st.one_of(st.none(), st.integers(0, NODES - 1))
    pairs = st.tuples(node, node)
    if acyclic:
        pairs = st.sampled_from([(a, b) for a in range(NODES) for b in range(a + 1, NODES)])
    rows: dict[str, st.SearchStrategy[Row]] = {
        "e": st.builds(lambda pair, w: (*pair, w), pairs, st.integers(1, NODES)),
        "n": st.tuples(node, st.sampled_from(["a", "b", None])),
        "x": st.tuples(node),
    }
    live: list[Change] = []
    batches = []
    for number in range(draw(st.integers(2, 5))):
        batch = []
        for _ in range(draw(st.integers(4, 12) if number == 0 else st.integers(1, 6))):
            if live and draw(st.integers(0, 9)) < 4:
                gone = live.pop(draw(st.integers(0, len(live) - 1)))
                batch.append(Change(gone.table, gone.row, -1))
            else:
                table = draw(st.sampled_from(["e", "e", "e", "n", "x"]))
                live.append(Change(table, draw(rows[table])))
                batch.append(live[-1])
        batches.append(batch)
    batches.append([Change(one.table, one.row, -1) for one in live])
    batches = [batch for batch in batches if batch]
    reloads = draw(st.frozensets(st.integers(0, len(batches)), max_size=2))
    return Case(sql, batches, draw(st.sampled_from([1, 1, 2])), draw(st.integers(0, 3)) == 0, reloads)


def check(case: Case) -> None:
    hypothesis.note(f"sql = {case.sql!r}\nthreads = {case.threads}, single = {case.single}, reloads = {case.reloads}")
    judge = Judge(case.sql, SCHEMA)
    followed = Followed("view", crown.View(case.sql, SCHEMA, threads=case.threads), single=case.single)
    followed.check(judge)
    for number, batch in enumerate(case.batches):
        if number in case.reloads:
            followed.reload()
        delta = followed.apply(judge.as_arrow(batch))
        judge.apply(batch)
        followed.check_delta(judge, delta)
        followed.check(judge)


@hypothesis.given(cases())
def test_random_recursions_over_random_graphs(case: Case) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=5000)
@hypothesis.given(cases())
def test_many_random_recursions_over_random_graphs(case: Case) -> None:
    check(case)
