"""Dates and timestamps plus or minus intervals and days."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from crown.ir.expression import Call, Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar.coerce import always, cast
from crown.sql.scalar.fold import fold
from crown.sql.schema.options import MICROSECONDS
from crown.types import DATE, INT32, INT64, STRING, TIMESTAMP, DataType

MONTHS = {"month": 1, "quarter": 3, "year": 12}


def interval_arithmetic(
    context: Context, node: exp.Expr, operator: str, bind: Callable[[exp.Expr], Expression]
) -> Expression | None:
    """`value + INTERVAL ...`; None when neither side is an interval."""
    left, right = _unwrapped(node.this), _unwrapped(node.expression)
    if isinstance(left, exp.Interval) and operator == "add":
        left, right = right, left
    if (scaled := _scaled(left)) is not None and operator == "add":
        left, right = right, left
    if (scaled := _scaled(right)) is not None:
        return _shifted_often(context, node, operator, bind(left), scaled, bind)
    if not isinstance(right, exp.Interval) or isinstance(left, exp.Interval):
        return None
    subject = bind(left)
    if subject.type == STRING:
        return _moved_text(context, node, operator, subject, right)
    if not subject.type.is_temporal:
        context.fail(node, "TYPE-CLASH", f"an interval can't be added to {subject.type.shown}")
    amount, unit = interval_amount(context, right)
    return _shifted(context, node, subject, amount if operator == "add" else -amount, unit)


def _moved_text(
    context: Context, node: exp.Expr, operator: str, subject: Expression, interval: exp.Interval
) -> Expression:
    """A string is read as a timestamp."""
    amount, unit = interval_amount(context, interval)
    moment = cast(context, node, subject, TIMESTAMP)
    return _as_text(
        context, node, _shifted(context, node, moment, amount if operator == "add" else -amount, unit), unit
    )


def _as_text(context: Context, node: exp.Expr, found: Expression, unit: str) -> Expression:
    """What a string and an interval are: in Spark a string again, to which months can't be added."""
    if not context.is_spark:
        return found
    if unit in MONTHS:
        context.fail(
            node, "TYPE-CLASH", "months can't be added to a string", hint="write DATE '...', or cast the string"
        )
    return cast(context, node, found, STRING)


def _scaled(node: exp.Expr) -> tuple[exp.Interval, exp.Expr] | None:
    """`INTERVAL 1 DAY * n`: the interval, and how often."""
    if not isinstance(node, exp.Mul):
        return None
    sides = [_unwrapped(node.this), _unwrapped(node.expression)]
    found = [side for side in sides if isinstance(side, exp.Interval)]
    return (found[0], sides[1 - sides.index(found[0])]) if len(found) == 1 else None


def _shifted_often(
    context: Context,
    node: exp.Expr,
    operator: str,
    subject: Expression,
    scaled: tuple[exp.Interval, exp.Expr],
    bind: Callable[[exp.Expr], Expression],
) -> Expression:
    interval, times = scaled
    amount, unit = interval_amount(context, interval)
    count = Literal(amount if operator == "add" else -amount, INT64)
    often = cast(context, node, bind(times), INT64)
    found = moved(context, node, subject, fold(Call("multiply", (often, count), INT64), always), unit)
    return _as_text(context, node, found, unit) if subject.type == STRING else found


def moved(context: Context, node: exp.Expr, subject: Expression, count: Expression, unit: str) -> Expression:
    """Return a date or timestamp and so many units after it; a date stays one if the unit is a day or more."""
    if subject.type == STRING:
        subject = cast(context, node, subject, TIMESTAMP)
    if not subject.type.is_temporal:
        context.fail(node, "TYPE-CLASH", f"an interval can't be added to {subject.type.shown}")
    days = {"day": 1, "week": 7}

    def times(number: int, type_: DataType) -> Expression:
        product = fold(Call("multiply", (count, Literal(number, INT64)), INT64), always)
        return cast(context, node, product, type_)

    if unit in MONTHS:
        return shifted_by(context, node, "add_months", subject, times(MONTHS[unit], INT32))
    if subject.type == DATE and unit in days:
        return add_days(context, node, subject, times(days[unit], INT32))
    if subject.type == DATE:
        subject = cast(context, node, subject, TIMESTAMP)
    return shifted_by(context, node, "add_microseconds", subject, times(MICROSECONDS[unit], INT64))


def day_arithmetic(context: Context, node: exp.Expr, operator: str, left: Expression, right: Expression) -> Expression:
    """Return a date plus or minus a number of days, or the days between two dates."""
    if operator == "add" and right.type == DATE:
        left, right = right, left
    if left.type == DATE and isinstance(right, Literal) and right.type.is_integer and right.value is not None:
        count = int(right.value)
        return _shifted(context, node, left, count if operator == "add" else -count, "day")
    if left.type == DATE and right.type.is_integer:
        days = cast(context, node, right, INT32)
        if operator == "subtract":
            days = context.mark(fold(Call("negate", (days,), INT32), always), node)
        return add_days(context, node, left, days)
    if left.type == right.type == DATE and operator == "subtract":
        return context.mark(fold(Call("date_diff", (left, right), INT32), always), node)
    context.fail(
        node,
        "TYPE-CLASH",
        f"{left.type.shown} and {right.type.shown} can't be combined with {'+' if operator == 'add' else '-'}",
        hint="use INTERVAL, or compare the two values instead",
    )


def add_days(context: Context, node: exp.Expr, subject: Expression, days: Expression) -> Expression:
    """Return a date and some days after it."""
    return shifted_by(context, node, "date_add", subject, days)


def shifted_by(context: Context, node: exp.Expr, function: str, subject: Expression, amount: Expression) -> Expression:
    return context.mark(fold(Call(function, (subject, amount), subject.type), always), node)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def interval_amount(context: Context, interval: exp.Interval) -> tuple[int, str]:
    value = interval.this
    sign = 1
    if isinstance(value, exp.Neg):
        value, sign = value.this, -1
    text = value.name.strip() if isinstance(value, exp.Literal) else ""
    unit = interval.args.get("unit")
    name = unit.name.lower().rstrip("s") if unit is not None else ""
    if text.startswith("-"):
        text, sign = text[1:], -sign
    if not text.isdigit() or len(text) > 9 or (name not in MICROSECONDS and name not in MONTHS):
        context.fail(
            interval,
            "INTERVAL",
            "this interval is not understood",
            reason="an interval is a whole number of one unit, from microseconds to years",
            hint="write INTERVAL 3 MONTH, for example",
        )
    amount = sign * int(text)
    if abs(amount) * MONTHS.get(name, 1) >= 1 << 31 or abs(amount) * MICROSECONDS.get(name, 1) >= 1 << 63:
        context.fail(interval, "INTERVAL", "this interval is too long")
    return amount, name


def _shifted(context: Context, node: exp.Expr, subject: Expression, amount: int, unit: str) -> Expression:
    whole_days = unit in ("day", "week")
    if subject.type == DATE and not whole_days and unit not in MONTHS:
        subject = cast(context, node, subject, TIMESTAMP)
    if unit in MONTHS:
        return shifted_by(context, node, "add_months", subject, Literal(amount * MONTHS[unit], INT32))
    if subject.type == DATE:
        return add_days(context, node, subject, Literal(amount * (7 if unit == "week" else 1), INT32))
    return shifted_by(context, node, "add_microseconds", subject, Literal(amount * MICROSECONDS[unit], INT64))
