"""Insert and delete rows through the engine's fastest path, for single views and for databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from crown.changes import DELETE, NetWord
from crown.errors import InvalidChange
from crown.view.inputs import TableInput
from crown.view.interface import Rows

_Delta = TypeVar("_Delta")


def change(
    target: TableInput, rows: Rows, word: NetWord, *, plain: Callable[..., _Delta], arrow: Callable[..., _Delta]
) -> _Delta:
    """Insert or delete rows of a table.

    `plain` is the engine's method for tuples, which are usually few; `arrow` is the method for everything else.
    """
    name = target.table.name
    if isinstance(rows, list) and (tuples := target.tuples(rows)) is not None:
        try:
            return plain(name, tuples, delete=word == DELETE)
        except InvalidChange as error:
            # The slower path casts values where it can.
            if error.code != "CROWN-CHANGE-TYPE":
                raise
    changes: list[tuple[str, Any]] = [(name, target.arrow(rows, word))]
    return arrow(changes)
