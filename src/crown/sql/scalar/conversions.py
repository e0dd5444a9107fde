"""TO_CHAR of dates and TO_NUMBER, which other dialects have beside CAST."""

from __future__ import annotations

import re

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.patterns import literal_text, time_pattern, written_time
from crown.types import STRING, TIMESTAMP

# The parts of a pattern, as Snowflake, Redshift and Oracle write them, in Spark's letters.
_PARTS = {
    "YYYY": "yyyy",
    "YY": "yy",
    "MMMM": "MMMM",
    "MON": "MMM",
    "MM": "MM",
    "DD": "dd",
    "DY": "E",
    "HH24": "HH",
    "HH12": "hh",
    "MI": "mm",
    "SS": "ss",
    "FF6": "SSSSSS",
    "FF3": "SSS",
    "AM": "a",
    "PM": "a",
}
_PATTERN = re.compile("|".join(sorted(_PARTS, key=len, reverse=True)) + r"|[^A-Za-z']", re.IGNORECASE)


def _to_char(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """A date or timestamp by a pattern; anything else, without one, is cast."""
    subject, pattern = binder.bind(node.this), node.args.get("format")
    if pattern is None:
        return cast(binder.context, node, subject, STRING)
    if not subject.type.is_temporal:
        binder.context.fail(
            node, "PATTERN", "numbers can't be formatted with a pattern", hint="use format_number(x, 2), or CAST"
        )
    moment = cast(binder.context, node, subject, TIMESTAMP)
    if binder.context.is_spark:
        return written_time(binder, node, moment, time_pattern(binder, pattern))
    text = str(literal_text(binder, pattern, "the pattern").value)
    parts = _PATTERN.findall(text)
    if "".join(parts) != text:
        binder.context.fail(
            pattern, "PATTERN", f"the pattern {text!r} is not supported", hint="use YYYY, MM, DD, HH24, MI and SS"
        )
    in_spark = "".join(_PARTS.get(part.upper(), part) for part in parts)
    return written_time(binder, node, moment, Literal(in_spark, STRING))


def _to_number(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """Snowflake's `to_number(s, precision, scale)`; `try_to_number` is NULL where there is none."""
    if node.args.get("format") is not None:
        binder.context.fail(node, "PATTERN", "to_number with a pattern is not supported", hint="use CAST")
    size = [node.args.get(key) for key in ("precision", "scale")]
    digits = [int(part.name) if isinstance(part, exp.Literal) and part.name.isdigit() else None for part in size]
    target = types.exact_decimal(digits[0] if digits[0] is not None else 38, digits[1] or 0)
    if target is None:
        binder.context.fail(node, "LITERAL", "a number has at most 38 digits")
    subject = binder.bind(node.this)
    if node.args.get("safe") and subject.type == STRING:
        return binder.call("try_cast", [subject], target, node)
    return cast(binder.context, node, subject, target)


HANDLERS: dict[type, Handler] = {exp.ToChar: _to_char, exp.ToNumber: _to_number}
