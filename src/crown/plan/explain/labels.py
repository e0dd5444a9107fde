"""Show variables by the names of the user's columns: `m.creator`, not `m_creator`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from weakref import ref

from crown.ir.expression import Column, Literal, columns_of
from crown.ir.plan import Atom, BagStage, Binding, Plan, TreeStage
from crown.ir.render import to_text
from crown.ir.scalars import substitute

_NAME = re.compile(r"(?<![\w.$`'\"-])\w+(?![\w(-])")
_last: tuple[Callable[[], Plan | None], Callable[[str], str]] = (lambda: None, str)


def with_columns(text: str, plan: Plan) -> str:
    """Return a text of explain with each variable as the column that it is named for."""
    return relabelled(plan)(text)


def relabelled(plan: Plan) -> Callable[[str], str]:
    """Return a function that writes the plan's variables in a text as columns."""
    global _last
    known, written = _last
    if known() is not plan:  # explain asks for each node of one plan
        labels = _labels(plan)
        written = partial(_NAME.sub, lambda found: labels.get(found[0], found[0]))
        _last = ref(plan), written
    return written


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
