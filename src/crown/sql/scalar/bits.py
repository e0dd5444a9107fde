"""Whole numbers: division without a fraction, bits and shifts, with Spark's types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.interval_arithmetic import whole_quotient
from crown.types import BOOLEAN, INT32, INT64, STRING


def _integers(binder: ScalarBinder, node: exp.Expr, values: Sequence[Expression], name: str) -> list[Expression]:
    """Return the arguments as integers of their common type; a string is read as a bigint."""
    for value in values:
        if value.type not in (*types.INTEGERS, types.NULL, STRING):
            binder.context.fail(
                node,
                "TYPE-CLASH",
                f"{name} takes integers, not {value.type.shown}",
                hint="cast it to bigint",
            )
    common = types.NULL
    for value in values:
        common = types.common_type(common, INT64 if value.type == STRING else value.type) or INT64
    common = INT32 if common == types.NULL else common
    return [cast(binder.context, node, value, common) for value in values]


def _count(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], name: str, wanted: int) -> None:
    if len(parts) != wanted:
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}")


def _same_type(function: str, name: str, count: int) -> Special:
    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        _count(binder, node, parts, name, count)
        values = _integers(binder, node, [binder.bind(part) for part in parts], name)
        return binder.call(function, values, values[0].type, node)

    return bind


def _div(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "DIV", 2)
    left, right = (binder.bind(part) for part in parts)
    if left.type.is_interval or right.type.is_interval:
        return whole_quotient(binder, node, left, right)
    numbers = _integers(binder, node, [left, right], "DIV")
    return binder.call("div", [cast(binder.context, node, number, INT64) for number in numbers], INT64, node)


def _pmod(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "pmod", 2)
    left, right = (binder.bind(part) for part in parts)
    found = types.arithmetic_types("modulo", left.type, right.type)
    if found is None or found[1].is_decimal:
        binder.context.fail(
            node,
            "TYPE-CLASH",
            f"pmod of {left.type.shown} and {right.type.shown} is not supported",
            hint="cast both to bigint or double",
        )
    type_ = found[1]
    values = [cast(binder.context, node, value, type_) for value in (left, right)]
    return binder.call("pmod", values, type_, node)


def _shift(function: str) -> Special:
    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        _count(binder, node, parts, function, 2)
        (subject,) = _integers(binder, node, [binder.bind(parts[0])], function)
        type_ = subject.type if subject.type == INT64 else INT32
        by = cast(binder.context, node, binder.bind(parts[1]), INT32)
        return binder.call(function, [cast(binder.context, node, subject, type_), by], type_, node)

    return bind


def _bit_count(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "bit_count", 1)
    value = binder.bind(parts[0])
    if value.type != BOOLEAN:
        (value,) = _integers(binder, node, [value], "bit_count")
    return binder.call("bit_count", [value], INT32, node)


SPECIAL: dict[str, Special] = {
    "div": _div,
    "pmod": _pmod,
    "bit_and": _same_type("bit_and", "&", 2),
    "bit_or": _same_type("bit_or", "|", 2),
    "bit_xor": _same_type("bit_xor", "^", 2),
    "bit_not": _same_type("bit_not", "~", 1),
    "bit_count": _bit_count,
    **{name: _shift(name) for name in ("shiftleft", "shiftright", "shiftrightunsigned")},
}
