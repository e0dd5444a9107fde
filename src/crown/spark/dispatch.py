"""From rows of changes to packed blobs: each change to its cells, about 1 MB of Arrow IPC per blob.

Everything is cheaper on few large rows than on many small ones: the shuffle, the stateful operator and the state store
see only blobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from crown.errors import InvalidChange
from crown.spark.chunks import TARGET_BYTES, write_blob
from crown.spark.host.server import POSITION
from crown.spark.rejects import PARTITION_SHIFT, Rejects

# The text of a record that did not parse; null in all others.
CORRUPT = "_corrupt_record"

PACKED_ARROW = pa.schema(
    [
        pa.field("cell", pa.int32(), False),
        pa.field("source", pa.int64(), False),
        pa.field("sequence", pa.int64(), False),
        pa.field("table", pa.string(), False),
        pa.field("blob", pa.binary(), False),
    ]
)


@dataclass(frozen=True)
class Dispatcher:
    """For `mapInArrow`: rows of one table in, packed blobs out. `routed` is the plan's JSON, None when one cell
    takes all.
    """

    table: str
    keys: tuple[int, ...]
    routed: str | None
    rejects: Rejects | None = None  # where records that don't parse go; without it they are an error
    cell_column: str | None = None  # the column that holds each row's cell, where Spark has computed it

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        source = context.partitionId() if context is not None else 0
        waiting = [_Waiting() for _ in self.keys]
        sequence = row = 0
        corrupt: list[dict[str, Any]] = []
        for batch in batches:
            rows = batch.num_rows
            if self.rejects is not None:
                batch = _with_positions(batch, source, row)
            if CORRUPT in batch.schema.names:
                batch = self._well_formed(batch, source, row, corrupt)
            row += rows
            for cell, piece in self._route(batch):
                waiting[cell].add(piece)
                if waiting[cell].size >= TARGET_BYTES:
                    yield self._packed(cell, source, sequence, waiting[cell].take())
                    sequence += 1
        for cell, rest in enumerate(waiting):
            if rest.batches:
                yield self._packed(cell, source, sequence, rest.take())
                sequence += 1

        if corrupt and self.rejects is not None:
            number = int(context.getLocalProperty("streaming.sql.batchId") or 0) if context is not None else 0
            self.rejects.write(number, f"{self.table}-{source}", pa.Table.from_pylist(corrupt))

    def _well_formed(
        self, batch: pa.RecordBatch, source: int, row: int, corrupt: list[dict[str, Any]]
    ) -> pa.RecordBatch:
        """The batch without the records that did not parse; those are noted in `corrupt`, or are an error."""
        texts = batch.column(CORRUPT)
        batch = batch.drop_columns([CORRUPT])
        if texts.null_count == len(texts):
            return batch
        wrong = pc.indices_nonzero(texts.is_valid()).to_pylist()
        reason = "the record does not fit the table's schema"
        if self.rejects is None:
            raise InvalidChange(
                f"table {self.table}: record {row + wrong[0]} of partition {source} is malformed: {texts[wrong[0]]}",
                code="CROWN-CHANGE-MALFORMED",
                reason=reason,
                hint='correct the source, or use on_invalid="quarantine"',
            )
        positions = batch.column(POSITION)
        corrupt += [
            {"table": self.table, "position": positions[i].as_py(), "reason": reason, "row": texts[i].as_py()}
            for i in wrong
        ]
        return batch.filter(texts.is_null())

    def _route(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        if batch.num_rows == 0:
            return
        if self.cell_column is not None:
            cells = batch.column(self.cell_column)
            batch = batch.drop_columns([self.cell_column])
            for cell in pc.unique(cells).to_pylist():
                yield cell, batch.filter(pc.equal(cells, cell))
            return
        if self.routed is None:
            yield 0, batch
            return
        for cell, stream in _router(self.routed).route(self.table, batch):
            for piece in pa.RecordBatchReader.from_stream(stream):
                yield cell, piece

    def _packed(self, cell: int, source: int, sequence: int, blob: bytes) -> pa.RecordBatch:
        columns: list[list[Any]] = [[self.keys[cell]], [source], [sequence], [self.table], [blob]]
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, PACKED_ARROW, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)


@dataclass
class _Waiting:
    """Rows of one cell that don't fill a blob yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.size += batch.nbytes

    def take(self) -> bytes:
        schema = self.batches[0].schema
        # One batch per blob: a blob of many small batches costs its reader more than this copy.
        table = pa.Table.from_batches(self.batches, schema).combine_chunks()
        self.batches, self.size = [], 0
        return write_blob(table.to_batches(), schema)


def _with_positions(batch: pa.RecordBatch, source: int, row: int) -> pa.RecordBatch:
    start = (source << PARTITION_SHIFT) + row
    return batch.append_column(POSITION, pa.array(range(start, start + batch.num_rows), pa.int64()))


@cache
def _router(plan: str) -> Any:
    """A worker routes many batches by the same few plans."""
    from crown._kernel import Router

    return Router(plan)
