"""UNION, EXCEPT and INTERSECT look rows up in their branches, which are stored only if necessary."""

from __future__ import annotations

from crown.ir.plan import SetOperationStage, Variable
from crown.ir.query import SetOperation
from crown.plan.planning import Planning, StageRows
from crown.plan.rows import with_lookup


def combine(
    operation: SetOperation, left: StageRows, right: StageRows, planning: Planning, *, looked_up: bool
) -> StageRows:
    """`looked_up`: another set operation will look rows up in the result."""
    linear = operation.operator == "union" and operation.all
    if not linear or (looked_up and (planning.can_look_up(left) or planning.can_look_up(right))):
        # If no branch of a UNION ALL can look rows up, storing the union is cheaper than storing
        # each branch.
        left, right = with_lookup(left, planning), with_lookup(right, planning)
    stage = SetOperationStage(
        planning.new_id(operation.operator), operation.operator, operation.all, (left.stage, right.stage)
    )
    planning.add(stage)
    name = f"{operation.operator.upper()}{' ALL' if operation.all else ''}"
    if not linear:
        cost = "one look-up in the other branch for each changed row"
        planning.note(name, stage.id, cost, "constant delay: rows of the other branch are skipped")
    elif looked_up:
        cost = "one look-up in the other branch for each row that is read"
        planning.note(name, stage.id, cost)
    else:
        planning.note(name, stage.id, "each row as it comes")
    columns = tuple(
        Variable(one.name, one.type, one.nullable or other.nullable)
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    rows = StageRows(stage.id, columns, left.names, distinct=not operation.all)
    return with_lookup(rows, planning) if looked_up else rows
