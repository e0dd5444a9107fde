"""Functions that are shorthands for other expressions: each is expanded and bound as such."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.types import NULL, STRING, DataType

_EPOCH = "1970-01-01 00:00:00Z"
Writer = Callable[..., exp.Expr]


def _decode(subject: exp.Expr, *rest: exp.Expr) -> exp.Expr:
    """The result after the first value that equals the subject, NULL included."""
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    ifs = [exp.If(this=exp.NullSafeEQ(this=subject.copy(), expression=v), true=r) for v, r in pairs]
    return exp.Case(ifs=ifs, default=rest[-1] if len(rest) % 2 else None)


def _not_a_number(value: exp.Expr, other: exp.Expr) -> exp.Expr:
    value, other = exp.cast(value, "double"), exp.cast(other, "double")
    is_nan = exp.Anonymous(this="isnan", expressions=[value.copy()])
    return exp.Case(ifs=[exp.If(this=is_nan, true=other)], default=value)


def _after_epoch(micros: int) -> Writer:
    def write(count: exp.Expr) -> exp.Expr:
        number = exp.Mul(this=exp.cast(count, "bigint"), expression=exp.Literal.number(micros))
        parts = [exp.Var(this="MICROSECOND"), exp.paren(number), exp.cast(exp.Literal.string(_EPOCH), "timestamp")]
        return exp.Anonymous(this="timestampadd", expressions=parts)

    return write


def _shown_as(pattern: str) -> Writer:
    return lambda day: exp.Anonymous(this="date_format", expressions=[day, exp.Literal.string(pattern)])


def _constant(value: float) -> Writer:
    return lambda: exp.cast(exp.Literal.string(repr(value)), "double")


# What each is short for, with the least and the greatest number of arguments.
WRITTEN: Mapping[str, tuple[Writer, int, int]] = {
    "charindex": (lambda *parts: exp.Anonymous(this="locate", expressions=list(parts)), 2, 3),
    "dayname": (_shown_as("E"), 1, 1),
    "decode": (_decode, 3, 255),
    "e": (_constant(math.e), 0, 0),
    "equal_null": (lambda one, other: exp.NullSafeEQ(this=one, expression=other), 2, 2),
    "iff": (lambda test, one, other: exp.If(this=test, true=one, false=other), 3, 3),
    "mid": (lambda *parts: exp.Substring(**dict(zip(("this", "start", "length"), parts, strict=False))), 2, 3),
    "monthname": (_shown_as("MMM"), 1, 1),
    "nanvl": (_not_a_number, 2, 2),
    "nullifzero": (lambda value: exp.Nullif(this=value, expression=exp.Literal.number(0)), 1, 1),
    "pi": (_constant(math.pi), 0, 0),
    "timestamp_micros": (_after_epoch(1), 1, 1),
    "timestamp_millis": (_after_epoch(1000), 1, 1),
    "timestamp_seconds": (_after_epoch(1_000_000), 1, 1),
    "try_divide": (
        lambda one, other: exp.Div(this=one, expression=exp.Nullif(this=other, expression=exp.Literal.number(0))),
        2,
        2,
    ),
    "week": (lambda day: exp.Anonymous(this="weekofyear", expressions=[day]), 1, 1),
    "zeroifnull": (lambda value: exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]), 1, 1),
}


def _special(name: str) -> Special:
    writer, least, most = WRITTEN[name]

    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        if not least <= len(parts) <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            binder.context.fail(
                node,
                "UNKNOWN-FUNCTION",
                f"{name} takes {expected} argument{'' if expected == '1' else 's'}",
                hint="see docs/sql.md",
            )
        return binder.bind(writer(*(part.copy() for part in parts)))

    return bind


def _text_of_decode(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """For other results, Spark has its own rules to find the type."""
    found = _special("decode")(binder, node, parts)
    if found.type != STRING:
        binder.context.fail(
            node,
            "UNKNOWN-FUNCTION",
            "decode is only supported with results that are strings",
            reason=f"Spark does not return a {found.type.shown} for these",
            hint="write CASE",
        )
    return found


def _type_of(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """The name of the type, whatever the value."""
    if len(parts) != 1 or not binder.context.is_spark:
        binder.context.fail(node, "UNKNOWN-FUNCTION", "typeof takes one value, in Spark's dialect")
    return Literal(_name_of(binder.bind(parts[0]).type), STRING)


def _name_of(type_: DataType) -> str:
    """The type as Spark writes it."""
    if type_.element is not None:
        return f"array<{_name_of(type_.element)}>"
    if type_.entry is not None:
        return f"map<{','.join(map(_name_of, type_.entry))}>"
    if type_.fields:
        return f"struct<{','.join(f'{name}:{_name_of(field)}' for name, field in type_.fields)}>"
    return "void" if type_ == NULL else type_.sql_name.lower()


def _seconds_after_epoch(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if len(parts) == 1:
        type_ = binder.bind(parts[0]).type
        if not type_.is_integer and type_ != NULL:
            binder.context.fail(
                node,
                "TYPE-CLASH",
                f"timestamp_seconds is only supported for integers, not {type_.shown}",
                hint="use timestamp_micros(CAST(x * 1000000 AS BIGINT))",
            )
    return _special("timestamp_seconds")(binder, node, parts)


SPECIAL: dict[str, Special] = {
    **{name: _special(name) for name in WRITTEN},
    "timestamp_seconds": _seconds_after_epoch,
    "decode": _text_of_decode,
    "typeof": _type_of,
}
NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.DecodeCase: ("decode", ("expressions",)),
    exp.Pi: ("pi", ()),
    exp.Typeof: ("typeof", ("this",)),
    exp.Nanvl: ("nanvl", ("this", "expression")),
    exp.EqualNull: ("equal_null", ("this", "expression")),
    exp.SafeDivide: ("try_divide", ("this", "expression")),
    exp.Monthname: ("monthname", ("this",)),
    exp.Dayname: ("dayname", ("this",)),
    exp.Week: ("week", ("this",)),
}
