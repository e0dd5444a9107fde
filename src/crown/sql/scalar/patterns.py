"""Regular expressions and time patterns: literals that the kernel compiles, and rejects if Java may differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown.errors import CrownError
from crown.ir.expression import Call, Expression, Literal
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.constants import evaluate
from crown.types import BOOLEAN, INT32, STRING, TIMESTAMP
from crown.wording import counted

DEFAULT_TIME = "yyyy-MM-dd HH:mm:ss"
# What other dialects' time patterns are to sqlglot, in Spark's letters.
_STRFTIME = {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss", "%f": "SSSSSS"}


def checked(
    binder: ScalarBinder, node: exp.Expr, function: str, subject: Expression, literals: list[Expression]
) -> Call:
    """A call with patterns that the kernel takes: tried here, so that a bad one is found when the query is planned."""
    sample = Literal(0, TIMESTAMP) if function == "date_format" else Literal("", STRING)
    type_ = {"rlike": BOOLEAN, "to_timestamp": TIMESTAMP}.get(function, STRING)
    try:
        evaluate(Call(function, (sample, *literals), type_))
    except CrownError as error:
        if error.code in ("CROWN-PLAN-REGEX", "CROWN-PLAN-TIME-PATTERN"):
            binder.context.fail(
                node,
                "PATTERN",
                error.message,
                reason="it must have the same meaning in the engine as in Java, which Spark uses",
                hint="use plain classes, groups and quantifiers, or compute the value upstream"
                if error.code == "CROWN-PLAN-REGEX"
                else "use y, M, d, H, m, s and S, as in yyyy-MM-dd HH:mm:ss",
            )
    return Call(function, (subject, *literals), type_)


def literal_text(binder: ScalarBinder, node: exp.Expr, what: str) -> Literal:
    value = binder.bind(node)
    if isinstance(value, Literal) and value.type == STRING and value.value is not None:
        return value
    _not_literal(binder, node, what)


def _not_literal(binder: ScalarBinder, node: exp.Expr, what: str) -> NoReturn:
    binder.context.fail(
        node,
        "PATTERN",
        f"{what} must be a literal",
        reason="it is compiled when the query is planned",
        hint="write a literal, or compute the value upstream",
    )


def time_pattern(binder: ScalarBinder, node: exp.Expr) -> Literal:
    """Return a time pattern in Spark's letters."""
    pattern = literal_text(binder, node, "the time pattern")
    if binder.context.is_spark:
        return pattern
    text = str(pattern.value)
    for theirs, ours in _STRFTIME.items():
        text = text.replace(theirs, ours)
    if "%" in text:
        binder.context.fail(node, "PATTERN", "this time pattern is not supported", hint="use %Y, %m, %d, %H, %M, %S")
    return Literal(text, STRING)


def _count(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], name: str, least: int, most: int) -> None:
    if not least <= len(parts) <= most:
        expected = f"{least} to {most} arguments" if least != most else counted(least, "argument")
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {expected}")


def _rlike(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "rlike", 2, 2)
    subject, pattern = binder.string(parts[0]), literal_text(binder, parts[1], "a regular expression")
    call = checked(binder, node, "rlike", subject, [pattern])
    return binder.call("rlike", list(call.arguments), BOOLEAN, node)


def _regexp_extract(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "regexp_extract", 2, 3)
    subject, pattern = binder.string(parts[0]), literal_text(binder, parts[1], "a regular expression")
    group = binder.bind(parts[2]) if len(parts) == 3 else Literal(1, INT32)
    if not isinstance(group, Literal) or group.type != INT32 or group.value is None:
        _not_literal(binder, node, "the group")
    call = checked(binder, node, "regexp_extract", subject, [pattern, group])
    return binder.call("regexp_extract", list(call.arguments), STRING, node)


def _regexp_replace(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "regexp_replace", 3, 3)
    subject, pattern = binder.string(parts[0]), literal_text(binder, parts[1], "a regular expression")
    by = literal_text(binder, parts[2], "the replacement")
    call = checked(binder, node, "regexp_replace", subject, [pattern, by])
    return binder.call("regexp_replace", list(call.arguments), STRING, node)


def _date_format(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "date_format", 2, 2)
    subject = binder.bind(parts[0])
    if not subject.type.is_timestamp:
        subject = cast(binder.context, node, subject, TIMESTAMP)
    return written_time(binder, node, subject, time_pattern(binder, parts[1]))


def written_time(binder: ScalarBinder, node: exp.Expr, subject: Expression, pattern: Literal) -> Expression:
    """Return a timestamp written by a time pattern."""
    call = checked(binder, node, "date_format", subject, [pattern])
    return binder.call("date_format", list(call.arguments), STRING, node)


def read_time(binder: ScalarBinder, node: exp.Expr, subject: Expression, pattern: Literal) -> Expression:
    """Return a string read by a time pattern, as a timestamp."""
    call = checked(binder, node, "to_timestamp", subject, [pattern])
    return binder.call("to_timestamp", list(call.arguments), TIMESTAMP, node)


SPECIAL: dict[str, Special] = {
    "rlike": _rlike,
    "regexp": _rlike,
    "regexp_like": _rlike,
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "date_format": _date_format,
}
