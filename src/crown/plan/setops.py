"""UNION, EXCEPT and INTERSECT look rows up in their branches, which are kept only where that is impossible."""

from __future__ import annotations

from dataclasses import replace

from crown.ir.plan import MaterializeStage, SetOperationStage, Variable
from crown.ir.query import SetOperation
from crown.plan.context import Context, Rows


def combine(operation: SetOperation, left: Rows, right: Rows, context: Context) -> Rows:
    linear = operation.operator == "union" and operation.all
    if not linear:
        left, right = _with_lookup(left, context), _with_lookup(right, context)
    stage = SetOperationStage(
        context.new_id(operation.operator), operation.operator, operation.all, (left.stage, right.stage)
    )
    context.add(stage)
    name = f"{operation.operator.upper()}{' ALL' if operation.all else ''}"
    cost = "each row as it comes" if linear else "one look-up in the other branch for each changed row"
    context.note(name, stage.id, cost, "" if linear else "constant delay: rows that the other branch has are skipped")
    columns = tuple(
        Variable(one.name, one.type, one.nullable or other.nullable)
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    return Rows(stage.id, columns, left.names, distinct=not operation.all, lookup=True)


def _with_lookup(rows: Rows, context: Context) -> Rows:
    if rows.lookup:
        return rows
    stage = MaterializeStage(context.new_id("kept"), rows.stage)
    context.add(stage)
    context.note("kept branch", stage.id, "its rows are kept to be looked up", "linear space")
    return replace(rows, stage=stage.id, lookup=True)
