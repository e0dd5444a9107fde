"""Estimate how much memory the state of a pipeline will take.

The bytes of a row are measured (`crown.workload.footprint`). How many rows a table will have is not for Crown to guess:
it is declared (`rows`), or its window's, or counted in the footers of a static table's Parquet files, or not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crown.errors import CrownError
from crown.plan import Explanation
from crown.plan.explain.cells import table_shares
from crown.spark.pipeline import Pipeline, TableSource
from crown.workload.footprint import bytes_per_row


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
            rows = (
                "number of rows unknown (set rows)" if table.rows is None else f"{table.rows:,} rows ({table.told_by})"
            )
            size = "" if table.bytes is None else f" = {_size(table.bytes)}"
            lines.append(f"  {table.name:<17}  {table.bytes_per_row:,.0f} bytes per row{copies}, {rows}{size}")
        total = self.bytes
        if total is not None:
            lines.append(
                f"  {'in memory':<17}  about {_size(total)} in all engines; on Spark the same again in the checkpoint"
            )
        if not self.linear:
            lines.append(
                f"  {'note':<17}  the state also grows with the result or the cycles of the query, not counted here"
            )
        return "\n".join(lines)


def measure(explanation: Explanation, pipeline: Pipeline) -> Budget | None:
    """None where made-up rows don't fit the query."""
    sources = {table.name.lower(): table for table in pipeline.tables}
    windows = {table.name.lower(): table.window for table in explanation.plan.tables}
    rows = {name: _rows(None if window is None else window.rows, sources[name]) for name, window in windows.items()}
    try:
        return budget(explanation, rows, pipeline.cells)
    except CrownError:
        return None


def budget(explanation: Explanation, rows: Mapping[str, tuple[int | None, str]], cells: int) -> Budget:
    """`rows`: how many each table will have, by lower-case name, and who says so."""
    plan = explanation.plan
    sizes = bytes_per_row(plan)
    copies = {share.table: share.copies for share in table_shares(plan, cells)}
    tables = tuple(
        TableBudget(table.name, sizes[table.name], copies.get(table.name, 1.0), *rows[table.name.lower()])
        for table in plan.tables
    )
    linear = all(conjunction.space == "O(N)" for conjunction in explanation.report.conjunctions)
    return Budget(tables, linear)


def _rows(window: int | None, source: TableSource) -> tuple[int | None, str]:
    if source.rows is not None:
        return source.rows, "declared"
    if window is not None:
        return window, "its window"
    if source.static and source.format == "parquet":
        return _counted(source)
    return None, ""


def _counted(source: TableSource) -> tuple[int | None, str]:
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
