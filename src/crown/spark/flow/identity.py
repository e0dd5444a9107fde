"""What a checkpoint was made with: noted in the state, compared whenever the stream starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crown.errors import StateError
from crown.ir.tables import Table

FORMAT = 1


@dataclass(frozen=True)
class Identity:
    """`view` is the fingerprint of the plan, which says whether two are the same; the rest says how they differ."""

    view: str
    cells: int
    tables: Mapping[str, Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """In the form that the state has."""
        return {"format": FORMAT, "view": self.view, "cells": self.cells, "tables": dict(self.tables)}


def describe(table: Table) -> dict[str, Any]:
    """What a view's state depends on in a table."""
    described: dict[str, Any] = {
        "columns": ", ".join(
            f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}" for column in table.columns
        )
    }
    if table.primary_key:
        described["key"] = ", ".join(table.primary_key)
    if table.profile != "arbitrary":
        described["profile"] = table.profile
    if table.window is not None:
        described["window"] = {name: value for name, value in asdict(table.window).items() if value is not None}
    return described


def compare(before: Mapping[str, Any], now: Mapping[str, Any], *, sql: str | None = None) -> None:
    """Refuse to go on from a checkpoint that was made with something else."""
    if before.get("format") == now["format"] and before.get("view") == now["view"]:
        return
    differences = list(_differences(before, now)) or [
        "the query is another one, or this version of Crown plans it in another way"
    ]
    raise StateError(
        "the checkpoint belongs to another view",
        code="CROWN-STATE-OTHER-PLAN",
        reason="; ".join(differences) + (f". The query is now:\n{sql}" if sql else ""),
        hint="go back to what the checkpoint was made with, or use a new checkpoint and a new target "
        "(materialize(..., overwrite=True) replaces the old one)",
    )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if before.get("format") != now["format"]:
        yield "it was written by another version of Crown"
        return
    if before["cells"] != now["cells"]:
        yield f"cells was {before['cells']}, is {now['cells']}"
    old, new = before["tables"], now["tables"]
    for name in {**old, **new}:
        if name not in new:
            yield f"the query no longer reads table {name}"
        elif name not in old:
            yield f"the query now reads table {name}"
        else:
            for part in {**old[name], **new[name]}:
                was, is_ = old[name].get(part), new[name].get(part)
                if was != is_:
                    yield f"{part} of table {name} was {_shown(was)}, is {_shown(is_)}"


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
