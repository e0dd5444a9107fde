"""SQL in, plan and facts out: one text file for each query of `tests/queries`, and what the paper says of its own.

After a deliberate change: `CROWN_UPDATE_FIXTURES=1 pytest tests/plan/test_fixtures.py`, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crown.errors import SqlError
from crown.ir.plan import BagStage, Plan, TreeStage
from crown.plan import plan_with_report
from crown.plan.explain.report import ConjunctionReport, Report
from crown.sql import parse
from tests.support.build import query
from tests.support.render import render_plan

QUERIES = Path(__file__).parent.parent / "queries"
FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(str(path.relative_to(QUERIES))[:-4] for path in QUERIES.glob("*/*.sql") if path.name != "schema.sql")


def planned(name: str) -> tuple[Plan, Report]:
    path = QUERIES / f"{name}.sql"
    return plan_with_report(parse(path.read_text(), (path.parent / "schema.sql").read_text()), cells=8)


def render_report(report: Report) -> str:
    lines = [line for conjunction in report.conjunctions for line in _conjunction(conjunction)]
    lines += [f"{c.stage} {c.name}: {c.cost}{f' (loses {c.loses})' if c.loses else ''}" for c in report.constructs]
    spread = report.distribution
    shares = ", ".join(f"{name} x {share}" for name, share in zip(spread.dimensions, spread.shares, strict=True))
    merge = f", merged by {' '.join(spread.merge)}" if spread.merge else ""
    lines.append(f"8 cells: {shares or 'one does it all'}{merge}")
    return "\n".join(lines)


def _conjunction(of: ConjunctionReport) -> list[str]:
    keys = "" if of.query_class == of.class_without_keys else f" by keys ({of.class_without_keys} without)"
    width = f" of width {of.width}" if of.width > 1 else ""
    lines = [f"{of.stage} is {of.query_class}{width}{keys}, height {of.height}, {of.considered} trees"]
    lines += [f"  adds {a.variable}{f', determined by {a.determined_by}' if a.determined_by else ''}" for a in of.added]
    lines.append("  updates " + ", ".join(f"{g.profile} {g.update}" for g in of.guarantees))
    lines += [f"  not better: {reason}" for reason in of.why_not_better]
    return lines + [f"  better with: {hint}" for hint in of.improvements]


@pytest.mark.parametrize("name", NAMES)
def test_fixture(name: str) -> None:
    try:
        plan, report = planned(name)
        text = f"{render_plan(plan)}\n\n{render_report(report)}\n"
    except SqlError as refused:
        text = f"refused: {refused}\n"
    path = FIXTURES / f"{name}.txt"
    if os.environ.get("CROWN_UPDATE_FIXTURES"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


PAPER = {
    "graph/hop3_full": ("free-connex", 2),
    "graph/hop3_project": ("free-connex", 2),
    "graph/hop4_full": ("free-connex", 2),
    "graph/hop4_project": ("free-connex", 2),
    "graph/comb2": ("free-connex", 3),
    "graph/star": ("q-hierarchical", 1),
    "graph/dumbbell_full": ("cyclic", 2),
    "graph/dumbbell_project": ("cyclic", 2),
    "snb/q1": ("q-hierarchical", 1),
    "snb/q2": ("free-connex", 3),
    "snb/q3": ("free-connex", 3),
    "snb/q4": ("free-connex", 2),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_queries_have_its_classes_and_heights(name: str) -> None:
    (conjunction,) = planned(name)[1].conjunctions
    assert (conjunction.query_class, conjunction.height) == PAPER[name]
    assert conjunction.exhaustive


def test_the_tree_of_figure_1() -> None:
    """4-Hop: [x3] over R2 and R3, below them R1 and R4."""
    hops = query("R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5)", "x1 x2 x3 x4", distinct=True)
    (tree,) = plan_with_report(hops)[0].stages
    assert isinstance(tree, TreeStage)
    names = {node.name: None if node.parent is None else tree.nodes[node.parent].name for node in tree.nodes}
    assert names == {"[x3]": None, "R2": "[x3]", "R1": "R2", "R3": "[x3]", "R4": "R3"}
    assert [node.name for node in tree.nodes if not node.connex] == ["R4"]


@pytest.mark.parametrize("name", ["graph/dumbbell_full", "graph/dumbbell_project"])
def test_the_three_bags_of_the_dumbbell(name: str) -> None:
    plan, _ = planned(name)
    bags = [sorted(atom.name for atom in stage.atoms) for stage in plan.stages if isinstance(stage, BagStage)]
    (tree,) = (stage for stage in plan.stages if isinstance(stage, TreeStage))
    assert bags == [["G1", "G2", "G3"], ["G5", "G6", "G7"]]
    assert [atom.name for atom in tree.atoms if not atom.source.startswith("$")] == ["G4"]


def test_star_schema_queries_are_free_connex_by_keys() -> None:
    """SSB: 3 of 13 without keys, all with them; and every result stays linear."""
    reports = [planned(name)[1].conjunctions for name in NAMES if name.startswith("ssb/")]
    good = ("q-hierarchical", "free-connex")
    assert len(reports) == 13
    assert sum(all(c.class_without_keys in good for c in of) for of in reports) == 3
    assert all(c.query_class in good for of in reports for c in of)
    assert all(added.determined_by for of in reports for c in of for added in c.added)
