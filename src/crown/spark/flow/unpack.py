"""Unpack blobs of deltas into rows for the user, or repack them for the next operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from crown._kernel import value_order
from crown.changes import BATCH, CHANGE_TYPE, DELETE, MULTIPLICITY, POSITION
from crown.spark.flow.chunks import read_blob
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.schema import DELETED


@dataclass(frozen=True)
class Unpacker:
    """For `mapInArrow`: rows with a `blob` column in, the deltas that are in the blobs out.

    The first columns of a delta are the view's, in the order of the schema, which has the author's names for them.
    """

    schema: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        for delta in delta_batches(batches):
            yield conform(delta, schema)


# A position is the number of the cell and that of the row among the cell's, in one number.
_CELL_SHIFT = 40
_ROWS = 1 << 16


@dataclass(frozen=True)
class NumberingUnpacker:
    """As `Unpacker`, with the number of the batch and the position of each delta in it.

    A batch that Spark runs again has the same deltas, but a rebuilt engine may list them in a different order.
    So each cell's are sorted by value.
    """

    schema: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        context = TaskContext.get()
        number = int(context.getLocalProperty("streaming.sql.batchId") or 0) if context is not None else 0
        own = pa.schema([field for field in schema if field.name not in (BATCH, POSITION)])
        cells: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            for cell, blob in zip(batch.column("cell").to_pylist(), batch.column("blob"), strict=True):
                if blob.is_valid:
                    deltas = (conform(delta, own) for delta in read_blob(memoryview(blob.as_buffer())))
                    cells.setdefault(cell, []).extend(deltas)
        for cell in sorted(cells):
            rows = pa.Table.from_batches(cells.pop(cell), own)
            positions = pa.array(np.arange(rows.num_rows, dtype=np.int64) + (cell << _CELL_SHIFT))
            order = pa.table(value_order(rows))["place"]
            rows = rows.take(order).append_column(BATCH, pa.repeat(pa.scalar(number), rows.num_rows))
            yield from rows.append_column(POSITION, positions).cast(schema).to_batches(_ROWS)


@dataclass(frozen=True)
class Repacker:
    """For `mapInArrow`: one operator's deltas as the packed changes of a table of the next."""

    dispatcher: Dispatcher

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.dispatcher(map(_plain, delta_batches(batches)))


def delta_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("blob"):
            if blob.is_valid:
                yield from read_blob(memoryview(blob.as_buffer()))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert the batch to the schema that Spark expects: the view's columns by position, dictionaries decoded."""
    own = (name if name in (CHANGE_TYPE, MULTIPLICITY) else position for position, name in enumerate(schema.names))
    columns = [batch.column(place).cast(field.type) for place, field in zip(own, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As a dispatcher takes it: without dictionaries, so that batches of several engines have one schema."""
    deleted = pc.equal(batch.column(CHANGE_TYPE), DELETE)
    batch = batch.drop_columns([CHANGE_TYPE])
    arrays = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays([*arrays, deleted], names=[*batch.schema.names, DELETED])
