"""The key of a view: columns that no two of its rows share."""

from __future__ import annotations

from crown.ir.columns import stage_columns
from crown.ir.expression import Column
from crown.ir.plan import (
    AggregateStage,
    DistinctStage,
    MapStage,
    MaterializeStage,
    Plan,
    Stage,
    TopStage,
    TreeStage,
    WindowStage,
)


def view_key(plan: Plan) -> tuple[int, ...] | None:
    """Return the positions of columns of the view that determine a row; None if none are known to.

    They are those of a GROUP BY, or the primary keys of all tables that a row is made of. A view of one row has ().
    """
    stages = {stage.id: stage for stage in plan.stages}
    last = plan.stages[-1]
    names = _key(plan, stages, last.id)
    if names is None:
        return None
    columns = [column.name for column in stage_columns(plan)[last.id]]
    return tuple(columns.index(name) for name in names)


def _key(plan: Plan, stages: dict[str, Stage], source: str) -> tuple[str, ...] | None:
    match stage := stages.get(source):
        case AggregateStage():
            return stage.group
        case TreeStage(mode="ring"):
            return stage.outputs
        case TreeStage():
            return _primary_keys(plan, stage)
        case MapStage():
            inner = _key(plan, stages, stage.input)
            shown = {c.expression.name: c.name for c in stage.columns if isinstance(c.expression, Column)}
            return tuple(shown[name] for name in inner) if inner is not None and set(inner) <= set(shown) else None
        case DistinctStage() | MaterializeStage() | TopStage() | WindowStage():
            return _key(plan, stages, stage.input)
    return None


def _primary_keys(plan: Plan, tree: TreeStage) -> tuple[str, ...] | None:
    tables = {table.name: table for table in plan.tables}
    found: dict[str, None] = {}
    for node in tree.nodes:
        if node.atom is None or node.edge in ("exists", "anti"):
            continue
        atom = tree.atoms[node.atom]
        key = tables[atom.source].primary_key if atom.source in tables else ()
        bound = {b.expression.name: b.variable for b in atom.bindings if isinstance(b.expression, Column)}
        if not key or not all(bound.get(column) in tree.outputs for column in key):
            return None
        found.update(dict.fromkeys(bound[column] for column in key))
    return tuple(found)
