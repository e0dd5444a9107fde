"""Pack rows of changes into blobs: each change goes to its cells, with about 1 MB of Arrow IPC per blob.

Everything is cheaper on few large rows than on many small ones: the shuffle, the stateful operator and the state store
see only blobs. Insertions and deletions are in separate blobs, so that insertions need no change type
and a cell can apply them first: Spark guarantees no order of the rows of a batch, and this way none is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from crown._kernel import Router
from crown.changes import CHANGE_TYPE, DELETE, DELETIONS, INSERT, INSERTIONS, POSITION
from crown.errors import InvalidChange
from crown.spark.flow.chunks import TARGET_BYTES, write_blob
from crown.spark.flow.netting import Netting
from crown.spark.flow.rejects import PARTITION_SHIFT, Rejects
from crown.spark.schema import CORRUPT, CORRUPT_REASON, DELETED

PACKED_ARROW = pa.schema(
    [
        pa.field("cell", pa.int32(), False),
        pa.field("deletes", pa.bool_(), False),
        pa.field("source", pa.int64(), False),
        pa.field("sequence", pa.int64(), False),
        pa.field("table", pa.string(), False),
        pa.field("blob", pa.binary(), False),
    ]
)
_WORDS = pa.array([INSERT, DELETE])


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
    ordered: bool = False  # a table with a key or a window: the order of the changes matters
    wakes: pa.Schema | None = (
        None  # of the table, where its operator has a row over empty input and so must always be called
    )
    netting: Netting | None = None  # where changes may cancel out before the shuffle

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        source = context.partitionId() if context is not None else 0
        waiting = {(cell, deletes): _Waiting(deletes) for deletes in (False, True) for cell in range(len(self.keys))}
        sequence = 0
        faults: list[dict[str, Any]] = []
        read = _Count()
        checked = self._checked(batches, source, read, faults)
        for batch in checked if self.netting is None else self.netting(checked):
            for deletes, part in self._by_kind(batch):
                for cell, piece in self._route(part):
                    found = waiting[cell, deletes]
                    found.add(piece)
                    if found.size >= TARGET_BYTES:
                        yield self._packed(cell, source, sequence, found)
                        sequence += 1
        if self.wakes is not None and read.rows == 0:
            waiting[0, False].add(pa.RecordBatch.from_pylist([], self.wakes))
        for (cell, _), rest in waiting.items():
            if rest.batches:
                yield self._packed(cell, source, sequence, rest)
                sequence += 1

        if faults and self.rejects is not None:
            number = int(context.getLocalProperty("streaming.sql.batchId") or 0) if context is not None else 0
            self.rejects.write(number, f"{self.table}-{source}", pa.Table.from_pylist(faults))

    def _checked(
        self, batches: Iterable[pa.RecordBatch], source: int, read: _Count, faults: list[dict[str, Any]]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.num_rows
            if self.rejects is not None:
                batch = _with_positions(batch, source, read.rows)
            yield self._well_formed(batch, source, read.rows, faults)
            read.rows += rows

    def _well_formed(
        self, batch: pa.RecordBatch, source: int, row: int, faults: list[dict[str, Any]]
    ) -> pa.RecordBatch:
        """Return the batch without malformed records, which are recorded in `faults` or raise an error."""
        if CORRUPT in batch.schema.names:
            texts = batch.column(CORRUPT)
            reasons: pa.StringArray | str = "the record does not match the schema of the table"
            if CORRUPT_REASON in batch.schema.names:
                reasons = batch.column(CORRUPT_REASON)
                batch = batch.drop_columns([CORRUPT_REASON])
            batch = batch.drop_columns([CORRUPT])
            if texts.null_count < len(texts):
                self._fault(batch, texts.is_valid(), texts, reasons, source, row, faults)
                batch = batch.filter(texts.is_null())
        if DELETED in batch.schema.names and (kinds := batch.column(DELETED)).null_count:
            unknown = kinds.is_null()
            texts = pa.array([str(found) for found in batch.drop_columns([DELETED]).to_pylist()], pa.string())
            reason = f"{CHANGE_TYPE} must be one of {', '.join(INSERTIONS + DELETIONS)}"
            self._fault(batch, unknown, texts, reason, source, row, faults)
            batch = batch.filter(kinds.is_valid())
        return batch

    def _fault(
        self,
        batch: pa.RecordBatch,
        mask: pa.BooleanArray,
        texts: pa.StringArray,
        reasons: pa.StringArray | str,
        source: int,
        row: int,
        faults: list[dict[str, Any]],
    ) -> None:
        wrong = pc.indices_nonzero(mask).to_pylist()
        why = {i: reasons if isinstance(reasons, str) else reasons[i].as_py() for i in wrong}
        if self.rejects is None:
            raise InvalidChange(
                f"table {self.table}: record {row + wrong[0]} of partition {source} is malformed: {texts[wrong[0]]}",
                code="CROWN-CHANGE-MALFORMED",
                reason=why[wrong[0]],
                hint='correct the source, or use on_invalid="quarantine"',
            )
        positions = batch.column(POSITION)
        faults += [
            {"table": self.table, "position": positions[i].as_py(), "reason": why[i], "row": texts[i].as_py()}
            for i in wrong
        ]

    def _by_kind(self, batch: pa.RecordBatch) -> Iterator[tuple[bool, pa.RecordBatch]]:
        """The inserted rows and the deleted rows; one batch with a change type per row where their order matters."""
        if DELETED not in batch.schema.names:
            yield False, batch
            return
        deleted = batch.column(DELETED)
        batch = batch.drop_columns([DELETED])
        if self.ordered:
            words = pa.DictionaryArray.from_arrays(deleted.cast(pa.int8()), _WORDS)
            yield False, batch.append_column(CHANGE_TYPE, words)
            return
        count = deleted.true_count
        if count < batch.num_rows:
            yield False, batch.filter(pc.invert(deleted)) if count else batch
        if count:
            yield True, batch.filter(deleted) if count < batch.num_rows else batch

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

    def _packed(self, cell: int, source: int, sequence: int, waiting: _Waiting) -> pa.RecordBatch:
        columns = [[self.keys[cell]], [waiting.deletes], [source], [sequence], [self.table]]
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, PACKED_ARROW, strict=False)]
        blob = waiting.take()
        ends = pa.py_buffer(struct.pack("<2i", 0, blob.size))
        arrays.append(pa.Array.from_buffers(pa.binary(), 1, [None, ends, blob]))
        return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)


@dataclass
class _Count:
    """The number of rows that a task has read."""

    rows: int = 0


@dataclass
class _Waiting:
    """Rows of one cell that don't fill a blob yet."""

    deletes: bool
    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.size += batch.nbytes

    def take(self) -> pa.Buffer:
        # One batch per blob: a blob of many small batches costs its reader more than this copy.
        batch = pa.concat_batches(self.batches)
        self.batches, self.size = [], 0
        if self.deletes:
            words = pa.DictionaryArray.from_arrays(pa.array(np.ones(batch.num_rows, np.int8)), _WORDS)
            batch = batch.append_column(CHANGE_TYPE, words)
        return write_blob([batch], batch.schema)


def _with_positions(batch: pa.RecordBatch, source: int, row: int) -> pa.RecordBatch:
    start = (source << PARTITION_SHIFT) + row
    return batch.append_column(POSITION, pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64)))


@cache
def _router(plan: str) -> Any:
    """Return the cached router of a plan: a worker routes many batches by the same few plans."""
    return Router(plan)
