"""Intervals as values: literals, and dates and timestamps plus or minus them.

An interval is a number of months or of microseconds, its *length*, and the fields in which it is written. Whatever is
computed with intervals is computed with their lengths.
"""

from __future__ import annotations

import re
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar.coerce import always, cast
from crown.sql.scalar.constants import convert
from crown.sql.scalar.fold import fold
from crown.sql.schema.options import MICROSECONDS
from crown.types import DATE, INT32, INT64, STRING, TIMESTAMP, DataType

MONTHS = {"month": 1, "quarter": 3, "year": 12}
# The field that stands for a unit which is none.
_FIELD = {"quarter": "month", "week": "day", "millisecond": "second", "microsecond": "second"}
_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s+([a-z]+?)s?(?:\s+|$)")


def literal(context: Context, interval: exp.Interval) -> Literal:
    """Return the value of INTERVAL '3' DAY, INTERVAL '1-2' YEAR TO MONTH or INTERVAL '1 day 2 hours'."""
    value, unit = interval.this, interval.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        value, sign = value.this, -1
    if not isinstance(value, exp.Literal):
        _refuse(context, interval)
    text = value.name.strip().lower()
    if isinstance(unit, exp.IntervalSpan):
        found = _with_fields(text, unit)
    else:
        found = _of_parts(text if unit is None else f"{text} {unit.name.lower()}")
    if found is None:
        _refuse(context, interval)
    if sign * int(found.value or 0) not in (INT32 if found.type.is_months else INT64).integers:
        context.fail(interval, "INTERVAL", "this interval is too long")
    return Literal(sign * int(found.value or 0), found.type)


def _refuse(context: Context, interval: exp.Interval) -> NoReturn:
    context.fail(
        interval,
        "INTERVAL",
        "this interval is not understood",
        reason="an interval is written in literal numbers of years and months, or of units from weeks to microseconds",
        hint="write INTERVAL '3' MONTH or INTERVAL '1 02:30:00' DAY TO SECOND, for example",
    )


def _with_fields(text: str, span: exp.IntervalSpan) -> Literal | None:
    type_ = types.interval_type(span.this.name.lower(), span.expression.name.lower())
    return None if type_ is None else convert(Literal(text, STRING), type_)


def _of_parts(text: str) -> Literal | None:
    """Numbers and their units: the type has all their fields."""
    length, type_, rest = 0, types.NULL, text.removeprefix("interval ").lstrip()
    while rest:
        part = _PART.match(rest)
        size = None if part is None else MONTHS.get(part[2]) or MICROSECONDS.get(part[2])
        if part is None or size is None:
            return None
        whole, _, fraction = part[1].partition(".")
        if fraction and (part[2] != "second" or len(fraction) > 9):
            return None
        micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
        length += int(whole) * size + (-micros if whole.startswith("-") else micros)
        field = _FIELD.get(part[2], part[2])
        common = types.common_type(type_, types.interval_type(field, field) or types.NULL)
        if common is None:
            return None
        type_, rest = common, rest[part.end() :]
    return None if type_ == types.NULL else Literal(length, type_)


def length(interval: Expression) -> Expression:
    """Return the months or microseconds of an interval, as an integer."""
    type_ = INT32 if interval.type.is_months else INT64
    if isinstance(interval, Literal):
        return Literal(interval.value, type_)
    if isinstance(interval, Call) and interval.function == "interval_of_length" and interval.arguments[0].type == type_:
        return interval.arguments[0]
    return Call("length_of_interval", (interval,), type_)


def of_length(context: Context, node: exp.Expr, number: Expression, type_: DataType) -> Expression:
    """Return the interval of so many months or microseconds."""
    exact = cast(context, node, number, INT32 if type_.is_months else INT64)
    if isinstance(exact, Literal):
        return Literal(exact.value, type_)
    return context.mark(Call("interval_of_length", (exact,), type_), node)


def shifted(context: Context, node: exp.Expr, operator: str, moment: Expression, interval: Expression) -> Expression:
    """Return a date, a timestamp or the string of one, plus or minus an interval.

    A date stays one if the interval has months or days only. Spark's result for a string is a string.
    """
    subject = cast(context, node, moment, TIMESTAMP) if moment.type == STRING else moment
    if moment.type == STRING and context.is_spark and interval.type.is_months:
        context.fail(
            node, "TYPE-CLASH", "months can't be added to a string", hint="write DATE '...', or cast the string"
        )
    if not subject.type.is_temporal:
        context.fail(node, "TYPE-CLASH", f"an interval can't be added to {subject.type.shown}")

    def signed(amount: Expression) -> Expression:
        return amount if operator == "add" else fold(Call("negate", (amount,), amount.type), always)

    if interval.type.is_months:
        return shifted_by(context, node, "add_months", subject, signed(length(interval)))
    if subject.type == DATE and interval.type == types.INTERVAL_DAY:
        return add_days(context, node, subject, signed(cast(context, node, interval, INT32, explicit=True)))
    if subject.type == DATE:
        subject = cast(context, node, subject, TIMESTAMP)
    found = shifted_by(context, node, "add_microseconds", subject, signed(length(interval)))
    return cast(context, node, found, STRING) if moment.type == STRING and context.is_spark else found


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
    """Return a date plus or minus a number of days, or the time between two dates or timestamps."""
    if operator == "add" and right.type == DATE:
        left, right = right, left
    if left.type == DATE and right.type.is_integer:
        days = cast(context, node, right, INT32)
        if operator == "subtract":
            days = context.mark(fold(Call("negate", (days,), INT32), always), node)
        return add_days(context, node, left, days)
    if operator == "subtract" and all(e.type.is_temporal or e.type in (STRING, types.NULL) for e in (left, right)):
        return _between(context, node, left, right)
    context.fail(
        node,
        "TYPE-CLASH",
        f"{left.type.shown} and {right.type.shown} can't be combined with {'+' if operator == 'add' else '-'}",
        hint="use INTERVAL, or compare the two values instead",
    )


def _between(context: Context, node: exp.Expr, late: Expression, early: Expression) -> Expression:
    """The time between two moments: Spark's of two dates is an interval of days, that of others their number."""
    if any(e.type.is_timestamp for e in (late, early)):
        moments = [cast(context, node, moment, TIMESTAMP) for moment in (late, early)]
        micros = [fold(Call("unix_micros", (moment,), INT64), always) for moment in moments]
        passed = context.mark(fold(Call("subtract", tuple(micros), INT64), always), node)
        return of_length(context, node, passed, types.DAY_TIME)
    dates = tuple(cast(context, node, date, DATE) for date in (late, early))
    days = context.mark(fold(Call("date_diff", dates, INT32), always), node)
    return cast(context, node, days, types.INTERVAL_DAY, explicit=True) if context.is_spark else days


def add_days(context: Context, node: exp.Expr, subject: Expression, days: Expression) -> Expression:
    """Return a date and some days after it."""
    return shifted_by(context, node, "date_add", subject, days)


def shifted_by(context: Context, node: exp.Expr, function: str, subject: Expression, amount: Expression) -> Expression:
    return context.mark(fold(Call(function, (subject, amount), subject.type), always), node)
