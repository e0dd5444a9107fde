"""The parts of a string between delimiters: `split(s, ',')[i]`, `size(split(s, ','))` and SPLIT_INDEX.

No array is made of these: a part is found by its number, and there is one more of them than delimiters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.types import BOOLEAN, INT32, INT64, STRING

_SPLITS = (exp.RegexpSplit, exp.Split, exp.StringToArray)
_NAMES = ("split", "string_split", "str_split")
# One character of a pattern that stands for itself: plain, escaped, or alone in brackets.
_PLAIN = re.compile(r"[^\\.^$*+?()\[\]{}|]|\\[^A-Za-z0-9]|\[[^\\^\[\]]\]", re.DOTALL)


def split_of(node: exp.Expr) -> exp.Expr | None:
    """Return the call that makes all parts of a string, if the node is one."""
    node = node.unnest()
    named = isinstance(node, exp.Anonymous) and str(node.this).lower() in _NAMES
    if limit_of(node):
        return None
    return node if isinstance(node, _SPLITS) or named else None


def limit_of(node: exp.Expr) -> int | None:
    """Return the number of parts that `split(s, ',', 2)` makes at most; None if there is no limit."""
    limit = node.args.get("limit")
    if limit is None:
        return None
    number = limit.this if isinstance(limit, exp.Neg) else limit
    if not isinstance(number, exp.Literal) or not number.name.isdigit():
        return 0
    return None if isinstance(limit, exp.Neg) or int(number.name) == 0 else int(number.name)


class SplitParts:
    """The parts that one call makes."""

    def __init__(self, binder: ScalarBinder, node: exp.Expr) -> None:
        self.binder, self.node = binder, node
        named = isinstance(node, exp.Anonymous)
        subject, delimiter, *rest = node.expressions if named else [node.this, node.expression]
        if rest or limit_of(node) is not None or node.args.get("null"):
            _refuse(binder, node, "only a string and a delimiter can be given")
        self.subject = binder.string(subject)
        self.delimiter = Literal(self._delimiter(delimiter), STRING)

    def _delimiter(self, node: exp.Expr | None) -> str:
        if not isinstance(node, exp.Literal) or not node.args.get("is_string") or not node.name:
            _refuse(self.binder, self.node, "the delimiter must be written in the query, and not be empty")
        if not isinstance(self.node, exp.RegexpSplit):
            return node.name
        found = _PLAIN.findall(node.name)
        if "".join(found) != node.name:
            _refuse(self.binder, self.node, "its delimiter is a pattern that can match different texts")
        return "".join(part[1] if len(part) > 1 else part for part in found)

    @property
    def count(self) -> Expression:
        binder, node, delimiter = self.binder, self.node, self.delimiter
        without = binder.call("replace", [self.subject, delimiter, Literal("", STRING)], STRING, node)
        lengths = [cast(binder.context, node, self._length(text), INT64) for text in (self.subject, without)]
        width = Literal(len(str(delimiter.value)), INT64)
        removed = binder.call("subtract", lengths, INT64, node)
        delimiters = binder.call("div", [removed, width], INT64, node)
        return binder.call("add", [delimiters, Literal(1, INT64)], INT64, node)

    def _length(self, text: Expression) -> Expression:
        return self.binder.call("length", [text], INT32, self.node)

    def part(self, index: Expression, *, required: bool) -> Expression:
        """Return the part with this number, from 0; where there is none it is an error, or else NULL."""
        binder, node = self.binder, self.node
        bounds = [
            binder.call("ge", [index, Literal(0, INT64)], BOOLEAN, node),
            binder.call("lt", [index, self.count], BOOLEAN, node),
        ]
        there = binder.call("and", bounds, BOOLEAN, node)
        number = binder.call("add", [index, Literal(1, INT64)], INT64, node)
        number = cast(binder.context, node, binder.call("case", [there, number, Literal(1, INT64)], INT64, node), INT32)
        found = binder.call("split_part", [self.subject, self.delimiter, number], STRING, node)
        if not required:
            return binder.call("case", [there, found, Literal(None, STRING)], STRING, node)
        # An array of only this part raises the error for an index out of range.
        absent = binder.call("is_null", [self.subject], BOOLEAN, node)
        place = binder.call("case", [there, Literal(0, INT64), absent, Literal(0, INT64), index], INT64, node)
        alone = binder.call("make_array", [found], types.array_of(STRING), node)
        return binder.call("required_item", [alone, place], STRING, node)


def _split_index(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """Flink's: from 0, NULL where there is no such part."""
    if len(parts) != 3:
        binder.context.fail(node, "UNKNOWN-FUNCTION", "split_index takes 3 arguments", hint="see docs/sql.md")
    made = SplitParts(binder, exp.Split(this=parts[0].copy(), expression=parts[1].copy()))
    made.node = node
    return made.part(cast(binder.context, node, binder.bind(parts[2]), INT64), required=False)


def _refuse(binder: ScalarBinder, node: exp.Expr, reason: str) -> NoReturn:
    binder.context.fail(
        node,
        "UNKNOWN-FUNCTION",
        "this way to split a string is not supported",
        reason=reason,
        hint="write split(s, ',')[0] or split_part(s, ',', 1), or split the string upstream",
    )


SPECIAL: dict[str, Special] = {"split_index": _split_index}
