"""Show variables by the names of the user's columns: `m.creator`, not `m_creator`."""

from __future__ import annotations

import re
from collections.abc import Callable

from crown.ir.expression import Column, Literal, columns_of
from crown.ir.plan import Atom, BagStage, Binding, Plan, TreeStage
from crown.ir.render import to_text
from crown.ir.scalars import substitute


def with_columns(text: str, plan: Plan) -> str:
    """Return a text of explain with each variable as the column that it is named for."""
    return relabelled(plan)(text)


def relabelled(plan: Plan) -> Callable[[str], str]:
    """Return a function that writes the plan's variables in a text as columns."""
    labels = _labels(plan)
    if not labels:
        return str
    longest_first = sorted(labels, key=len, reverse=True)
    names = re.compile(rf"(?<![\w.$`'\"-])({'|'.join(map(re.escape, longest_first))})(?![\w(-])")
    return lambda text: names.sub(lambda found: labels[found[1]], text)


def _labels(plan: Plan) -> dict[str, str]:
    """By variable; without those that stand for different columns in different trees, or are words of the query."""
    tables = {table.name for table in plan.tables}
    found: dict[str, set[str]] = {}
    for stage in plan.stages:
        if not isinstance(stage, TreeStage | BagStage):
            continue
        own: dict[str, str] = {}
        for atom in stage.atoms:
            for binding in atom.bindings:
                label = _label(atom, binding, is_table=atom.source in tables)
                if label is not None:
                    own.setdefault(binding.variable, label)
        for variable, label in own.items():
            found.setdefault(variable, set()).add(label)
    return {variable: labels.pop() for variable, labels in found.items() if len(labels) == 1}


def _label(atom: Atom, binding: Binding, *, is_table: bool) -> str | None:
    """Only of names that were made of an alias and what it has: others are words of the query itself."""
    variable, value = binding.variable.lower(), binding.expression
    if isinstance(value, Column):
        made = is_table and variable == f"{atom.name}_{value.name}".lower()
        return f"{atom.name}.{value.name}" if made else None
    if not variable.startswith(f"{atom.name}_".lower()):
        return None
    if isinstance(value, Literal):  # NULL unless the subquery has the key
        return f"{atom.name}.found"
    if not is_table:
        return None
    named = {name: Column(f"{atom.name}.{name}", value.type) for name in columns_of(value)}
    return f"({to_text(substitute(value, named))})"
