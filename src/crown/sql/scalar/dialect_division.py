"""Division where a dialect does not divide as Spark does."""

from __future__ import annotations

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import ScalarBinder
from crown.sql.scalar.coerce import cast, compare
from crown.types import BOOLEAN, FLOAT64, INT32, INT64, DataType

_NULL_MODULO = frozenset({"sqlite", "mysql"})  # the remainder of a division by zero is NULL there


def divided(binder: ScalarBinder, node: exp.Expr, left: Expression, right: Expression) -> Expression | None:
    """Return the quotient as the dialect computes it; None where it is Spark's."""
    if binder.context.is_spark or not _is_number(left.type) or not _is_number(right.type):
        return None
    if node.args.get("typed") and {left.type, right.type} <= set(types.INTEGERS):
        divisor = or_null(binder, node, right) if node.args.get("safe") else right
        sides = [cast(binder.context, node, side, INT64) for side in (left, divisor)]
        return binder.call("div", sides, INT64, node)
    return _of_floats(binder, node, left, right) if binder.context.dialect == "duckdb" else None


def divisor_of(binder: ScalarBinder, node: exp.Expr, operator: str, right: Expression) -> Expression:
    """Return the divisor, which is NULL instead of zero if a division by zero is NULL in this dialect.

    In Spark's ANSI mode, which Crown follows otherwise, it is an error.
    """
    null = bool(node.args.get("safe")) if operator == "divide" else binder.context.dialect in _NULL_MODULO
    return or_null(binder, node, right) if null and not binder.context.is_spark else right


def or_null(binder: ScalarBinder, node: exp.Expr, value: Expression) -> Expression:
    zero = compare(binder.context, node, "eq", value, Literal(0, INT32))
    return binder.call("case", [zero, Literal(None, value.type), value], value.type, node)


def _is_number(type_: DataType) -> bool:
    return type_.is_numeric or type_ == types.NULL


def _of_floats(binder: ScalarBinder, node: exp.Expr, left: Expression, right: Expression) -> Expression:
    """DuckDB divides all numbers as doubles; by zero there are infinities and NaN."""
    one, other = (cast(binder.context, node, side, FLOAT64) for side in (left, right))
    nothing = Literal(0.0, FLOAT64)
    by_zero = binder.call("eq", [other, nothing], BOOLEAN, node)
    not_a_number = Literal("NaN", FLOAT64)
    limit = binder.call(
        "case",
        [
            *(binder.call("is_null", [one], BOOLEAN, node), Literal(None, FLOAT64)),
            *(binder.call("is_nan", [one], BOOLEAN, node), not_a_number),
            *(binder.call("gt", [one, nothing], BOOLEAN, node), Literal("Infinity", FLOAT64)),
            *(binder.call("lt", [one, nothing], BOOLEAN, node), Literal("-Infinity", FLOAT64)),
            not_a_number,
        ],
        FLOAT64,
        node,
    )
    quotient = binder.call("divide", [one, other], FLOAT64, node)
    return binder.call("case", [by_zero, limit, quotient], FLOAT64, node)
