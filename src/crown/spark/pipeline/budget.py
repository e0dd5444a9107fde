"""How much memory a pipeline's state will take, as far as it can be told in advance.

The bytes of a row are measured: the very plan gets made-up rows in which each joins with one row of every other table
and text has 16 characters, and is asked for its size. Rows that the query's selections drop cost nothing, so they are
left out of the plan: the figure is for rows that pass. How many rows a table will have is not for Crown to guess: it is
declared (`rows`), or its window's, or counted in the footers of a static table's Parquet files, or not known.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from crown.errors import CrownError
from crown.ir.plan import BagStage, Plan, Stage, TreeStage
from crown.ir.tables import Table
from crown.plan import Explanation
from crown.plan.explain.cells import table_shares
from crown.spark.pipeline.description import Pipeline, TableSource
from crown.view import View

_ROWS = 4096
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class TableBudget:
    """`copies` is the number of cells that a row goes to, on average; `rows` is None where nobody knows."""

    name: str
    bytes_per_row: float
    copies: float
    rows: int | None
    told_by: str

    @property
    def bytes(self) -> float | None:
        return None if self.rows is None else self.rows * self.bytes_per_row * self.copies


@dataclass(frozen=True)
class Budget:
    tables: tuple[TableBudget, ...]
    linear: bool  # whether the state grows with the tables alone

    @property
    def bytes(self) -> float | None:
        """Of all tables; None where the rows of one are not known."""
        known = [table.bytes for table in self.tables]
        return None if None in known else sum(size for size in known if size is not None)

    def __str__(self) -> str:
        lines = ["STATE"]
        for table in self.tables:
            copies = f" x {table.copies:.3g} cells" if table.copies > 1 else ""
            rows = "rows not known (say rows = ...)" if table.rows is None else f"{table.rows:,} rows ({table.told_by})"
            size = "" if table.bytes is None else f" = {_size(table.bytes)}"
            lines.append(f"  {table.name:<17}  {table.bytes_per_row:,.0f} bytes a row{copies}, {rows}{size}")
        total = self.bytes
        if total is not None:
            lines.append(
                f"  {'in memory':<17}  about {_size(total)} in all engines, and as much again in the checkpoint"
            )
        if not self.linear:
            lines.append(
                f"  {'beware':<17}  this query's state also grows with its result or its cycles, not counted here"
            )
        return "\n".join(lines)


def measure(explanation: Explanation, pipeline: Pipeline) -> Budget | None:
    """None where made-up rows don't fit the query."""
    plan = explanation.plan
    try:
        sizes = _bytes_per_row(plan)
    except CrownError:
        return None
    sources = {table.name.lower(): table for table in pipeline.tables}
    copies = {share.table: share.copies for share in table_shares(plan, pipeline.cells)}
    tables = []
    for table in plan.tables:
        rows, told_by = _rows(table, sources[table.name.lower()])
        tables.append(TableBudget(table.name, sizes[table.name], copies.get(table.name, 1.0), rows, told_by))
    linear = all(conjunction.space == "O(N)" for conjunction in explanation.report.conjunctions)
    return Budget(tuple(tables), linear)


def _bytes_per_row(plan: Plan) -> dict[str, float]:
    """What each table's rows add to an engine that holds as many of the others."""
    bare = replace(
        plan,
        routing=None,
        tables=tuple(replace(table, window=None) for table in plan.tables),
        stages=tuple(map(_unfiltered, plan.stages)),
    )
    sizes = {}
    for table in plan.tables:
        view = View.from_plan(bare, deltas=True)
        for other in plan.tables:
            view.insert(other.name, _made_up(other, 0))
        before = view.stats()["bytes"]
        view.insert(table.name, _made_up(table, _ROWS))
        sizes[table.name] = max(0.0, (view.stats()["bytes"] - before) / _ROWS)
    return sizes


def _unfiltered(stage: Stage) -> Stage:
    if isinstance(stage, TreeStage | BagStage):
        return replace(stage, atoms=tuple(replace(atom, filter=None) for atom in stage.atoms))
    return stage


def _made_up(table: Table, first: int) -> list[dict[str, Any]]:
    return [
        {column.name: _value(column.type, number) for column in table.columns} for number in range(first, first + _ROWS)
    ]


def _value(type_: str, number: int) -> Any:
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


def _rows(table: Table, source: TableSource) -> tuple[int | None, str]:
    if source.rows is not None:
        return source.rows, "declared"
    if table.window is not None and table.window.rows is not None:
        return table.window.rows, "its window"
    if source.static and source.format == "parquet":
        return _counted(source)
    return None, ""


def _counted(source: TableSource) -> tuple[int | None, str]:
    from pathlib import Path

    import pyarrow.parquet

    path = Path(source.path or "")
    files = list(path.rglob("*.parquet")) if path.is_dir() else [path] if path.is_file() else []
    if not files:
        return None, ""
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files), "counted"


def _size(count: float) -> str:
    """
    >>> _size(1_500_000)
    '1.5 MB'
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,.0f} bytes"
