"""The identity of a checkpoint: recorded in the state, compared whenever the stream starts.

A stream continues from a state that holds the rows it needs with the same meaning: the same query over the same tables,
in the same cells, with the same stored values (`crown.plan.cells.stored`). If the same version wrote the state, a
fingerprint of all this decides; if the fingerprints differ, the plan and text in the state are read and compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from crown.errors import CrownError, StateError
from crown.ir.serial import encode, from_json
from crown.ir.tables import Table
from crown.plan.cells.stored import differences, stored
from crown.plan.cells.together import Slots
from crown.spark.checkpoint.meaning import same

# Of the state that an operator writes. 1: the fingerprint was that of the whole plan. Raise it when
# rows of the same query, tables and cells mean something else, for instance what cells hand to the
# merge.
FORMAT = 2
OLDEST = 1


@dataclass(frozen=True)
class Identity:
    """`view` is the fingerprint of the view's meaning and layout. `tables` are those that the query reads.

    `views` locate the rows of each of several views among those of all.
    """

    view: str
    cells: int
    sql: str = field(compare=False)
    tables: tuple[Table, ...]
    views: tuple[Slots, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored in the state."""
        tables = {table.name: describe(table) for table in self.tables}
        views = {"views": encode(self.views)} if self.views else {}
        return {"format": FORMAT, "view": self.view, "cells": self.cells, "tables": tables, **views}


@dataclass(frozen=True)
class Before:
    """The description that an operator's state has of itself."""

    identity: Mapping[str, Any]
    operator: str
    plan: str  # JSON


def digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def operator_fingerprint(view: str, operator: str) -> str:
    """The key that identifies the state of a view's operator."""
    return digest([view, operator])


def describe(table: Table) -> dict[str, Any]:
    """Return what a view's state depends on in a table."""
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


def check_format(before: Mapping[str, Any]) -> None:
    """Reject state in a format that this version can't read."""
    found = before.get("format")
    if isinstance(found, int) and OLDEST <= found <= FORMAT:
        return
    newer = isinstance(found, int) and found > FORMAT
    raise StateError(
        f"the checkpoint's state has format {found}; this version of Crown reads {OLDEST} to {FORMAT}",
        code="CROWN-STATE-FORMAT",
        hint="use the version of Crown that wrote it, or a newer one"
        if newer
        else "use a new checkpoint and a new target (materialize(..., overwrite=True) replaces the old one)",
    )


def compare(before: Before, now: Identity, plans: Mapping[str, str]) -> None:
    """Reject the state of an operator that was made for something else. `plans` has all operators."""
    check_format(before.identity)
    try:
        found = list(_differences(before, now, plans))
    except (KeyError, TypeError, CrownError) as error:
        found = [f"its description can't be read: {error}"]
    if found:
        raise StateError(
            "the checkpoint belongs to another view",
            code="CROWN-STATE-OTHER-PLAN",
            reason="; ".join(found),
            hint="go back to the previous query and options, or use a new checkpoint and a new target "
            "(materialize(..., overwrite=True) replaces the old one)",
        )


def _differences(before: Before, now: Identity, plans: Mapping[str, str]) -> Iterator[str]:
    given = [*_views(before.identity, now.to_json()), *_given(before.identity, now.to_json())]
    if given:
        yield from given
        return
    plan = from_json(before.plan)
    # The plan of a resolver has no query.
    if not before.operator.startswith("table-") and not same(plan.sql, now.sql, now.tables):
        changed = "the query of a view has changed. They were" if now.views else "the query has changed. It was"
        is_now = "They are now" if now.views else "The query is now"
        yield f"{changed}:\n{plan.sql}\n{is_now}:\n{now.sql}"
    elif before.operator not in plans:
        yield f"this version of Crown runs the query without the operator {before.operator}"
    else:
        for found in differences(stored(plan), stored(from_json(plans[before.operator]))):
            yield f"this version of Crown lays out the operator {before.operator} differently: {found}"


def _views(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Which of several views are new, and which were removed."""
    old, new = ([view["name"] for view in identity.get("views", ())] for identity in (before, now))
    if bool(old) != bool(new):
        yield "it was of several views, now of one query" if old else "it was of one query, now of several views"
        return
    yield from (f"the view {name} is gone" for name in old if name not in new)
    yield from (f"the view {name} is new" for name in new if name not in old)


def _given(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """How the user's settings differ, apart from the query."""
    if before["cells"] != now["cells"]:
        yield f"cells was {before['cells']}, now {now['cells']}"
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
                    yield f"{part} of table {name} was {_shown(was)}, now {_shown(is_)}"


def tables_of(plans: Iterable[str]) -> list[Table]:
    """Return the tables of a view as its query reads them, from the plans of all its operators except the merge."""
    found: dict[str, Table] = {}
    for table in (table for plan in plans for table in from_json(plan).tables):
        known = found.get(table.name)
        if known is None or table.primary_key or table.window:
            found[table.name] = table
    return list(found.values())


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
