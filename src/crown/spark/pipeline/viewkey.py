"""The columns that tell a view's rows apart, where its plan shows them: those of GROUP BY."""

from __future__ import annotations

from crown.ir.columns import stage_columns
from crown.ir.expression import Column
from crown.ir.plan import AggregateStage, MapStage, Plan, TreeStage


def view_key(plan: Plan) -> tuple[str, ...]:
    """Return names of the view's columns; empty where only whole rows, or nothing, differ."""
    stages = {stage.id: stage for stage in plan.stages}
    last = plan.stages[-1]
    # Where each column of the view comes from, stage by stage downwards.
    origins = {shown.name: own.name for own, shown in zip(stage_columns(plan)[last.id], plan.columns, strict=True)}
    stage = last
    while isinstance(stage, MapStage):
        computed = {column.name: column.expression for column in stage.columns}
        origins = {
            shown: expression.name
            for shown, own in origins.items()
            if isinstance(expression := computed.get(own), Column)
        }
        if stage.input not in stages:
            return ()
        stage = stages[stage.input]
    if isinstance(stage, AggregateStage):
        group = stage.group
    elif isinstance(stage, TreeStage) and stage.mode == "ring":
        group = stage.outputs
    else:
        return ()
    shown_by = {own: shown for shown, own in origins.items()}
    return tuple(shown_by[name] for name in group) if all(name in shown_by for name in group) else ()
