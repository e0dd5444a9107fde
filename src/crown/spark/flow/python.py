"""The operators in Python workers, with the engines in a host process: for Spark Connect, which has no JVM access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from crown.arrow import arrow_type
from crown.changes import MULTIPLICITY
from crown.ir.plan import Plan
from crown.ir.tables import Table
from crown.plan import to_json
from crown.spark.flow.cell_keys import cell_keys
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.flow.netting import Netting
from crown.spark.flow.operators import EngineName, cell_of_key, merge_cells, prepared, wakes
from crown.spark.flow.processor import DELTAS, PACKED, CellProcessor, Operator
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.selection import compares
from crown.spark.flow.unpack import NumberingUnpacker, Repacker, Unpacker
from crown.spark.sources.parquet import FileDispatcher, file_names

_CELL_COLUMN = "_cell"


@dataclass(frozen=True)
class PythonFlow:
    """`rejects` is where changes that don't fit go; without it they are an error."""

    engine: ClassVar[EngineName] = "python"
    rejects: Rejects | None = None

    def dispatched(self, changes: DataFrame, plan: Plan, name: str, cells: int, *, keyed: bool = False) -> DataFrame:
        table = next(table for table in plan.tables if table.name == name)
        ordered = bool(table.primary_key or table.window)
        routed = None if keyed or cells == 1 else to_json(plan)
        names = file_names(changes)
        if names is not None and _untouched(changes, plan, table):
            needed = StructType([changes.schema[column.name] for column in table.columns])
            dispatcher = Dispatcher(name, cell_keys(cells), routed, self.rejects, netting=self._netting(table))
            return names.mapInArrow(FileDispatcher(dispatcher, needed), PACKED)
        rows = prepared(changes, plan, name)
        column = _CELL_COLUMN if keyed and cells > 1 else None
        if column is not None:
            rows = rows.withColumn(column, cell_of_key(table, cells))
        netting = None if ordered or MULTIPLICITY in rows.columns else self._netting(table)
        dispatcher = Dispatcher(name, cell_keys(cells), routed, self.rejects, column, ordered, netting=netting)
        return rows.mapInArrow(dispatcher, PACKED)

    def run_operator(self, packed: DataFrame, operator: Operator) -> DataFrame:
        return packed.groupBy("cell").transformWithState(CellProcessor(operator), DELTAS, "Append", "None")

    def repacked(self, deltas: DataFrame, merge: Plan) -> DataFrame:
        return deltas.mapInArrow(Repacker(merge_dispatcher(merge)), PACKED)

    def unpacked(self, deltas: DataFrame, plan: Plan, schema: StructType, *, numbered: bool = False) -> DataFrame:
        return deltas.mapInArrow(NumberingUnpacker(schema) if numbered else Unpacker(schema), schema)

    def _netting(self, table: Table) -> Netting | None:
        """What cancels changes of a table early; None where each rejected change must be traceable."""
        required = tuple(column.name for column in table.columns if not column.nullable)
        return Netting(required) if self.rejects is None else None


def _untouched(changes: DataFrame, plan: Plan, table: Table) -> bool:
    """Whether Spark has nothing to do with a table's changes, and so needs not see them."""
    return not (
        table.primary_key
        or table.window
        or not table.columns
        or MULTIPLICITY in changes.columns
        # Writers of Parquet differ in how they name and type the parts; Spark knows their ways.
        or any(column.type.is_nested for column in table.columns)
        or compares(plan, table.name)
    )


def merge_dispatcher(merge: Plan) -> Dispatcher:
    """What sends the cells' outputs to the merge operator."""
    (table,) = merge.tables
    columns = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])
    cells = merge_cells(merge)
    routed = to_json(merge) if cells > 1 else None
    return Dispatcher(table.name, cell_keys(cells), routed, wakes=columns if wakes(merge) else None)
