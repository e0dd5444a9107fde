"""UNION, EXCEPT and INTERSECT look rows up in their branches, which are kept only where that is impossible."""

from __future__ import annotations

from crown.ir.plan import SetOperationStage, Variable
from crown.ir.query import SetOperation
from crown.plan.context import Context, Rows
from crown.plan.rows import with_lookup


def combine(operation: SetOperation, left: Rows, right: Rows, context: Context, *, looked_up: bool) -> Rows:
    """`looked_up`: another set operation will look rows up in the result."""
    linear = operation.operator == "union" and operation.all
    if not linear or (looked_up and (context.can_look_up(left) or context.can_look_up(right))):
        # If no branch of a UNION ALL can look rows up, storing the union is cheaper than storing each branch.
        left, right = with_lookup(left, context), with_lookup(right, context)
    stage = SetOperationStage(
        context.new_id(operation.operator), operation.operator, operation.all, (left.stage, right.stage)
    )
    context.add(stage)
    name = f"{operation.operator.upper()}{' ALL' if operation.all else ''}"
    if not linear:
        cost = "one look-up in the other branch for each changed row"
        context.note(name, stage.id, cost, "constant delay: rows of the other branch are skipped")
    elif looked_up:
        cost = "one look-up in the other branch for each row that is read"
        context.note(name, stage.id, cost)
    else:
        context.note(name, stage.id, "each row as it comes")
    columns = tuple(
        Variable(one.name, one.type, one.nullable or other.nullable)
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    rows = Rows(stage.id, columns, left.names, distinct=not operation.all)
    return with_lookup(rows, context) if looked_up else rows
