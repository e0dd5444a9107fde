"""Base tables in plans and the kernel: columns, keys, stream profile, window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias

from crown.types import DataType

CLOCK = "crown_clock"  # the table with one row, the time that `now()` returns
Profile: TypeAlias = OneOf["static", "insert_only", "fifo", "arbitrary"]


@dataclass(frozen=True)
class TableColumn:
    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True)
class Window:
    """Rows expire: the oldest beyond `rows`, or those more than `interval` behind the newest `column`.

    Exactly one of `rows` and `interval` is set. `interval` is in the column's own unit: microseconds for
    timestamps, days for dates, plain numbers for integers.
    """

    rows: int | None = None
    interval: int | None = None
    column: str | None = None


@dataclass(frozen=True)
class Table:
    """A base table, reduced to the columns that the query reads (and its primary key)."""

    name: str
    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    profile: Profile = "arbitrary"
    window: Window | None = None
    updates: float = 1.0  # expected share of the updates, relative to the other tables


def resolved(table: Table) -> Table:
    """Return the table as an engine sees it behind another that has resolved its key and window.

    What arrives there are plain insertions and deletions, even of a table that is declared insert-only: its rows expire
    with the window.
    """
    profile = "arbitrary" if table.profile == "insert_only" else table.profile
    return replace(table, primary_key=(), window=None, profile=profile)
