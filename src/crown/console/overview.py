"""The static part of a view in the console: its tree, its guarantee, and the bound of an update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crown.ir.plan import BagStage, Node, Plan, RecursionStage, TreeStage, every_stage
from crown.plan.explain.labels import relabelled
from crown.plan.explain.picture import plan_svg
from crown.plan.explain.report import ConjunctionReport, Report
from crown.plan.explain.words import PROFILE_TEXT, class_text


def view_overview(name: str, plan: Plan, report: Report | None, **more: Any) -> dict[str, Any]:
    """Return what the page needs to draw a view. `more` are additional facts of the source, such as `shared` parts."""
    return {
        "name": name,
        "sql": plan.sql,
        "columns": [column.name for column in plan.columns],
        "reads": [table.name for table in plan.tables],
        "svg": plan_svg(plan, live=True),
        "nodes": _nodes(plan),
        "guarantee": None if report is None else _guarantee(report),
        "bound": bound(plan, report),
        **more,
    }


def tables_overview(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """Return the tables that the plans read, each once."""
    tables = {table.name: table for plan in plans for table in plan.tables}
    return [
        {"name": name, "columns": [c.name for c in table.columns], "key": list(table.primary_key)}
        for name, table in tables.items()
    ]


def _nodes(plan: Plan) -> list[dict[str, Any]]:
    stages = every_stage(plan)
    written = relabelled(plan)
    several = sum(isinstance(stage, TreeStage) for stage in stages) > 1
    return [
        {
            "mark": f"{stage.id}/{place}",
            "name": f"{stage.id} {written(node.name)}" if several else written(node.name),
            "source": "" if node.atom is None else stage.atoms[node.atom].source,
        }
        for stage in stages
        if isinstance(stage, TreeStage)
        for place, node in enumerate(stage.nodes)
    ]


def _guarantee(report: Report) -> dict[str, Any] | None:
    """The view has the guarantee of its weakest conjunction."""
    worst = max(report.conjunctions, key=_weakness, default=None)
    if worst is None:
        return None
    declared = next(g for g in worst.guarantees if g.profile == "declared")
    constructs = [f"{c.name}: {c.loses}" for c in report.constructs if c.loses]
    return {
        "class": class_text(worst),
        "height": worst.height,
        "space": worst.space,
        "delay": worst.delay,
        "update": declared.update,
        "why": declared.why,
        "card": [{"profile": PROFILE_TEXT[g.profile], "update": g.update, "why": g.why} for g in worst.guarantees],
        "notes": [*worst.why_not_better, *constructs],
    }


def _weakness(conjunction: ConjunctionReport) -> tuple[int, int]:
    order = ("q-hierarchical", "free-connex", "acyclic", "cyclic")
    return order.index(conjunction.query_class), conjunction.height


def bound(plan: Plan, report: Report | None) -> float | None:
    """Return how many counters an update changes at most, on average; None where the guarantee is not constant.

    With constant updates, a row enters and leaves each view a bounded number of times: it changes the counter of its
    own key, and each child changes the row's counter once as it enters. The same holds of generalised rows above it,
    and a change that reaches one row at each node changes two counters there. So the longest path, with one for each
    node and one for each of its children, bounds them all; optional children come twice, once as NULLs.
    """
    if report is None or any(isinstance(stage, BagStage | RecursionStage) for stage in plan.stages):
        return None
    declared = [g.update for c in report.conjunctions for g in c.guarantees if g.profile == "declared"]
    if not declared or set(declared) != {"O(1)"}:
        return None
    trees = [stage for stage in plan.stages if isinstance(stage, TreeStage)]
    return float(max(_path_bound(stage.nodes) for stage in trees))


def _path_bound(nodes: Sequence[Node]) -> int:
    path: list[int] = []
    for place, node in enumerate(nodes):
        below = [2 if child.edge == "optional" else 1 for child in nodes if child.parent == place]
        path.append(1 + sum(below) + (0 if node.parent is None else path[node.parent]))
    return max(path)
