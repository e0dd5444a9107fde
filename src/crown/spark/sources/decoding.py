"""Decode text records into changes of a table: the part that all record formats have in common.

A record is read as a whole or is invalid as a whole: it keeps its text in `_corrupt_record` and its fault in
`_corrupt_reason`, and `maintain` treats it by its `on_invalid`. Some records only make sense for a table with a primary
key, which the source doesn't know. Those have their text in `_keyed_record`, and `maintain` takes them as invalid where
the table has no key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StringType, StructField, StructType

from crown.changes import CHANGE_TYPE, INSERT
from crown.errors import SchemaError
from crown.spark.schema import CORRUPT, CORRUPT_REASON, KEYED_RECORD, crown_type, spark_type
from crown.spark.sources.encodings import Encodings, Meaning, Unreadable, ValueReader
from crown.spark.sources.nested import column_reader, find_field

_MARKS = (CHANGE_TYPE, CORRUPT, CORRUPT_REASON, KEYED_RECORD)
# Treated like the row before it: both belong to one record, which is counted once.
_SAME_RECORD = ""

Fields: TypeAlias = Mapping[str, Meaning]


@dataclass(frozen=True)
class RecordChange:
    """One row of a record; `keyed` says why it needs a primary key, None if it doesn't."""

    word: str
    row: Sequence[Any]
    keyed: str | None = None


@dataclass(frozen=True)
class RowReader:
    """Reads JSON objects as rows of a table."""

    row: StructType
    encodings: Encodings

    def whole(self, image: Any, fields: Fields | None, name: str) -> list[Any]:
        """Return a row that must be complete."""
        values, fault = self.partial(image, fields, name)
        if fault is not None:
            raise Unreadable(fault)
        for field, value in zip(self.row.fields, values, strict=True):
            if value is None and not field.nullable:
                raise Unreadable(f"column {field.name} is NULL")
        return values

    def partial(self, image: Any, fields: Fields | None, name: str) -> tuple[list[Any], str | None]:
        """Return the row in an object, and the first fault in it; values with a fault are None."""
        if not isinstance(image, dict):
            raise Unreadable(f"{name} is not an object")
        fault = None
        values: list[Any] = []
        for column, own, read in self._readers:
            found = find_field(image, column)
            value = None
            if found is not None and image[found] is not None:
                meaning = (fields or {}).get(found, own)
                try:
                    value = read(image[found], own if meaning == Meaning() else meaning)
                except Unreadable as error:
                    fault = fault or f"column {column}: {error}"
            values.append(value)
        return values, fault

    @cached_property
    def _readers(self) -> list[tuple[str, Meaning, ValueReader]]:
        found = []
        for field in self.row.fields:
            type_ = crown_type(field.dataType)
            read = None if type_ is None else column_reader(field.name, type_, self.encodings)
            if type_ is None or read is None:
                raise SchemaError(
                    f"column {field.name} of type {field.dataType.simpleString()} can't be read from records",
                    code="CROWN-SOURCE-TYPE",
                    hint="leave the column out of the schema",
                )
            found.append((field.name, self.encodings.meaning(field.name, type_), read))
        return found

    def check(self) -> None:
        """Raise for columns that can't be read."""
        assert self._readers is not None


# The changes of a record, from the texts of its value and key.
RecordReader: TypeAlias = Callable[[RowReader, str | None, str | None], list[RecordChange]]


def decoded(records: DataFrame, rows: RowReader, read: RecordReader, *, value: str, key: str) -> DataFrame:
    """Return the changes of records with their text in the column `value`, and perhaps their key in `key`."""
    rows.check()
    output = StructType(
        [
            *(StructField(field.name, _nullable(field.dataType)) for field in rows.row.fields),
            *(StructField(mark, StringType()) for mark in _MARKS),
        ]
    )
    texts = [F.col(value).cast("string").alias("value")]
    texts.append((F.col(key).cast("string") if key in records.columns else F.lit(None).cast("string")).alias("key"))
    return records.select(*texts).mapInArrow(Decoder(rows, output, read), output)


def _nullable(type_: DataType) -> DataType:
    """The type with parts that may be NULL, which records can always have."""
    found = crown_type(type_)
    return spark_type(found) if found is not None and found.is_nested else type_


@dataclass(frozen=True)
class Decoder:
    """For `mapInArrow`: texts of values and keys in, changes out."""

    rows: RowReader
    output: StructType
    read: RecordReader

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.output, timezone="UTC")
        for batch in batches:
            rows: list[tuple[Any, ...]] = []
            for text, key in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                rows += self._marked(text, key)
            columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((),) * len(schema)
            arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _marked(self, text: str | None, key: str | None) -> list[tuple[Any, ...]]:
        shown = text if text is not None else f"(no value; the key is {key})"
        try:
            changes = self.read(self.rows, text, key)
        except Unreadable as error:
            return [(*(None for _ in self.rows.row.fields), INSERT, shown, str(error), None)]
        reason = next((change.keyed for change in changes if change.keyed is not None), None)
        marks = [shown] + [_SAME_RECORD] * len(changes) if reason is not None else [None] * len(changes)
        return [(*change.row, change.word, None, reason, mark) for change, mark in zip(changes, marks, strict=False)]


def parse_json(text: str) -> Any:
    """Parse JSON, with numbers exactly as they are written."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=str)
    except (ValueError, InvalidOperation, RecursionError) as error:
        raise Unreadable("the record is not JSON") from error


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values as the decoder returns them, dates and timestamps as numbers."""
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(type_)
    return pa.array(values, type_)
