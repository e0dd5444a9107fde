"""From blobs of deltas back to rows: plain ones for the user, or packed again for a following stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from crown.spark.flow.chunks import read_blob
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.schema import CHANGE_TYPE, DELETED


@dataclass(frozen=True)
class Unpacker:
    """For `mapInArrow`: rows with a `blob` column in, the deltas that are in the blobs out."""

    schema: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        for delta in delta_batches(batches):
            yield conform(delta, schema)


@dataclass(frozen=True)
class Repacker:
    """For `mapInArrow`: one stage's deltas as the packed changes of a table of the next."""

    dispatcher: Dispatcher

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.dispatcher(map(_plain, delta_batches(batches)))


def delta_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("blob"):
            if blob.is_valid:
                yield from read_blob(memoryview(blob.as_buffer()))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in exactly the schema that Spark was told: by name, dictionaries decoded."""
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As a dispatcher takes it: without dictionaries, so that batches of several engines have one schema."""
    deleted = pc.equal(batch.column(CHANGE_TYPE), "delete")
    batch = batch.drop_columns([CHANGE_TYPE])
    arrays = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays([*arrays, deleted], names=[*batch.schema.names, DELETED])
