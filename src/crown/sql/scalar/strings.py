"""Padding and the ends of strings."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import Handler, ScalarBinder
from crown.sql.scalar.coerce import cast
from crown.types import BINARY, BOOLEAN, INT32, STRING


def refuse_binary(binder: ScalarBinder, node: exp.Expr, name: str, values: Sequence[Expression]) -> None:
    """Reject a function of bytes only, for which Spark returns bytes and Crown would return a string."""
    if values and all(value.type == BINARY for value in values):
        binder.context.fail(
            node,
            "TYPE-CLASH",
            f"{name} of BINARY is not supported",
            hint="cast the bytes to STRING, if they are text",
        )


def _padded(binder: ScalarBinder, node: exp.Expr) -> Expression:
    fill = node.args.get("fill_pattern")
    pad = binder.string(fill) if fill is not None else Literal(" ", STRING)
    length = cast(binder.context, node, binder.bind(node.expression), INT32)
    function = "lpad" if node.args.get("is_left") else "rpad"
    refuse_binary(binder, node, function, [binder.bind(part) for part in (node.this, fill) if part is not None])
    return binder.call(function, [binder.string(node.this), length, pad], STRING, node)


def _end(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """`left` and `right`: SUBSTRING from the beginning, or from as many characters before the end."""
    count = cast(binder.context, node, binder.bind(node.expression), INT32)
    if isinstance(node, exp.Left) and (subject := binder.bind(node.this)).type == BINARY:
        return binder.call("substring", [subject, Literal(1, INT32), count], BINARY, node)
    text = binder.string(node.this)
    if isinstance(node, exp.Left):
        return binder.call("substring", [text, Literal(1, INT32), count], STRING, node)
    none = binder.call("le", [count, Literal(0, INT32)], BOOLEAN, node)
    start = binder.call("negate", [count], INT32, node)
    end = binder.call("substring", [text, start], STRING, node)
    absent = binder.call("is_null", [text], BOOLEAN, node)
    no_text = Literal(None, STRING)
    return binder.call("case", [absent, no_text, none, Literal("", STRING), end], STRING, node)


HANDLERS: dict[type, Handler] = {
    exp.Pad: _padded,
    exp.Left: _end,
    exp.Right: _end,
}
