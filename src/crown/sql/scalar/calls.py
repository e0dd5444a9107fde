"""Functions whose arguments decide their type: rounding, ends of strings, parts of dates and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar import dates, times
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast
from crown.types import BOOLEAN, DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP, DataType

_MAX_DIGITS = 38
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


def number(binder: ScalarBinder, node: exp.Expr) -> Expression:
    subject = binder.bind(node)
    if subject.type in (types.NULL, STRING):
        return cast(binder.context, node, subject, FLOAT64)
    if not subject.type.is_numeric:
        binder.context.fail(node, "TYPE-CLASH", f"expected a number, not {subject.type.shown}")
    return subject


def _round(binder: ScalarBinder, node: exp.Expr) -> Expression:
    if node.args.get("truncate") is not None:
        binder.context.fail(
            node, "UNKNOWN-FUNCTION", "round with truncation is not supported", hint="use floor or ceil"
        )
    digits = node.args.get("decimals")
    return rounded(binder, node, [node.this, *([digits] if digits is not None else [])], "round")


def bround(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    return rounded(binder, node, parts, "bround")


def rounded(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], function: str) -> Expression:
    if not 1 <= len(parts) <= 2:
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{function} takes 1 or 2 arguments")
    subject = number(binder, parts[0])
    digits = binder.bind(parts[1]) if len(parts) == 2 else Literal(0, INT32)
    literal = isinstance(digits, Literal) and digits.type.is_integer and digits.value is not None
    if not literal or not isinstance(digits, Literal) or abs(int(digits.value or 0)) > _MAX_DIGITS:
        binder.context.fail(
            node,
            "PATTERN",
            f"{function} takes a literal number of digits from -{_MAX_DIGITS} to {_MAX_DIGITS}",
            reason="the type of the result depends on it",
        )
    count = int(digits.value or 0)
    if subject.type.is_integer and count >= 0:
        return subject
    return binder.call(function, [subject, Literal(count, INT32)], _rounded_type(subject.type, count), node)


def _rounded_type(type_: DataType, digits: int) -> DataType:
    """Rounding may carry into one more digit before the point."""
    if (parts := type_.as_decimal) is None or not type_.is_decimal:
        return type_
    precision, scale = parts
    whole, kept = precision - scale + 1, max(0, min(scale, digits))
    return types.DataType(f"decimal({min(_MAX_DIGITS, max(whole, 1 - digits) + kept)},{kept})")


def _whole(binder: ScalarBinder, node: exp.Expr) -> Expression:
    function = "floor" if isinstance(node, exp.Floor) else "ceil"
    if node.args.get("decimals") is not None or node.args.get("to") is not None:
        binder.context.fail(
            node, "UNKNOWN-FUNCTION", f"{function} to a number of digits is not supported", hint="use round"
        )
    subject = number(binder, node.this)
    if subject.type.is_integer:
        return cast(binder.context, node, subject, INT64)
    if not subject.type.is_decimal:
        return binder.call(function, [subject], INT64, node)
    return binder.call(function, [subject], _rounded_type(subject.type, 0), node)


def _logarithm(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """With one argument it is that of base 10: where it is the natural one, sqlglot says `Ln`."""
    parts = [node.this] if node.expression is None else [node.this, node.expression]
    values = [cast(binder.context, part, number(binder, part), FLOAT64) for part in parts]
    return binder.call("log" if len(parts) == 2 else "log10", values, FLOAT64, node)


def _padded(binder: ScalarBinder, node: exp.Expr) -> Expression:
    fill = node.args.get("fill_pattern")
    pad = binder.string(fill) if fill is not None else Literal(" ", STRING)
    length = cast(binder.context, node, binder.bind(node.expression), INT32)
    function = "lpad" if node.args.get("is_left") else "rpad"
    return binder.call(function, [binder.string(node.this), length, pad], STRING, node)


def _end(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`left` and `right`: SUBSTRING from the beginning, or from as many characters before the end."""
    text, count = binder.string(node.this), cast(binder.context, node, binder.bind(node.expression), INT32)
    if isinstance(node, exp.Left):
        return binder.call("substring", [text, Literal(1, INT32), count], STRING, node)
    none = binder.call("le", [count, Literal(0, INT32)], BOOLEAN, node)
    start = binder.call("negate", [count], INT32, node)
    end = binder.call("substring", [text, start], STRING, node)
    absent = binder.call("is_null", [text], BOOLEAN, node)
    no_text = Literal(None, STRING)
    return binder.call("case", [absent, no_text, none, Literal("", STRING), end], STRING, node)


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
    return dates.add_days(binder.context, node, _date(binder, node.this), days)


def _date_diff(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        _refuse_unit(binder, node, "the difference of dates")
    return binder.call("date_diff", [_date(binder, node.this), _date(binder, node.expression)], INT32, node)


def _timestamp_add(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is None:
        _refuse_unit(binder, node, "adding to a timestamp")
    return times.add_units(binder, node, unit, node.expression, node.this)


def _timestamp_diff(binder: ScalarBinder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is None:
        _refuse_unit(binder, node, "the difference of timestamps")
    return times.units_between(binder, node, unit, node.expression, node.this)


def date_part(binder: ScalarBinder, node: exp.Expr, part: str, argument: exp.Expr) -> Expression:
    subject = binder.bind(argument)
    if not subject.type.is_temporal:
        subject = cast(binder.context, node, subject, DATE)
    return binder.call(part, [subject], INT32, node)


def clock_part(binder: ScalarBinder, node: exp.Expr, part: str, argument: exp.Expr) -> Expression:
    subject = binder.bind(argument)
    if not subject.type.is_timestamp:
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
    exp.Round: _round,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    exp.Log: _logarithm,
    exp.Pad: _padded,
    exp.Left: _end,
    exp.Right: _end,
    exp.TsOrDsAdd: _date_add,
    exp.DateDiff: _date_diff,
    exp.TimestampAdd: _timestamp_add,
    exp.TimestampDiff: _timestamp_diff,
    exp.Extract: _extract,
    **dict.fromkeys(_CLOCK, _clock),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}
