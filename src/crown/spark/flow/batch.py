"""`run_batch`: run bounded input through the same cells at full speed, without a state store or engine host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from crown.changes import CHANGE_TYPE, INSERT
from crown.errors import PlanError
from crown.functions import PythonFunctions
from crown.ir.tables import CLOCK
from crown.spark.flow.chunks import read_blob
from crown.spark.flow.computed import with_functions
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.flow.operators import merge_cells
from crown.spark.flow.processor import PACKED, Operator
from crown.spark.flow.python import PythonFlow, merge_dispatcher
from crown.spark.flow.streaming import chosen_cells, used_tables
from crown.spark.flow.topology import lay_out
from crown.spark.flow.unpack import conform
from crown.spark.host.engines import engine_class
from crown.spark.schema import output_schema, table_schema
from crown.spark.sources.clock import now


def run_batch(
    spark: SparkSession,
    sql: str,
    changes: Mapping[str, DataFrame],
    *,
    cells: int | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    profiles: Mapping[str, str] | None = None,
    windows: Mapping[str, object] | None = None,
    functions: PythonFunctions | None = None,
) -> DataFrame:
    """Return the sum of what `maintain` would emit for `changes`, as a plain batch DataFrame.

    `changes` are static DataFrames, with `_change_type` or insert-only. All rows of the result are `insert`.
    """
    for name, frame in changes.items():
        if frame.isStreaming:
            raise PlanError(f"table {name!r} is a stream", code="CROWN-SPARK-BOUNDED", hint="use crown.spark.maintain")
    cells = chosen_cells(spark, cells)
    queries, changes = with_functions({"": sql}, changes, functions)
    schema = table_schema(changes, keys=keys or {}, profiles=profiles or {}, windows=windows or {})
    topology = lay_out(queries[""], schema, cells)
    frames = dict(used_tables(topology, {CLOCK: now(spark), **changes}))
    flow = PythonFlow()
    for name, (plan, table_cells) in topology.resolved.items():
        operator = topology.operator(f"table-{name}", plan, table_cells, "raise", None)
        runner = CellRunner(operator, output_schema(plan), plan.bag, None)
        packed = flow.dispatched(frames[name], plan, name, table_cells, keyed=True)
        frames[name] = _by_cell(packed, table_cells).mapInArrow(runner, output_schema(plan))
    packed_tables = [flow.dispatched(frame, topology.cell, name, cells) for name, frame in frames.items()]
    packed = _by_cell(reduce(lambda left, right: left.unionByName(right), packed_tables), cells)
    operator = topology.operator("cells", topology.cell, cells, "raise", None)
    if topology.merge is None:
        own = output_schema(topology.cell, names=topology.names)
        return packed.mapInArrow(CellRunner(operator, own, topology.cell.bag, None), own)
    cells = merge_cells(topology.merge)
    own = output_schema(topology.cell)
    partial = packed.mapInArrow(CellRunner(operator, own, topology.cell.bag, merge_dispatcher(topology.merge)), PACKED)
    merge = topology.operator("merge", topology.merge, cells, "raise", None)
    result = output_schema(topology.merge, names=topology.names)
    return _by_cell(partial, cells).mapInArrow(CellRunner(merge, result, topology.merge.bag, None), result)


def _by_cell(packed: DataFrame, cells: int) -> DataFrame:
    return packed.repartition(cells, "cell")


@dataclass(frozen=True)
class CellRunner:
    """For `mapInArrow` over one cell's blobs: its whole result, as rows or packed for the operator that merges."""

    operator: Operator
    schema: StructType
    bag: bool
    packed_for: Dispatcher | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = self._results(batches)
        return map(self._inserted, rows) if self.packed_for is None else self.packed_for(rows)

    def _results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for blobs in _blobs_by_cell(batches, self.operator.table_order):
            # Nobody reads the deltas of single changes, so the engine need not store what they
            # need.
            engine = engine_class()(self.operator.plan, deltas=False)
            engine.apply([(table, read_blob(blob)) for table, blob in blobs])
            yield from pa.RecordBatchReader.from_stream(engine.rows(multiplicity=self.bag))

    def _inserted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        inserts = pa.repeat(pa.scalar(INSERT), batch.num_rows)
        return conform(batch.append_column(CHANGE_TYPE, inserts), to_arrow_schema(self.schema, timezone="UTC"))


def _blobs_by_cell(
    batches: Iterable[pa.RecordBatch], table_order: tuple[str, ...]
) -> Iterator[list[tuple[str, memoryview]]]:
    """Yield the (table, blob) pairs of each cell of a partition, in the order of application."""
    order = {table: position for position, table in enumerate(table_order)}
    cells: dict[int, list[tuple[tuple[Any, ...], str, memoryview]]] = {}
    for batch in batches:
        *places, blobs = (batch.column(name) for name in PACKED.fieldNames())
        for row in range(batch.num_rows):
            cell, deletes, source, sequence, table = (column[row].as_py() for column in places)
            place = (order[table], deletes, source, sequence)
            cells.setdefault(cell, []).append((place, table, memoryview(blobs[row].as_buffer())))
    for arrived in cells.values():
        arrived.sort(key=lambda blob: blob[0])
        yield [(table, blob) for _, table, blob in arrived]
