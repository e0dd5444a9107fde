"""Casts: every operand gets the type that Spark would give it, so that the kernel never coerces."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar.constants import convert
from crown.sql.scalar.fold import fold
from crown.types import BOOLEAN, INT32, STRING, DataType


def always(_: str) -> bool:
    """Before a branch is chosen any column may be NULL: an outer join may pad it."""
    return True


def cast(
    context: Context, node: exp.Expr, expression: Expression, target: DataType, *, explicit: bool = False
) -> Expression:
    """Return the expression as a value of `target`, or an error at `node`; `explicit` if the query says CAST.

    Only an explicit cast makes a number of an interval, or an interval of a number.
    """
    source = expression.type
    if source == target:
        return expression
    known = types.castable(source, target) and (explicit or not _counts_units(source, target))
    if isinstance(expression, Literal) and (known or source == types.NULL):
        folded = convert(expression, target)
        if folded is None:
            context.fail(
                node,
                "TYPE-CLASH",
                f"{expression.value!r} is not a valid {target.shown}",
                hint="write a literal of the type of the column",
            )
        return folded
    if source == types.NULL:
        return Literal(None, target)
    if known:
        return context.mark(fold(Call("cast", (expression,), target), always), node)
    context.fail(
        node,
        "TYPE-CLASH",
        f"{source.shown} can't be converted to {target.shown}",
        hint="use values of the same kind, or CAST",
    )


def _counts_units(source: DataType, target: DataType) -> bool:
    return (source.is_interval and target.is_numeric) or (source.is_numeric and target.is_interval)


def unify(context: Context, node: exp.Expr, expressions: Sequence[Expression], what: str) -> list[Expression]:
    """Return all expressions cast to their common type."""
    if context.counts_booleans and any(e.type.is_numeric for e in expressions):
        expressions = [as_number(context, node, e) for e in expressions]
    common = types.NULL
    for expression in expressions:
        found = types.common_type(common, expression.type)
        if found is None:
            context.fail(
                node,
                "TYPE-CLASH",
                f"{what} mixes {common.shown} and {expression.type.shown}",
                reason="they have no common type",
                hint=(
                    "datediff(a, b) is the number of days between two dates; or write INTERVAL '5' DAY"
                    if common.is_interval != expression.type.is_interval
                    else "cast one side to the type of the other"
                ),
            )
        common = found
    if common == types.NULL:
        common = STRING
    return [cast(context, node, e, common) for e in expressions]


def as_number(context: Context, node: exp.Expr, expression: Expression) -> Expression:
    """Return a truth value as 1 or 0, in dialects that count with them; all others as they are."""
    if expression.type != BOOLEAN or not context.counts_booleans:
        return expression
    return cast(context, node, expression, INT32)


def boolean(context: Context, node: exp.Expr, expression: Expression) -> Expression:
    """Return a condition: boolean, or NULL."""
    if expression.type == types.NULL:
        return Literal(None, BOOLEAN)
    if expression.type.is_numeric and context.counts_booleans:
        return compare(context, node, "ne", expression, Literal(0, INT32))
    if expression.type != BOOLEAN:
        context.fail(
            node,
            "TYPE-CLASH",
            f"a condition must be boolean, not {expression.type.shown}",
            hint="compare it with a value",
        )
    return expression


def compare(context: Context, node: exp.Expr, function: str, left: Expression, right: Expression) -> Expression:
    """Return a comparison of two values in their common type."""
    first, second = unify(context, node, (left, right), "this comparison")
    if first.type == BOOLEAN and function in ("lt", "le", "gt", "ge") and STRING in (left.type, right.type):
        context.fail(node, "TYPE-CLASH", "booleans and strings can't be ordered")
    call = Call(function, (first, second), BOOLEAN)
    return context.mark(fold(call, always), node)
