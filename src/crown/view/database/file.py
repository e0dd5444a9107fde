"""Saved databases: everything except the kernel's state, in the archive format of `storage`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf

from crown.ir.functions import Declared
from crown.ir.plan import Plan
from crown.ir.serial import decode, encode
from crown.ir.tables import CLOCK
from crown.plan.cells.views_layout import ProjectLayout
from crown.plan.explain.report import Report
from crown.sql.schema.schema import Schema
from crown.sql.schema.tables import ResultSchema, TableSchema
from crown.sql.statements import CreateView, read_statements
from crown.view import storage
from crown.view.database.catalog import Catalog, CatalogView

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


def saved(
    catalog: Catalog, layout: ProjectLayout | None, *, deltas: bool, on_invalid: OneOf["raise", "quarantine"]
) -> Saved:
    """Return what is saved of a database beside its state."""
    views = (
        SavedView(v.name, v.text, v.plan, v.report, tuple(v.places.items()), v.reads) for v in catalog.views.values()
    )
    return Saved(
        dialect=catalog.dialect,
        keep=catalog.keep,
        deltas=deltas,
        threads=catalog.threads,
        on_invalid=on_invalid,
        tables=tuple(catalog.schema.tables.values()),
        names=tuple(catalog.texts.values()),
        views=tuple(views),
        project=catalog.project,
        layout=layout,
        given=tuple(sorted(catalog.given)),
    )


def catalog(saved: Saved, functions: Mapping[str, Declared]) -> Catalog:
    """Return the tables and views of a saved database."""
    tables = {table.name.lower(): table for table in saved.tables}
    results = {v.name.lower(): ResultSchema(v.name, v.plan.columns) for v in saved.views}
    schema = Schema(tables, {}, results)
    found = Catalog(schema, saved.keep, saved.threads, saved.dialect, functions, saved.project)
    for text in saved.names:
        (statement,) = read_statements(text, dialect=saved.dialect)
        assert isinstance(statement, CreateView)
        key = statement.view.name.lower()
        found.schema = replace(found.schema, views={**found.schema.views, key: statement.view})
        found.texts[key] = text
    for v in saved.views:
        found.views[v.name.lower()] = CatalogView(v.name, v.text, v.plan, v.report, dict(v.places), v.reads)
    found.given.update(saved.given)
    return found


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
