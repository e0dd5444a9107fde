"""Rounding and logarithms, where the argument decides the type, or the number of arguments the function."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast, compare
from crown.types import FLOAT64, INT32, INT64, STRING, DataType

_MAX_DIGITS = 38
# The decimals that Spark reads other numbers as.
_DECIMALS = {
    types.INT8: types.decimal(3, 0),
    types.INT16: types.decimal(5, 0),
    INT32: types.decimal(10, 0),
    INT64: types.decimal(20, 0),
    types.FLOAT32: types.decimal(14, 7),
    FLOAT64: types.decimal(30, 15),
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
    count = _literal_digits(binder, node, digits, function)
    if subject.type.is_integer and count >= 0:
        return subject
    return binder.call(function, [subject, Literal(count, INT32)], _rounded_type(subject.type, count), node)


def _literal_digits(binder: ScalarBinder, node: exp.Expr, digits: Expression, function: str) -> int:
    literal = isinstance(digits, Literal) and digits.type.is_integer and digits.value is not None
    if not literal or not isinstance(digits, Literal) or abs(int(digits.value or 0)) > _MAX_DIGITS:
        binder.context.fail(
            node,
            "PATTERN",
            f"{function} takes a literal number of digits from -{_MAX_DIGITS} to {_MAX_DIGITS}",
            reason="the type of the result depends on it",
        )
    return int(digits.value or 0)


def _rounded_type(type_: DataType, digits: int) -> DataType:
    """Rounding may carry into one more digit before the point."""
    if (parts := type_.as_decimal) is None or not type_.is_decimal:
        return type_
    precision, scale = parts
    whole, kept = precision - scale + 1, max(0, min(scale, digits))
    return types.DataType(f"decimal({min(_MAX_DIGITS, max(whole, 1 - digits) + kept)},{kept})")


def _whole(binder: ScalarBinder, node: exp.Expr) -> Expression:
    function = "floor" if isinstance(node, exp.Floor) else "ceil"
    if node.args.get("to") is not None:
        binder.context.fail(
            node, "UNKNOWN-FUNCTION", f"{function} to a part of a date is not supported", hint="use date_trunc"
        )
    if node.args.get("decimals") is not None:
        return _whole_to_digits(binder, node, function, node.args["decimals"])
    subject = number(binder, node.this)
    if subject.type.is_integer:
        return cast(binder.context, node, subject, INT64)
    if not subject.type.is_decimal:
        return binder.call(function, [subject], INT64, node)
    return binder.call(function, [subject], _rounded_type(subject.type, 0), node)


def _whole_to_digits(binder: ScalarBinder, node: exp.Expr, function: str, digits: exp.Expr) -> Expression:
    """The nearest number that is rounded, or the one after it. Spark computes with decimals."""
    subject = number(binder, node.this)
    if not subject.type.is_decimal:
        subject = cast(binder.context, node, subject, _DECIMALS[subject.type])
    count = _literal_digits(binder, node, binder.bind(digits), function)
    type_ = _rounded_type(subject.type, count)
    precision, scale = type_.as_decimal or (0, 0)
    if precision == _MAX_DIGITS:
        binder.context.fail(
            node,
            "TYPE-CLASH",
            f"{function} to {count} digits is not supported for {subject.type.shown}",
            reason=f"the result may have more than {_MAX_DIGITS} digits",
            hint="cast the argument to a decimal with fewer digits",
        )
    rounded = binder.call("round", [subject, Literal(count, INT32)], type_, node)
    if count >= (subject.type.as_decimal or (0, 0))[1]:
        return rounded
    wide = types.decimal(precision + 1, scale)
    step = Literal(f"{10 ** -min(count, 0)}" if count <= 0 else f"0.{'0' * (count - 1)}1", type_)
    operator, beyond = ("subtract", "gt") if function == "floor" else ("add", "lt")
    next_ = cast(binder.context, node, binder.call(operator, [rounded, step], wide, node), type_)
    passed = compare(binder.context, node, beyond, rounded, subject)
    return binder.call("case", [passed, next_, rounded], type_, node)


def _logarithm(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """With one argument it is that of base 10: where it is the natural one, sqlglot says `Ln`."""
    parts = [node.this] if node.expression is None else [node.this, node.expression]
    values = [cast(binder.context, part, number(binder, part), FLOAT64) for part in parts]
    return binder.call("log" if len(parts) == 2 else "log10", values, FLOAT64, node)


HANDLERS: dict[type, Handler] = {
    exp.Round: _round,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    exp.Log: _logarithm,
}
