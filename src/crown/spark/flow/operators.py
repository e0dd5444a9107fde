"""The interface of a maintained query's operators: `PythonFlow` runs in Python workers, `JvmFlow` in Spark's JVM.

Both exchange the same packed blobs, return the same deltas and write the same state, so that either can continue from a
checkpoint of the other. `streaming` assembles a query from them.
"""

from __future__ import annotations

from typing import Literal, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from crown.changes import CHANGE_TYPE, DELETIONS, INSERTIONS, MULTIPLICITY
from crown.errors import SchemaError
from crown.ir.plan import Plan
from crown.ir.tables import Table
from crown.spark.flow.processor import Operator
from crown.spark.flow.selection import quoted, selection
from crown.spark.schema import CORRUPT, CORRUPT_REASON, DELETED
from crown.spark.sources.bykey import by_key

EngineName = Literal["jvm", "python"]


class Flow(Protocol):
    """The operators from which a query is assembled."""

    @property
    def engine(self) -> EngineName: ...

    def dispatched(self, changes: DataFrame, plan: Plan, name: str, cells: int, *, keyed: bool = False) -> DataFrame:
        """A table's changes as packed blobs: routed by the plan, or with `keyed` by the table's primary key."""
        ...

    def run_operator(self, packed: DataFrame, operator: Operator) -> DataFrame:
        """Run packed blobs through the cells of an operator: its deltas as blobs, and a report of each cell."""
        ...

    def repacked(self, deltas: DataFrame, merge: Plan) -> DataFrame:
        """The cells' deltas as packed changes of the merge operator's one table."""
        ...

    def unpacked(self, deltas: DataFrame, plan: Plan, schema: StructType, *, numbered: bool = False) -> DataFrame:
        """Blobs of deltas as rows of `schema`; `numbered` ones end with the batch and the position in it."""
        ...


def prepared(frame: DataFrame, plan: Plan, name: str) -> DataFrame:
    """Exactly what the kernel needs of a table's changes: its columns, the kind of change."""
    table = next(table for table in plan.tables if table.name == name)
    frame = by_key(frame, table)
    columns = [F.col(quoted(column.name)).alias(column.name) for column in table.columns]
    # A table of which only the number of rows matters must still have a column for Arrow to count.
    columns = columns or [F.lit(True).alias("_row")]
    if CHANGE_TYPE in frame.columns:
        word = F.col(CHANGE_TYPE)
        goes = F.when(word.isin(*INSERTIONS), False)
        columns.append(goes.when(word.isin(*DELETIONS), True).alias(DELETED))
    columns += [F.col(MULTIPLICITY)] if MULTIPLICITY in frame.columns else []
    checked = CORRUPT in frame.columns
    columns += [F.col(mark) for mark in (CORRUPT, CORRUPT_REASON) if mark in frame.columns]
    chosen = frame.select(*columns)
    wanted = None if table.primary_key or table.window else selection(plan, name)
    if wanted is None:
        return chosen
    return chosen.where(f"({wanted}) OR {CORRUPT} IS NOT NULL" if checked else wanted)


def cell_of_key(table: Table, cells: int) -> Column:
    """Return the cell of each row of a table, by its primary key."""
    for column in table.columns:
        if column.name in table.primary_key and "map<" in column.type:
            raise SchemaError(
                f"the primary key of table {table.name} contains {column.name}, of type {column.type.sql_name}",
                code="CROWN-SCHEMA-KEY",
                reason="Spark can't route rows by a map, because equal maps may list their entries in different orders",
                hint="leave it out of the key, or use one cell",
            )
    return F.pmod(F.hash(*(F.col(quoted(name)) for name in table.primary_key)), F.lit(cells)).cast("int")


def merge_cells(merge: Plan) -> int:
    return merge.routing.cells if merge.routing is not None else 1


def wakes(merge: Plan) -> bool:
    """Whether the operator has a row over empty input and so must be called even for an empty batch."""
    return any(getattr(stage, "always", False) for stage in merge.stages)
