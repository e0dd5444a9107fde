"""The cost of one conjunction's constructs beyond a plain join, and the guarantee that each of them loses.

Constructs above the trees (aggregates, set operations, DISTINCT, LIMIT) are noted where their stages are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from crown.ir.declared import declared_calls
from crown.ir.expression import Call
from crown.ir.functions import declared_name
from crown.ir.plan import BagStage, Plan, TreeStage
from crown.ir.query import Conjunction, Named, OptionalAtom, Origin
from crown.ir.render import to_text
from crown.ir.tables import CLOCK, Table
from crown.plan.explain.report import ConjunctionReport
from crown.plan.planning import Planning
from crown.plan.tree.comparisons import ResidualVerdict
from crown.wording import counted

_FLIP = ": rows with a match, and (by anti-join) rows without one, which change with the first and last match"
_UNITED: Final[dict[Origin, tuple[str, str]]] = {
    "outer join": ("OUTER JOIN", _FLIP),
    "not exists": ("cases", _FLIP),
    "union all": ("UNION ALL", ""),
}


def note_constructs(
    stage: TreeStage,
    optional: Sequence[OptionalAtom],
    report: ConjunctionReport,
    verdicts: Sequence[ResidualVerdict],
    planning: Planning,
) -> None:
    """Selections, cycles, a projection after enumeration, residual predicates and conditions."""
    bags = {bag.stage for bag in report.bags}
    joined = [atom for bag in planning.stages if isinstance(bag, BagStage) and bag.id in bags for atom in bag.atoms]
    selected = [atom.name for atom in (*stage.atoms, *joined) if atom.filter is not None]
    if selected:
        planning.note(
            "selection", stage.id, f"checked once for each change of {', '.join(selected)}, before it is stored"
        )
    for bag in report.bags:
        planning.note(
            "cycle",
            bag.stage,
            f"delta joins of {', '.join(bag.atoms)} that intersect the smallest list first; its rows are stored "
            "and freed when they are deleted",
            f"linear space and updates in O(λ): the bag has width {bag.width}" if bag.width > 1 else "",
        )
    if report.added:
        loose = [a.variable for a in report.added if not a.determined_by]
        planning.note(
            "projection after enumeration",
            stage.id,
            f"{', '.join(a.variable for a in report.added)}: enumerated too, then dropped",
            f"constant delay per distinct row: a row appears for each value of {', '.join(loose)}" if loose else "",
        )
    _note_residual(stage, verdicts, planning)
    _note_optional(stage, optional, planning)
    for node in stage.nodes:
        if node.edge in ("exists", "anti") and node.parent is not None:
            name, kind = ("NOT EXISTS", "anti-join") if node.edge == "anti" else ("EXISTS", "semi-join")
            below = stage.nodes[node.parent].name
            planning.note(name, stage.id, f"{kind}: {node.name} is a subtree below {below}, like any other table")


def _note_optional(stage: TreeStage, optional: Sequence[OptionalAtom], planning: Planning) -> None:
    subqueries = set(_subquery_names(optional))
    below: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}
    for node in stage.nodes:
        if node.edge == "optional" and node.parent is not None:
            parents = below[node.name in subqueries]
            parents.setdefault(stage.nodes[node.parent].name, []).append(node.name)
    for is_subquery, parents in below.items():
        hung = "; ".join(f"{', '.join(names)} below {parent}" for parent, names in parents.items())
        if parents and is_subquery:
            planning.note(
                "subquery as a value",
                stage.id,
                f"looked up by key in an optional child ({hung}), which takes no row away; when its answer for a key "
                "changes, the rows with that key change",
                "constant time for a change of the subquery: all rows with its key are in the delta",
            )
        elif parents:
            planning.note(
                "OUTER JOIN",
                stage.id,
                f"optional children ({hung}), which never remove a row and show one row of NULLs for a key without a "
                "match; it is removed with the first match and returns after the last one is deleted",
            )


def _subquery_names(optional: Sequence[OptionalAtom]) -> Iterator[str]:
    for one in optional:
        if one.subquery:
            yield one.atom.name
        yield from _subquery_names(one.optional)


def _note_residual(stage: TreeStage, verdicts: Sequence[ResidualVerdict], planning: Planning) -> None:
    ordered = [to_text(verdict.predicate) for verdict in verdicts if verdict.comparison is not None]
    if ordered:
        planning.note(
            "ordered comparison",
            stage.id,
            f"{' AND '.join(ordered)}: an ordered index on each side, O(log N) for each row that enters or leaves "
            "it; only matching rows are visited",
            "constant delay: a row may have no match",
        )
    for verdict in verdicts:
        if verdict.comparison is None:
            planning.note(
                "residual predicate",
                stage.id,
                f"checked for each enumerated row: {to_text(verdict.predicate)} has no ordered index, because "
                f"{verdict.reason}",
                "constant delay: rows may be skipped",
            )


def note_branches(branches: Sequence[Conjunction], stage: str, planning: Planning) -> None:
    """The constructs that several branches come from, and subqueries that are joined with outer values."""
    origins = dict.fromkeys(origin for branch in branches for origin in branch.origins)
    if "outer values" in origins:
        planning.note(
            "correlated comparison",
            stage,
            "the subquery compares with the outer row other than by equality, so it is joined with the distinct values "
            "that it reads of outer rows, and its answer for each is stored",
            "updates in O(λ): a value, and a row of the subquery, meets all that it compares with; over all changes "
            "that is quadratic in the worst case",
        )
    for origin in origins if len(branches) > 1 else ():
        if origin in _UNITED:
            name, how = _UNITED[origin]
            reasons = dict.fromkeys(reason for branch in branches for reason in branch.reasons)
            why = f"; not one tree, because of {'; '.join(reasons)}" if origin == "outer join" and reasons else ""
            planning.note(name, stage, f"{len(branches)} trees, whose rows are combined{how}{why}")


def note_computed(outputs: Sequence[Named], stage: str, planning: Planning) -> None:
    computed = [output.name for output in outputs if isinstance(output.expression, Call)]
    if computed:
        planning.note("computed output", stage, f"{', '.join(computed)}: evaluated for each row, not stored")


def note_functions(plan: Plan, planning: Planning) -> None:
    """The user's functions: by each stage that calls them."""
    for stage in plan.stages:
        names = dict.fromkeys(declared_name(call.function) or "" for call in declared_calls(stage))
        if names:
            planning.note(
                "Python function",
                stage.id,
                f"{', '.join(names)}: called once for equal arguments of a batch, with all rows of the batch together; "
                "the last 65,536 results are remembered, others are computed again when they are read",
                "constant delay: a row may need a call",
            )


def note_tables(tables: tuple[Table, ...], planning: Planning) -> None:
    """Windows, and the clock."""
    for table in tables:
        if table.name == CLOCK:
            planning.note(
                "now()",
                table.name,
                "the time of the last advance; when it moves, the rows that satisfy the comparison are visited, and "
                "the delta has those that enter or leave",
                "updates in O(λ), when the time moves",
            )
        window = table.window
        if window is not None:
            kept = (
                f"the last {counted(window.rows, 'row')}"
                if window.rows
                else f"rows within {window.interval} of the newest"
            )
            if window.column is not None:
                kept += f" {window.column}"
            planning.note(
                "window",
                table.name,
                f"{table.name} has {kept}; its rows are stored in order of arrival, and each leaves by one deletion",
            )
