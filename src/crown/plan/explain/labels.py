"""Variables under the names of the user's columns: `m.creator`, not `m_creator`."""

from __future__ import annotations

import re
from collections.abc import Callable

from crown.ir.expression import Column
from crown.ir.plan import BagStage, Plan, TreeStage


def with_columns(text: str, plan: Plan) -> str:
    """Return a text of explain with each variable as the column that it is named for."""
    return relabelled(plan)(text)


def relabelled(plan: Plan) -> Callable[[str], str]:
    """Return what writes the variables of the plan in a text as columns."""
    labels = _labels(plan)
    if not labels:
        return str
    longest_first = sorted(labels, key=len, reverse=True)
    names = re.compile(rf"(?<![\w.$`'\"-])({'|'.join(map(re.escape, longest_first))})(?![\w(-])")
    return lambda text: names.sub(lambda found: labels[found[1]], text)


def _labels(plan: Plan) -> dict[str, str]:
    """By variable; without those that stand for different columns in different trees, or are no column at all."""
    tables = {table.name for table in plan.tables}
    found: dict[str, set[str]] = {}
    for stage in plan.stages:
        if not isinstance(stage, TreeStage | BagStage):
            continue
        own: dict[str, str] = {}
        for atom in stage.atoms:
            for binding in atom.bindings if atom.source in tables else ():
                column = binding.expression
                # Only names that were made of an alias and a column: others are words of the query
                # itself.
                if isinstance(column, Column) and binding.variable.lower() == f"{atom.name}_{column.name}".lower():
                    own.setdefault(binding.variable, f"{atom.name}.{column.name}")
        for variable, label in own.items():
            found.setdefault(variable, set()).add(label)
    return {variable: labels.pop() for variable, labels in found.items() if len(labels) == 1}
