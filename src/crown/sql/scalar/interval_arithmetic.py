"""What is computed from intervals: sums, products and quotients, their parts, and intervals of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import always, cast
from crown.sql.scalar.fold import fold
from crown.sql.scalar.intervals import MONTHS, length, of_length, shifted
from crown.sql.schema.options import MICROSECONDS
from crown.types import BOOLEAN, FLOAT64, INT8, INT32, INT64, STRING, DataType

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}
_WHOLE = types.decimal(20, 0)  # any integer
# The fields of an interval by the names that EXTRACT takes.
_NAMES = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "second"),
}
_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_ABOVE = {"month": 12, "hour": 24, "minute": 60, "second": 60}  # how many of a field are one of the field before it


def arithmetic(binder: ScalarBinder, node: exp.Expr, operator: str, left: Expression, right: Expression) -> Expression:
    """Return the result of an operator of which one operand or both are intervals."""
    if operator in ("add", "subtract"):
        return _sum(binder, node, operator, left, right)
    if operator == "multiply" and right.type.is_interval:
        left, right = right, left
    if operator not in ("multiply", "divide") or not left.type.is_interval or not _is_number(right):
        _refuse(binder, node, operator, left, right)
    return scaled(binder.context, node, operator, left, right)


def _sum(binder: ScalarBinder, node: exp.Expr, operator: str, left: Expression, right: Expression) -> Expression:
    if operator == "add" and not right.type.is_interval and right.type != types.NULL:
        left, right = right, left
    common = types.common_type(left.type, right.type)
    if common is not None and common.is_interval:
        sides = [cast(binder.context, node, side, common) for side in (left, right)]
        return binder.call(operator, sides, common, node)
    if left.type.is_interval or not (left.type.is_temporal or left.type == STRING):
        _refuse(binder, node, operator, left, right)
    return shifted(binder.context, node, operator, left, right)


def _is_number(value: Expression) -> bool:
    return value.type.is_numeric or value.type in (STRING, types.NULL)


def _refuse(binder: ScalarBinder, node: exp.Expr, operator: str, left: Expression, right: Expression) -> NoReturn:
    binder.context.fail(
        node,
        "TYPE-CLASH",
        f"{left.type.shown} and {right.type.shown} can't be combined with {_SIGNS[operator]}",
        hint=(
            "datediff(a, b) is the number of days between two dates; CAST makes a number of an interval"
            if left.type.is_numeric or right.type.is_numeric
            else None
        ),
    )


def scaled(context: Context, node: exp.Expr, operator: str, interval: Expression, number: Expression) -> Expression:
    """Return an interval times or divided by a number, rounded half up, in all fields of its kind."""
    type_ = types.widest_interval(interval.type)
    if number.type == types.NULL:
        return Literal(None, type_)

    def computed(function: str, sides: list[Expression], result: DataType) -> Expression:
        return context.mark(fold(Call(function, tuple(sides), result), always), node)

    if number.type.is_float or number.type == STRING:
        sides = [cast(context, node, side, FLOAT64) for side in (length(interval), number)]
        inexact = computed(operator, sides, FLOAT64)
        return of_length(context, node, computed("round", [inexact, Literal(0, INT32)], FLOAT64), type_)
    if operator == "multiply" and number.type.is_integer:
        sides = [cast(context, node, side, INT64) for side in (length(interval), number)]
        return of_length(context, node, computed("multiply", sides, INT64), type_)
    sides = [cast(context, node, length(interval), _WHOLE)]
    sides.append(cast(context, node, number, _WHOLE) if number.type.is_integer else number)
    # Products and quotients of decimals are rounded to the scale of their type.
    return of_length(context, node, computed(operator, sides, types.longest_decimal(0)), type_)


def mean_of_lengths(
    context: Context, node: exp.Expr, total: Expression, count: Expression, type_: DataType
) -> Expression:
    """Return the interval that is a sum of lengths by their number; NULL where there are none."""
    mean = scaled(context, node, "divide", of_length(context, node, total, type_), count)
    return Call("case", (Call("is_null", (total,), BOOLEAN), Literal(None, mean.type), mean), mean.type)


def whole_quotient(binder: ScalarBinder, node: exp.Expr, left: Expression, right: Expression) -> Expression:
    """`a DIV b` of two intervals: how often one is in the other."""
    if not (left.type.is_interval and right.type.is_interval) or left.type.is_months != right.type.is_months:
        binder.context.fail(node, "TYPE-CLASH", f"{left.type.shown} can't be divided by {right.type.shown} with DIV")
    sides = [cast(binder.context, node, length(side), INT64) for side in (left, right)]
    return binder.call("div", sides, INT64, node)


def part(binder: ScalarBinder, node: exp.Expr, name: str, interval: Expression) -> Expression:
    """EXTRACT: a field of an interval, what its fields before it leave."""
    field, (first, last) = _NAMES.get(name), interval.type.interval_fields
    if field is None or not _FIELDS.index(first) <= _FIELDS.index(field) <= _FIELDS.index(last):
        binder.context.fail(
            node,
            "TYPE-CLASH",
            f"{interval.type.shown} has no {name or 'such field'}",
            reason="EXTRACT takes a field from the first to the last one of the interval's type",
            hint="cast the interval, to INTERVAL DAY TO SECOND for example",
        )
    number = cast(binder.context, node, length(interval), INT64)
    unit = MONTHS.get(field) or MICROSECONDS[field]
    above = _ABOVE.get(field)
    if above is not None:
        number = binder.call("modulo", [number, Literal(unit * above, INT64)], INT64, node)
    if field == "second":
        micros = cast(binder.context, node, number, _WHOLE)
        return binder.call("divide", [micros, Literal(str(unit), _WHOLE)], types.decimal(8, 6), node)
    count = binder.call("div", [number, Literal(unit, INT64)], INT64, node)
    return cast(binder.context, node, count, INT8 if above is not None else INT32)


def _make(
    binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], fields: Sequence[str], type_: DataType
) -> Expression:
    if len(parts) > len(fields):
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"this function takes at most {len(fields)} arguments")
    total: Expression = Literal(0, INT64)
    for field, written in zip(fields, parts, strict=False):
        number, unit = binder.bind(written), MONTHS.get(field) or MICROSECONDS[field]
        if field == "second":  # six digits after the point
            exact = cast(binder.context, node, number, types.decimal(18, 6))
            micros = binder.call("multiply", [exact, Literal(str(unit), _WHOLE)], types.longest_decimal(6), node)
            amount = cast(binder.context, node, micros, INT64)
        else:
            count = cast(binder.context, node, cast(binder.context, node, number, INT32), INT64)
            amount = binder.call("multiply", [count, Literal(unit, INT64)], INT64, node)
        total = binder.call("add", [total, amount], INT64, node)
    return of_length(binder.context, node, total, type_)


def _make_dt_interval(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    return _make(binder, node, parts, ("day", "hour", "minute", "second"), types.DAY_TIME)


def _make_ym_interval(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    return _make(binder, node, parts, ("year", "month"), types.YEAR_MONTH)


SPECIAL: dict[str, Special] = {"make_dt_interval": _make_dt_interval, "make_ym_interval": _make_ym_interval}
