"""Functions of the kernel beside the operators: numbers, strings, dates and times, with Spark's result types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar import dates
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.functions import host_call

if TYPE_CHECKING:
    from crown.sql.scalar.binder import Binder

Handler = Callable[["Binder", exp.Expr], Expression]

_MAX_DIGITS = 38
_FLOAT: dict[type[exp.Expr], str] = {
    exp.Sqrt: "sqrt",
    exp.Exp: "exp",
    exp.Ln: "ln",
    exp.Pow: "power",
    exp.Sign: "sign",
}
_SEARCH: dict[type[exp.Expr], str] = {
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
}
_CLOCK: dict[type[exp.Expr], str] = {exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second"}
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{name: name for name in ("quarter", "week", "hour", "minute", "second")},
}
_DATE_UNITS = ("year", "quarter", "month", "week")


def _number(binder: Binder, node: exp.Expr) -> Expression:
    subject = binder.bind(node)
    if subject.type in (types.NULL, "string"):
        return cast(binder.context, node, subject, "float64")
    if not types.is_numeric(subject.type):
        binder.context.fail(node, "TYPE-CLASH", f"a number is needed here, not {types.spark_name(subject.type)}")
    return subject


def _round(binder: Binder, node: exp.Expr) -> Expression:
    subject = _number(binder, node.this)
    digits = binder.bind(node.args["decimals"]) if node.args.get("decimals") is not None else Literal(0, "int32")
    if not isinstance(digits, Literal) or digits.type not in types.INTEGERS or digits.value is None:
        return host_call(binder.context, node, binder.bind)
    count = int(digits.value)
    if abs(count) > _MAX_DIGITS or node.args.get("truncate") is not None:
        return host_call(binder.context, node, binder.bind)
    if subject.type in types.INTEGERS and count >= 0:
        return subject
    return binder.call("round", [subject, Literal(count, "int32")], _rounded_type(subject.type, count), node)


def _rounded_type(type_: str, digits: int) -> str:
    """Rounding may carry into one more digit before the point."""
    if not types.is_decimal(type_):
        return type_
    precision, scale = types.decimal_parts(type_) or (_MAX_DIGITS, 0)
    whole, kept = precision - scale + 1, max(0, min(scale, digits))
    return f"decimal({min(_MAX_DIGITS, max(whole, 1 - digits) + kept)},{kept})"


def _whole(binder: Binder, node: exp.Expr) -> Expression:
    function = "floor" if isinstance(node, exp.Floor) else "ceil"
    if node.args.get("decimals") is not None or node.args.get("to") is not None:
        binder.context.fail(
            node, "UNKNOWN-FUNCTION", f"{function} to a number of digits is not known", hint="use round"
        )
    subject = _number(binder, node.this)
    if subject.type in types.INTEGERS:
        return cast(binder.context, node, subject, "int64")
    if not types.is_decimal(subject.type):
        return binder.call(function, [subject], "int64", node)
    if subject.type.endswith(",0)"):
        return subject
    return binder.call(function, [subject], _rounded_type(subject.type, 0), node)


def _float(binder: Binder, node: exp.Expr) -> Expression:
    parts = [node.this, node.expression] if isinstance(node, exp.Pow) else [node.this]
    values = [cast(binder.context, part, _number(binder, part), "float64") for part in parts]
    return binder.call(_FLOAT[type(node)], values, "float64", node)


def _search(binder: Binder, node: exp.Expr) -> Expression:
    return binder.call(_SEARCH[type(node)], [binder.string(node.this), binder.string(node.expression)], "boolean", node)


def _replace(binder: Binder, node: exp.Expr) -> Expression:
    by = node.args.get("replacement")
    parts = [binder.string(node.this), binder.string(node.expression)]
    parts.append(binder.string(by) if by is not None else Literal("", "string"))
    return binder.call("replace", parts, "string", node)


def _end(binder: Binder, node: exp.Expr) -> Expression:
    """`left` and `right`: SUBSTRING from the beginning, or from as many characters before the end."""
    text, count = binder.string(node.this), cast(binder.context, node, binder.bind(node.expression), "int32")
    if isinstance(node, exp.Left):
        return binder.call("substring", [text, Literal(1, "int32"), count], "string", node)
    positive = binder.call("gt", [count, Literal(0, "int32")], "boolean", node)
    start = binder.call("negate", [count], "int32", node)
    end = binder.call("substring", [text, start, count], "string", node)
    absent = binder.call("is_null", [count], "boolean", node)
    empty = binder.call("case", [absent, Literal(None, "string"), Literal("", "string")], "string", node)
    return binder.call("case", [positive, end, empty], "string", node)


def _date(binder: Binder, node: exp.Expr) -> Expression:
    return cast(binder.context, node, binder.bind(node), "date")


def _date_add(binder: Binder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        return host_call(binder.context, node, binder.bind)
    days = cast(binder.context, node, binder.bind(node.expression), "int32")
    return dates.add_days(binder.context, node, _date(binder, node.this), days)


def _date_diff(binder: Binder, node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() != "day":
        return host_call(binder.context, node, binder.bind)
    return binder.call("date_diff", [_date(binder, node.this), _date(binder, node.expression)], "int32", node)


def clock_part(binder: Binder, node: exp.Expr, part: str, argument: exp.Expr) -> Expression:
    subject = binder.bind(argument)
    if subject.type not in ("timestamp", "timestamp_ntz"):
        subject = cast(binder.context, node, subject, "timestamp")
    return binder.call(part, [subject], "int32", node)


def _clock(binder: Binder, node: exp.Expr) -> Expression:
    return clock_part(binder, node, _CLOCK[type(node)], node.this)


def _truncated(binder: Binder, node: exp.Expr) -> Expression:
    """Spark's `date_trunc` gives a timestamp, its `trunc` a date."""
    unit = _UNITS.get(node.args["unit"].name.lower()) if node.args.get("unit") is not None else None
    type_ = "date" if isinstance(node, exp.DateTrunc) and binder.context.is_spark else "timestamp"
    if unit is None or node.args.get("zone") is not None or (type_ == "date" and unit not in _DATE_UNITS):
        return host_call(binder.context, node, binder.bind)
    subject = cast(binder.context, node, binder.bind(node.this), type_)
    return binder.call("date_trunc", [Literal(unit, "string"), subject], type_, node)


HANDLERS: dict[type, Handler] = {
    exp.Round: _round,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    **dict.fromkeys(_FLOAT, _float),
    **dict.fromkeys(_SEARCH, _search),
    exp.Replace: _replace,
    exp.Left: _end,
    exp.Right: _end,
    exp.TsOrDsAdd: _date_add,
    exp.DateDiff: _date_diff,
    **dict.fromkeys(_CLOCK, _clock),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
}
