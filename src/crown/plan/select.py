"""SELECT without aggregates: a tree for each branch, then projection, union of branches and DISTINCT."""

from __future__ import annotations

from typing import Literal as OneOf

from crown.ir.expression import Call, Expression
from crown.ir.query import Conjunction, Named, Select
from crown.ir.scalars import all_of, substitute, variables_of
from crown.plan.explain.notes import note_branches
from crown.plan.planning import Planning, StageRows
from crown.plan.rows import project, union_all, without_duplicates
from crown.plan.tree.passes import plan_conjunction
from crown.types import BOOLEAN


def plan_rows(
    select: Select, duplicates: OneOf["keep", "drop", "ignore"], planning: Planning, *, looked_up: bool = False
) -> StageRows:
    """Return the rows of a select list. `ignore`: the caller ignores duplicates, so the cheaper plan is chosen.

    `looked_up`: a set operation will look rows up in them.
    """
    branches = [
        _branch(branch, select.outputs, duplicates, len(select.branches) > 1, planning) for branch in select.branches
    ]
    rows = union_all(branches, planning, looked_up=looked_up and duplicates != "drop")
    note_branches(select.branches, rows.stage, planning)
    return without_duplicates(rows, planning) if duplicates == "drop" else rows


def branch_outputs(branch: Conjunction, outputs: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the outputs as expressions over the branch's variables."""
    columns = {column.name: column.expression for column in branch.columns}
    return tuple(Named(output.name, substitute(output.expression, columns)) for output in outputs)


def _branch(
    branch: Conjunction,
    outputs: tuple[Named, ...],
    duplicates: OneOf["keep", "drop", "ignore"],
    named: bool,
    planning: Planning,
) -> StageRows:
    shown = branch_outputs(branch, outputs)
    if duplicates == "keep" and (read := _read(branch, shown, planning)) is not None:
        ranked, columns, where = read
        return project(ranked, columns, planning, where=where, named=named)
    wanted = variables_of(output.expression for output in shown)
    rows = plan_conjunction(branch, wanted, "bag" if duplicates == "keep" else "set", planning)
    return project(rows, shown, planning, named=named)


def _read(
    branch: Conjunction, outputs: tuple[Named, ...], planning: Planning
) -> tuple[StageRows, list[Named], Expression | None] | None:
    """Ranked or recursive rows that are read as they are: the rows, the outputs over them and a filter.

    They need no tree, which would store them twice. Ranked rows are then in the cells of their own partitions.
    """
    if len(branch.atoms) != 1 or branch.conditions or branch.optional:
        return None
    (atom,) = branch.atoms
    rows = next((rows for name, rows in planning.nested.items() if rows.stage == atom.source), None)
    if rows is None or atom.source not in planning.read_as_is or len(atom.variables) != len(atom.bindings):
        return None
    values = {binding.variable: binding.expression for binding in atom.bindings}
    conditions = [] if atom.filter is None else [atom.filter]
    conditions += [substitute(predicate, values) for predicate in branch.residual]
    present = [Call("not", (Call("is_null", (values[name],), BOOLEAN),), BOOLEAN) for name in atom.not_null]
    shown = [Named(output.name, substitute(output.expression, values)) for output in outputs]
    return rows, shown, all_of([*conditions, *present])
