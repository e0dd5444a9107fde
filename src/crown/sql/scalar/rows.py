"""Comparisons of rows, `(a, b) < (c, d)`."""

from __future__ import annotations

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.scalar.binding import ScalarBinder
from crown.sql.scalar.coerce import compare
from crown.types import BOOLEAN

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
