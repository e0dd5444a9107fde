"""Evaluate constants with the kernel, so that they equal what it would compute for each row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crown import _kernel
from crown.errors import CrownError
from crown.ir.expression import Call, Expression, Literal, to_json
from crown.types import DataType

_LONGEST = 10_000  # of a text that is stored in the plan instead of its expression


def evaluate(expression: Expression, functions: Mapping[str, Any] | None = None) -> Literal:
    """Return the value of an expression without columns; raises a `CrownError` where it has none.

    >>> from crown.types import DATE, STRING
    >>> evaluate(Call("cast", (Literal("1994-01-01", STRING),), DATE))
    Literal(value=8766, type='date')
    """
    return Literal(
        json.loads(_kernel.constant(json.dumps(to_json(expression)), functions=dict(functions or {}))), expression.type
    )


def folded(call: Call) -> Expression:
    """Return the value of a call of literals, or the call itself if it fails: the error is raised at run time."""
    try:
        value = evaluate(call)
    except CrownError:
        return call
    return call if isinstance(value.value, str) and len(value.value) > _LONGEST else value


def convert(literal: Literal, target: DataType) -> Literal | None:
    """Return the literal as a value of `target`, or None when it has none there.

    >>> from crown.types import INT32, INT8
    >>> convert(Literal(300, INT32), INT8)
    """
    if literal.value is None or literal.type == target:
        return Literal(literal.value, target)
    try:
        return evaluate(Call("cast", (literal,), target))
    except CrownError:
        return None
