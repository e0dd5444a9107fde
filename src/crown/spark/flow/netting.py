"""Cancel rows that are inserted and deleted within one task's share of a batch, before the shuffle.

This is to changes what Spark's map-side combine is to sums. The rows of a batch have no order and insertions are
applied before deletions, so a row that is both inserted and deleted changes nothing, wherever it is in the batch. With
a window shorter than a batch, or rows that are updated often, most of a batch skips routing, shuffle, state and kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crown.spark.schema import DELETED

# How much of a task's input is buffered at a time, and the share of it that must cancel for the
# task to continue.
HELD_BYTES = 32 << 20
WORTHWHILE = 0.1


@dataclass(frozen=True)
class Netting:
    """For a table whose changes may cancel, because neither their order nor their positions matter."""

    required: tuple[str, ...] = ()  # NOT NULL: a row with a NULL here must reach a cell, which rejects it

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is left of the changes."""
        batches = iter(batches)
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if not _can_cancel(batch.schema):
                yield batch
                continue
            held.append(batch)
            size += batch.nbytes
            if size >= HELD_BYTES:
                rows = pa.Table.from_batches(held)
                left = cancelled(rows, self.required)
                yield from left.to_batches()
                held, size = [], 0
                if left.num_rows > (1 - WORTHWHILE) * rows.num_rows:
                    yield from batches
        if held:
            yield from cancelled(pa.Table.from_batches(held), self.required).to_batches()


def cancelled(rows: pa.Table, required: tuple[str, ...]) -> pa.Table:
    """The net copies of each row: those inserted more often than deleted, or deleted more often than inserted."""
    deleted = rows[DELETED]
    if not pc.any(deleted).as_py() or pc.all(deleted).as_py() or any(rows[name].null_count for name in required):
        return rows
    plain = rows.drop_columns([DELETED])
    # Columns are numbered, so that user names can't clash with ours.
    numbers = [str(number) for number in range(plain.num_columns)]
    weights = pc.subtract(1, pc.multiply(deleted.cast(pa.int8()), 2))
    weighed = plain.rename_columns(numbers).append_column("weight", weights)
    sums = weighed.group_by(numbers, use_threads=False).aggregate([("weight", "sum")])
    left = sums.filter(pc.not_equal(sums["weight_sum"], 0))
    weight = left["weight_sum"]
    copies = pc.abs(weight)
    kept = left.select(numbers).rename_columns(plain.column_names).append_column(DELETED, pc.less(weight, 0))
    if kept.num_rows and pc.max(copies).as_py() > 1:
        kept = kept.take(np.repeat(np.arange(kept.num_rows), copies.to_numpy()))
    return kept


def _can_cancel(schema: pa.Schema) -> bool:
    """Whether equal rows of these columns are the same to Arrow and to the kernel: floats have NaN and two zeros."""
    return DELETED in schema.names and not any(
        pa.types.is_floating(field.type) or pa.types.is_nested(field.type) for field in schema
    )
