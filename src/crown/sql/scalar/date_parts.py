"""Parts of dates and timestamps, and differences of them, where sqlglot has a kind of node for the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar import date_functions, interval_arithmetic, intervals
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast
from crown.sql.schema.options import MICROSECONDS
from crown.types import DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP

_CLOCK: dict[type[exp.Expr], str] = {exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second"}
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{name: name for name in ("quarter", "week", "hour", "minute", "second", "millisecond", "microsecond")},
}
_SUNDAY_IS_ZERO = frozenset({"duckdb", "postgres", "snowflake", "redshift"})
_IN_A_YEAR = {"year": 1, "quarter": 4, "month": 12}
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


def _later(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """Other dialects' `dateadd(unit, n, d)` and `date_sub(d, INTERVAL n unit)`."""
    unit = node.args["unit"].name.lower().rstrip("s") if node.args.get("unit") is not None else "day"
    if unit not in intervals.MONTHS and unit not in MICROSECONDS:
        _refuse_unit(binder, node, "adding to a date")
    count = cast(binder.context, node, binder.bind(node.expression), INT64)
    if isinstance(node, exp.DateSub):
        count = binder.call("negate", [count], INT64, node)
    return intervals.moved(binder.context, node, binder.bind(node.this), count, unit)


def _boundaries(binder: ScalarBinder, node: exp.Expr, unit: str) -> Expression:
    """The number of unit boundaries between two dates, as DuckDB, Snowflake and others count them."""
    late, early = (binder.bind(part) for part in (node.this, node.expression))
    late, early = (e if e.type.is_temporal else cast(binder.context, node, e, TIMESTAMP) for e in (late, early))
    if unit in _IN_A_YEAR:
        parts = [_number_of(binder, node, unit, moment) for moment in (late, early)]
        return binder.call("subtract", parts, INT64, node)
    if unit not in MICROSECONDS or (unit == "week" and binder.context.dialect != "snowflake"):
        _refuse_unit(binder, node, "the difference of dates")
    micros = []
    for moment in (late, early):
        begun = [Literal(unit, STRING), cast(binder.context, node, moment, TIMESTAMP)]
        micros.append(binder.call("unix_micros", [binder.call("date_trunc", begun, TIMESTAMP, node)], INT64, node))
    between = binder.call("subtract", micros, INT64, node)
    return binder.call("div", [between, Literal(MICROSECONDS[unit], INT64)], INT64, node)


def _number_of(binder: ScalarBinder, node: exp.Expr, unit: str, moment: Expression) -> Expression:
    """The number of a year, quarter or month, from the year 0 on."""
    year = cast(binder.context, node, binder.call("year", [moment], INT32, node), INT64)
    if unit == "year":
        return year
    part = cast(binder.context, node, binder.call(unit, [moment], INT32, node), INT64)
    before = binder.call("multiply", [year, Literal(_IN_A_YEAR[unit], INT64)], INT64, node)
    return binder.call("add", [before, part], INT64, node)


def _date_add(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        _refuse_unit(binder, node, "adding to a date")
    days = cast(binder.context, node, binder.bind(node.expression), INT32)
    return intervals.add_days(binder.context, node, _date(binder, node.this), days)


def _date_diff(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        return _boundaries(binder, node, unit.name.lower().rstrip("s"))
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


def date_part(binder: ScalarBinder, node: exp.Expr, part: str, subject: Expression) -> Expression:
    if not subject.type.is_temporal:
        subject = cast(binder.context, node, subject, DATE)
    return binder.call(part, [subject], INT32, node)


def day_of_week(binder: ScalarBinder, node: exp.Expr, subject: Expression) -> Expression:
    """1 for Sunday; 0 in dialects that count so."""
    from_one = date_part(binder, node, "dayofweek", subject)
    if binder.context.is_spark or binder.context.dialect == "mysql":
        return from_one
    if binder.context.dialect not in _SUNDAY_IS_ZERO:
        binder.context.fail(
            node,
            "UNKNOWN-FUNCTION",
            "the day of the week is not supported in this dialect",
            reason="dialects start the week on different days",
            hint="use EXTRACT(ISODOW FROM ...), which is 1 for Monday",
        )
    return binder.call("subtract", [from_one, Literal(1, INT32)], INT32, node)


def clock_part(binder: ScalarBinder, node: exp.Expr, part: str, subject: Expression) -> Expression:
    if not subject.type.is_timestamp and subject.type != types.TIME:
        subject = cast(binder.context, node, subject, TIMESTAMP)
    return binder.call(part, [subject], INT32, node)


def extract(binder: ScalarBinder, node: exp.Expr, unit: str, argument: exp.Expr) -> Expression:
    """EXTRACT: the seconds with their fraction."""
    subject = binder.bind(argument)
    if unit == "epoch" and not binder.context.is_spark:
        return _epoch(binder, node, subject)
    if subject.type.is_interval:
        return interval_arithmetic.part(binder, node, unit, subject)
    if unit in _PARTS:
        return date_part(binder, node, _PARTS[unit], subject)
    if unit in ("dayofweek", "dow"):
        return day_of_week(binder, node, subject)
    if unit in ("dayofweek_iso", "dow_iso", "isodow"):
        monday = date_part(binder, node, "weekday", subject)
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
        return clock_part(binder, node, part, subject)
    if not subject.type.is_timestamp:
        subject = cast(binder.context, node, subject, TIMESTAMP)
    return binder.call("extract_second", [subject], types.decimal(8, 6), node)


def _epoch(binder: ScalarBinder, node: exp.Expr, subject: Expression) -> Expression:
    """The seconds since 1970, or of an interval."""
    if subject.type.is_interval and not subject.type.is_months:
        micros = intervals.length(subject)
    else:
        moment = cast(binder.context, node, subject, TIMESTAMP)
        micros = binder.call("unix_micros", [moment], INT64, node)
    exact = cast(binder.context, node, micros, FLOAT64)
    return binder.call("divide", [exact, Literal(1e6, FLOAT64)], FLOAT64, node)


def _extract(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return extract(binder, node, node.this.name.lower(), node.expression)


def named_part(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """`date_part('hour', t)`."""
    if len(parts) != 2 or not isinstance(parts[0], exp.Literal):
        binder.context.fail(node, "UNKNOWN-FUNCTION", "date_part takes a literal unit and a date or timestamp")
    return extract(binder, node, parts[0].name.lower(), parts[1])


def _clock(binder: ScalarBinder, node: exp.Expr) -> Expression:
    return clock_part(binder, node, _CLOCK[type(node)], binder.bind(node.this))


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
    exp.DateAdd: _later,
    exp.DateSub: _later,
    exp.DateDiff: _date_diff,
    exp.TimestampAdd: _timestamp_add,
    exp.TimestampDiff: _timestamp_diff,
    exp.Extract: _extract,
    **dict.fromkeys(_CLOCK, _clock),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}
