"""Estimate how much memory the state of a pipeline will take.

The bytes of a row are measured (`crown.workload.footprint`). Crown does not guess how many rows a table will have: the
number is declared (`rows`), taken from its window, counted in the footers of a static table's Parquet files, or
unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crown.errors import CrownError
from crown.ir.plan import Plan
from crown.ir.tables import CLOCK
from crown.plan import Explanation
from crown.plan.cells.together import lay_out_together
from crown.plan.explain.cells import TableShare, routed_shares, table_shares
from crown.spark.pipeline import Pipeline, TableSource
from crown.spark.pipeline.checking import Check
from crown.wording import counted
from crown.workload.footprint import bytes_per_row

_UNKNOWN = "add rows = NUMBER to its section"


@dataclass(frozen=True)
class TableBudget:
    """`copies` is the number of cells that a row goes to, on average; `rows` is None if it is unknown.

    `told_by` says where `rows` comes from, or how to provide it.
    """

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
            known = "number of rows unknown" if table.rows is None else counted(table.rows, "row")
            rows = f"{known} ({table.told_by})"
            size = "" if table.bytes is None else f" = {bytes_text(table.bytes)}"
            lines.append(f"  {table.name:<17}  {table.bytes_per_row:,.0f} bytes per row{copies}, {rows}{size}")
        total = self.bytes
        if total is not None:
            where = "in all engines; on Spark the same again in the checkpoint"
            lines.append(f"  {'in memory':<17}  about {bytes_text(total)} {where}")
        if not self.linear:
            lines.append(
                f"  {'note':<17}  the state also grows with the result or the cycles of the query, not counted here"
            )
        return "\n".join(lines)


def measure(checked: Check, pipeline: Pipeline) -> Budget | None:
    """Return what the state of a pipeline takes; None where made-up rows don't fit its queries."""
    if checked.plan is None:
        return None
    sources = {table.name.lower(): table for table in pipeline.tables}
    windows = {table.name.lower(): table.window for table in checked.plan.tables if table.name != CLOCK}
    rows = {name: _rows(None if window is None else window.rows, sources[name]) for name, window in windows.items()}
    try:
        if pipeline.alone:
            return budget(checked.explanations[0], rows, pipeline.cells)
        alone, spread = (lay_out_together(checked.plan, cells).layout.cell for cells in (1, pipeline.cells))
        return _budget(alone, routed_shares(spread), rows, linear=all(map(_is_linear, checked.explanations)))
    except CrownError:
        return None


def budget(explanation: Explanation, rows: Mapping[str, tuple[int | None, str]], cells: int) -> Budget:
    """`rows`: how many each table will have, by lower-case name, and the source of the number."""
    return _budget(explanation.plan, table_shares(explanation.plan, cells), rows, linear=_is_linear(explanation))


def _budget(
    plan: Plan, shares: Iterable[TableShare], rows: Mapping[str, tuple[int | None, str]], *, linear: bool
) -> Budget:
    sizes = bytes_per_row(plan)
    copies = {share.table: share.copies for share in shares}
    tables = tuple(
        TableBudget(table.name, sizes[table.name], copies.get(table.name, 1.0), *rows[table.name.lower()])
        for table in plan.tables
        if table.name != CLOCK
    )
    return Budget(tables, linear)


def _is_linear(explanation: Explanation) -> bool:
    return all(conjunction.space == "O(N)" for conjunction in explanation.report.conjunctions)


def _rows(window: int | None, source: TableSource) -> tuple[int | None, str]:
    if source.rows is not None:
        return source.rows, "declared"
    if window is not None:
        return window, "its window"
    if source.static and source.format == "parquet":
        return _counted(source)
    return None, _UNKNOWN


def _counted(source: TableSource) -> tuple[int | None, str]:
    import pyarrow.parquet

    path = Path(source.path or "")
    files = list(path.rglob("*.parquet")) if path.is_dir() else [path] if path.is_file() else []
    if not files:
        return None, _UNKNOWN
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files), "counted"


def bytes_text(count: float) -> str:
    """
    >>> bytes_text(1_500_000)
    '1.5 MB'
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,.0f} bytes"
