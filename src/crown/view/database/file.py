"""Saved databases: everything except the kernel's state, in the archive format of `storage`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from crown.ir.plan import Plan
from crown.ir.serial import decode, encode
from crown.ir.tables import CLOCK
from crown.plan.cells.project import ProjectLayout
from crown.plan.explain.report import Report
from crown.sql.schema.tables import TableSchema
from crown.view import storage

NAME = "database.json"
_FORMAT = 1


@dataclass(frozen=True)
class SavedView:
    name: str
    text: str
    plan: Plan
    report: Report
    places: tuple[tuple[str, str], ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Saved:
    """A database without its state. `names` are the CREATE VIEW statements, `given` the tables that had rows."""

    dialect: str
    keep: OneOf["read", "all"]
    deltas: bool
    threads: int
    on_invalid: OneOf["raise", "quarantine"]
    tables: tuple[TableSchema, ...]
    names: tuple[str, ...]
    views: tuple[SavedView, ...]
    project: Plan
    layout: ProjectLayout | None
    given: tuple[str, ...]


def write(path: str | os.PathLike[str], saved: Saved, state: Mapping[str, list[bytes]]) -> None:
    """Replace the file at `path` atomically."""
    storage.write_archive(path, NAME, json.dumps({"format": _FORMAT, **encode(saved)}), state)


def read(path: str | os.PathLike[str]) -> tuple[Saved, dict[str, list[bytes]]]:
    """Return a saved database, and its state by part. Use within `storage.opening`."""
    about, state = storage.read_archive(path, NAME)
    storage.check_format(path, about, _FORMAT, _FORMAT)
    saved = decode(Saved, {key: value for key, value in about.items() if key != "format"})
    assert isinstance(saved, Saved)
    _check(saved)
    return saved, state


def _check(saved: Saved) -> None:
    """Raise ValueError if the parts are inconsistent."""
    tables: dict[str, Any] = {table.name: {column.name for column in table.columns} for table in saved.tables}
    for table in saved.project.tables:
        if table.name != CLOCK and not {column.name for column in table.columns} <= tables.get(table.name, set()):
            raise ValueError(f"table {table.name} does not have the columns that its views read")
    shown = {result.name for result in saved.project.results or ()}
    if shown != {view.name for view in saved.views} or saved.threads < 1:
        raise ValueError("its views are not those of its plan")
    if (saved.layout is not None) != (saved.threads > 1):
        raise ValueError("its layout is not that of its threads")
    if saved.layout is not None and (saved.layout.cells != saved.threads or set(saved.layout.views) != shown):
        raise ValueError("its layout is not that of its plan")
