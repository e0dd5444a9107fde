"""SELECT without aggregates: a tree for each branch, then projection, union of branches and DISTINCT."""

from __future__ import annotations

from typing import Literal as OneOf

from crown.ir.query import Conjunction, Named, Select
from crown.ir.scalars import substitute, variables_of
from crown.plan.context import Context, Rows
from crown.plan.explain.notes import note_branches
from crown.plan.rows import project, union_all, without_duplicates
from crown.plan.tree.passes import plan_conjunction


def plan_rows(
    select: Select, duplicates: OneOf["keep", "drop", "ignore"], context: Context, *, looked_up: bool = False
) -> Rows:
    """Return the rows of a select list. `ignore`: the caller doesn't mind duplicates, so that the cheaper way is taken.

    `looked_up`: a set operation will look rows up in them.
    """
    branches = [
        _branch(branch, select.outputs, duplicates, len(select.branches) > 1, context) for branch in select.branches
    ]
    rows = union_all(branches, context, looked_up=looked_up and duplicates != "drop")
    note_branches(select.branches, rows.stage, context)
    return without_duplicates(rows, context) if duplicates == "drop" else rows


def branch_outputs(branch: Conjunction, outputs: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the outputs as expressions over the branch's variables."""
    columns = {column.name: column.expression for column in branch.columns}
    return tuple(Named(output.name, substitute(output.expression, columns)) for output in outputs)


def _branch(
    branch: Conjunction,
    outputs: tuple[Named, ...],
    duplicates: OneOf["keep", "drop", "ignore"],
    named: bool,
    context: Context,
) -> Rows:
    shown = branch_outputs(branch, outputs)
    wanted = variables_of(output.expression for output in shown)
    rows = plan_conjunction(branch, wanted, "bag" if duplicates == "keep" else "set", context)
    return project(rows, shown, context, named=named)
