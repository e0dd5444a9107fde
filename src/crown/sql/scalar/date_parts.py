"""Parts of dates and timestamps, and differences of them, where sqlglot has a kind of node for the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar import date_functions, intervals
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast
from crown.types import DATE, INT32, STRING, TIMESTAMP

_CLOCK: dict[type[exp.Expr], str] = {exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second"}
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{name: name for name in ("quarter", "week", "hour", "minute", "second", "millisecond", "microsecond")},
}
_DATE_UNITS = ("year", "quarter", "month", "week")
_PARTS = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    "doy": "dayofyear",
    "yearofweek": "yearofweek",
}
_CLOCK_PARTS = {
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "second"),
}


def _date(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return cast(binder.context, node, binder.bind(node), DATE)


def _refuse_unit(binder: ScalarBinder, node: exp.Expr, what: str) -> NoReturn:
    binder.context.fail(
        node,
        "INTERVAL",
        f"{what} in this unit is not supported",
        reason="dialects count units between dates in different ways",
        hint="use days, or Spark's timestampadd and timestampdiff",
    )


def _date_add(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        _refuse_unit(binder, node, "adding to a date")
    days = cast(binder.context, node, binder.bind(node.expression), INT32)
    return intervals.add_days(binder.context, node, _date(binder, node.this), days)


def _date_diff(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        _refuse_unit(binder, node, "the difference of dates")
    return binder.call("date_diff", [_date(binder, node.this), _date(binder, node.expression)], INT32, node)


def _timestamp_add(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is None:
        _refuse_unit(binder, node, "adding to a timestamp")
    return date_functions.add_units(binder, node, unit, node.expression, node.this)


def _timestamp_diff(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is None:
        _refuse_unit(binder, node, "the difference of timestamps")
    return date_functions.units_between(binder, node, unit, node.expression, node.this)


def date_part(binder: ScalarBinder, node: exp.Expr, part: str, argument: exp.Expr) -> Expression:
    subject = binder.bind(argument)
    if not subject.type.is_temporal:
        subject = cast(binder.context, node, subject, DATE)
    return binder.call(part, [subject], INT32, node)


def clock_part(binder: ScalarBinder, node: exp.Expr, part: str, argument: exp.Expr) -> Expression:
    subject = binder.bind(argument)
    if not subject.type.is_timestamp and subject.type != types.TIME:
        subject = cast(binder.context, node, subject, TIMESTAMP)
    return binder.call(part, [subject], INT32, node)


def extract(binder: ScalarBinder, node: exp.Expr, unit: str, argument: exp.Expr) -> Expression:
    """EXTRACT: the seconds with their fraction."""
    if unit in _PARTS:
        return date_part(binder, node, _PARTS[unit], argument)
    if binder.context.is_spark and unit in ("dayofweek", "dow"):
        return date_part(binder, node, "dayofweek", argument)
    if unit in ("dayofweek_iso", "dow_iso", "isodow"):
        monday = date_part(binder, node, "weekday", argument)
        return binder.call("add", [monday, Literal(1, INT32)], INT32, node)
    part = _CLOCK_PARTS.get(unit)
    if part is None:
        binder.context.fail(
            node,
            "UNKNOWN-FUNCTION",
            f"EXTRACT of {unit or 'this'} is not supported",
            hint="use year, quarter, month, week, day, doy, hour, minute or second",
        )
    if part != "second":
        return clock_part(binder, node, part, argument)
    subject = binder.bind(argument)
    if not subject.type.is_timestamp:
        subject = cast(binder.context, node, subject, TIMESTAMP)
    return binder.call("extract_second", [subject], types.decimal(8, 6), node)


def _extract(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return extract(binder, node, node.this.name.lower(), node.expression)


def named_part(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`date_part('hour', t)`."""
    if len(parts) != 2 or not isinstance(parts[0], exp.Literal):
        binder.context.fail(node, "UNKNOWN-FUNCTION", "date_part takes a literal unit and a date or timestamp")
    return extract(binder, node, parts[0].name.lower(), parts[1])


def _clock(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return clock_part(binder, node, _CLOCK[type(node)], node.this)


def _truncated(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """Spark's `date_trunc` returns a timestamp, its `trunc` a date."""
    given = node.args["unit"].name.lower() if node.args.get("unit") is not None else ""
    unit = _UNITS.get(given)
    type_ = DATE if isinstance(node, exp.DateTrunc) and binder.context.is_spark else TIMESTAMP
    if unit is None or node.args.get("zone") is not None or (type_ == DATE and unit not in _DATE_UNITS):
        binder.context.fail(
            node,
            "INTERVAL",
            f"a {type_} can't be truncated to {given or 'this'}",
            reason="the result would be NULL for every row",
            hint=f"use {', '.join(_DATE_UNITS if type_ == DATE else dict.fromkeys(_UNITS.values()))}",
        )
    subject = cast(binder.context, node, binder.bind(node.this), type_)
    return binder.call("date_trunc", [Literal(unit, STRING), subject], type_, node)


HANDLERS: dict[type, Handler] = {
    exp.TsOrDsAdd: _date_add,
    exp.DateDiff: _date_diff,
    exp.TimestampAdd: _timestamp_add,
    exp.TimestampDiff: _timestamp_diff,
    exp.Extract: _extract,
    **dict.fromkeys(_CLOCK, _clock),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}
