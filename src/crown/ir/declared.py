"""The calls of the user's functions in a plan."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from crown.ir.expression import Call
from crown.ir.functions import declared_name
from crown.ir.plan import Plan, Stage


def declared_calls(plan: Plan | Stage) -> list[Call]:
    """Return the calls of functions that the user declares, each once.

    >>> declared_calls(Plan("SELECT 1", (), (), (), bag=False))
    []
    """
    return list(dict.fromkeys(_calls(plan)))


def _calls(part: Any) -> Iterator[Call]:
    if isinstance(part, Call) and declared_name(part.function) is not None:
        yield part
    if isinstance(part, tuple):
        for one in part:
            yield from _calls(one)
    else:
        kind: Any = type(part)
        for name in _fields(kind):
            yield from _calls(getattr(part, name))


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
