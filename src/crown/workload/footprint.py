"""How many bytes each row of a table adds to an engine, measured on the plan itself.

The plan gets synthetic rows, each of which joins with one row of every other table and whose text has 16 characters;
then its size is read. Rows that the query's selections drop cost nothing, so selections are left out of the plan: the
figure is for rows that pass.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from crown.ir.expression import Literal
from crown.ir.plan import ITSELF, BagStage, Plan, RecursionStage, Stage, TreeStage
from crown.ir.tables import CLOCK, Table
from crown.types import BOOLEAN, DataType
from crown.view import View

_ROWS = 4096
_EPOCH = datetime.date(1970, 1, 1)


def bytes_per_row(plan: Plan) -> dict[str, float]:
    """Return what each table's rows add to an engine that holds as many of the others."""
    bare = replace(
        plan,
        routing=None,
        tables=tuple(replace(table, window=None) for table in plan.tables),
        stages=tuple(map(_unfiltered, plan.stages)),
    )
    tables = [table for table in plan.tables if table.name != CLOCK]
    sizes = {CLOCK: 0.0} if len(tables) < len(plan.tables) else {}  # one row, however long the stream
    for table in tables:
        view = View.from_plan(bare, deltas=True)
        if len(tables) < len(plan.tables):
            view.advance(datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC))
        for other in tables:
            view.insert(other.name, _made_up(other, 0))
        before = view.stats()["bytes"]
        view.insert(table.name, _made_up(table, _ROWS))
        sizes[table.name] = max(0.0, (view.stats()["bytes"] - before) / _ROWS)
    return sizes


def _unfiltered(stage: Stage) -> Stage:
    if isinstance(stage, TreeStage | BagStage):
        return replace(stage, atoms=tuple(replace(atom, filter=None) for atom in stage.atoms))
    if isinstance(stage, RecursionStage):
        return replace(stage, stages=tuple(_resting(inner) for inner in stage.stages))
    return stage


def _resting(stage: Stage) -> Stage:
    """A stage of a recursion's step that produces no rows: over synthetic rows it would not terminate."""
    if not isinstance(stage, TreeStage | BagStage):
        return stage
    never = Literal(False, BOOLEAN)
    return replace(stage, atoms=tuple(replace(a, filter=never) if a.source == ITSELF else a for a in stage.atoms))


def _made_up(table: Table, first: int) -> list[dict[str, Any]]:
    return [
        {column.name: _value(column.type, number) for column in table.columns} for number in range(first, first + _ROWS)
    ]


def _value(type_: DataType, number: int) -> Any:
    plain: Mapping[str, Any] = {
        "boolean": number % 2 == 0,
        "int8": number % 100,
        "int16": number,
        "int32": number,
        "int64": number,
        "float32": float(number),
        "float64": float(number),
        "string": f"{number:016d}",
        "binary": f"{number:016d}".encode(),
        "date": _EPOCH + datetime.timedelta(days=number),
        "timestamp": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=number),
        "timestamp_ntz": datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=number),
    }
    return plain.get(type_, Decimal(number % 10))
