"""The columns of each stage of a plan, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crown.ir.plan import (
    AggregateStage,
    BagStage,
    DistinctStage,
    MapStage,
    MaterializeStage,
    Plan,
    RecursionStage,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
    Variable,
    WindowStage,
)
from crown.types import INT32

_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})


def stage_columns(plan: Plan) -> dict[str, tuple[Variable, ...]]:
    """By stage id."""
    known: dict[str, tuple[Variable, ...]] = {}
    for stage in plan.stages:
        known[stage.id] = columns_of_stage(stage, known)
    return known


def columns_of_stage(stage: Stage, known: Mapping[str, tuple[Variable, ...]]) -> tuple[Variable, ...]:
    """Return the columns of one stage over those of the stages below it."""
    match stage:
        case TreeStage() | BagStage():
            of_name = {variable.name: variable for variable in stage.variables}
            shown = tuple(of_name[name] for name in stage.outputs)
            ring = stage.ring if isinstance(stage, TreeStage) else ()
            return shown + tuple(Variable(component.name, component.type, False) for component in ring)
        case MapStage():
            return tuple(Variable(column.name, column.type, column.nullable) for column in stage.columns)
        case AggregateStage():
            below = {variable.name: variable for variable in known[stage.input]}
            folded = tuple(Variable(a.name, a.type, not a.function.startswith("count")) for a in stage.aggregates)
            return tuple(below[name] for name in stage.group) + folded
        case SetOperationStage():
            left, right = known[stage.inputs[0]], known[stage.inputs[1]]
            return tuple(replace(a, nullable=a.nullable or b.nullable) for a, b in zip(left, right, strict=True))
        case ValuesStage():
            return stage.columns
        case TopStage():
            return known[stage.input] + tuple(Variable(rank.name, INT32, False) for rank in stage.ranks)
        case WindowStage():
            return known[stage.input] + tuple(Variable(c.name, c.type, c.function not in _RANKS) for c in stage.columns)
        case DistinctStage() | MaterializeStage():
            return known[stage.input]
        case RecursionStage():
            return tuple(replace(column, nullable=True) for column in known[stage.base])
