"""Comparisons of rows, `(a, b) < (c, d)`, and of the time between two moments with an interval."""

from __future__ import annotations

from sqlglot import exp

from crown.ir.expression import Expression, Literal
from crown.sql.scalar.arrays import as_interval
from crown.sql.scalar.binding import ScalarBinder
from crown.sql.scalar.coerce import cast, compare
from crown.sql.scalar.intervals import interval_amount
from crown.sql.schema.options import MICROSECONDS
from crown.types import BOOLEAN, INT64, TIMESTAMP

# The comparison of a whole, and that of the parts before the last one.
_BEFORE = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}


def compare_rows(binder: ScalarBinder, node: exp.Expr, function: str) -> Expression:
    """Rows are compared by their first different part."""
    context, left, right = binder.context, node.this, node.expression
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        context.fail(node, "TUPLE", "a row can only be compared with a row", hint="compare the columns one by one")
    if len(left.expressions) != len(right.expressions):
        context.fail(node, "TYPE-CLASH", "the two rows have different lengths")
    pairs = [
        (binder.bind(one), binder.bind(other)) for one, other in zip(left.expressions, right.expressions, strict=True)
    ]
    if function not in _BEFORE:
        equal = [compare(context, node, "eq", one, other) for one, other in pairs]
        same = binder.call("and", equal, BOOLEAN, node)
        if function not in ("eq", "ne"):
            context.fail(node, "TUPLE", "rows can't be compared this way", hint="compare the columns one by one")
        return same if function == "eq" else binder.call("not", [same], BOOLEAN, node)
    found = compare(context, node, function, *pairs[-1])
    for one, other in reversed(pairs[:-1]):
        equal_so_far = binder.call("and", [compare(context, node, "eq", one, other), found], BOOLEAN, node)
        ahead = compare(context, node, _BEFORE[function], one, other)
        found = binder.call("or", [ahead, equal_so_far], BOOLEAN, node)
    return found


def compare_durations(binder: ScalarBinder, node: exp.Expr, function: str) -> Expression | None:
    """`end - start > INTERVAL '30 minutes'`; None if no side is an interval."""
    sides = [node.this, node.expression]
    if not any(isinstance(side.unnest(), exp.Interval) for side in sides):
        return None
    micros = [duration(binder, side.unnest()) for side in sides]
    return compare(binder.context, node, function, *micros)


def duration(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """Return the microseconds of an interval, or between two moments."""
    context, interval = binder.context, as_interval(node)
    if interval is not None:
        amount, unit = interval_amount(context, interval)
        if unit in MICROSECONDS:
            return Literal(amount * MICROSECONDS[unit], INT64)
    if interval is not None or not isinstance(node, exp.Sub):
        context.fail(
            node,
            "INTERVAL",
            "an interval can only be compared with the time between two moments",
            reason="months and years have no fixed length",
            hint="write b - a > INTERVAL 30 MINUTE, or compare b with a + INTERVAL 30 MINUTE",
        )
    moments = [cast(context, node, binder.bind(side), TIMESTAMP) for side in (node.this, node.expression)]
    return binder.call(
        "subtract", [binder.call("unix_micros", [moment], INT64, node) for moment in moments], INT64, node
    )
