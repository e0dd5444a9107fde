"""Fold aggregates that need different sets of rows separately, and join the results by group.

SUM(DISTINCT x) needs rows that are distinct in group and x alone. Next to other aggregates it is folded from a separate
tree; a tree over the folded groups, keyed by the group, then joins the parts. NULL groups match there, as grouping
requires, because no atom drops them.
"""

from __future__ import annotations

from collections.abc import Sequence

from crown.ir.expression import Column, Expression
from crown.ir.plan import Atom, Binding, TreeStage, Variable
from crown.ir.query import Aggregate, Select
from crown.plan.planning import Planning, StageRows
from crown.plan.tree.price import to_nodes
from crown.plan.tree.trees import find_trees


def separate(select: Select) -> list[tuple[Aggregate, ...]]:
    """Return the aggregates in parts that can each be folded from one set of rows."""
    alone: dict[Expression | None, list[Aggregate]] = {}
    together: list[Aggregate] = []
    for aggregate in select.aggregates:
        if aggregate.distinct and aggregate.function in ("sum", "avg"):
            alone.setdefault(aggregate.argument, []).append(aggregate)
        else:
            together.append(aggregate)
    for aggregate in list(together):
        if aggregate.argument in alone and (aggregate.distinct or aggregate.function in ("min", "max")):
            together.remove(aggregate)
            alone[aggregate.argument].append(aggregate)
    parts = [tuple(part) for part in alone.values()]
    return [tuple(together), *parts] if together else parts


def side_by_side(
    parts: Sequence[tuple[StageRows, dict[str, Expression]]], group: Sequence[str], planning: Planning
) -> tuple[StageRows, dict[str, Expression]]:
    """Return one row per group with the columns of all parts; and what the select's names refer to in it."""
    first_rows, first_values = parts[0]
    group_columns = [_named(first_values[name], first_rows) for name in group]
    atoms, variables, values = [], list(group_columns), {n: first_values[n] for n in group}
    for number, (rows, own) in enumerate(parts):
        bindings = [Binding(shared.name, own[name]) for shared, name in zip(group_columns, group, strict=True)]
        for name, value in own.items():
            if name not in group:
                column = _named(value, rows)
                fresh = Variable(f"{column.name}/{number}", column.type, column.nullable)
                variables.append(fresh)
                bindings.append(Binding(fresh.name, value))
                values[name] = Column(fresh.name, fresh.type)
        atoms.append(Atom(f"groups {number + 1}", rows.stage, tuple(bindings)))
    names = tuple(variable.name for variable in variables)
    trees = find_trees([frozenset(a.variables) for a in atoms], frozenset(names), [1.0] * len(atoms))
    nodes = to_nodes(trees.best[0], atoms, names)
    stage = TreeStage(planning.new_id("groups"), tuple(variables), tuple(atoms), nodes, names, "set")
    planning.add(stage)
    planning.note(
        "SUM(DISTINCT) with others", stage.id, "computed separately and joined by group", "groups are kept twice"
    )
    key = tuple(column.name for column in group_columns)
    return StageRows(stage.id, tuple(variables), names, distinct=True, key=key), values


def _named(value: Expression, rows: StageRows) -> Variable:
    assert isinstance(value, Column)
    return next(column for column in rows.columns if column.name == value.name)
