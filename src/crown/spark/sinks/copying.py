"""Convert rows of deltas to the text format of PostgreSQL's COPY.

Spark gives Python a timestamp in the time zone of the driver's process, which loses an hour a year. So timestamps are
read as microseconds and written as text in UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from crown.errors import InvalidChange, SchemaError
from crown.spark.flow.selection import quoted
from crown.spark.sinks.kafka import JSON

_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
    ArrayType: "jsonb",
    MapType: "jsonb",
    StructType: "jsonb",
}
_EPOCH = datetime.datetime(1970, 1, 1)
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
# The text \u0000, unless its backslash is itself escaped.
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
WEIGHT = "_weight"


def postgres_type(field: StructField) -> str:
    """Return the type of a column, as PostgreSQL itself writes it."""
    type_ = field.dataType
    if isinstance(type_, DecimalType):
        return f"numeric({type_.precision},{type_.scale})"
    if isinstance(type_, StringType):
        return "text"
    if type(type_) not in _TYPES:
        raise SchemaError(
            f"column {field.name!r} is of type {type_.simpleString()}",
            code="CROWN-SINK-TYPE",
            reason="the PostgreSQL sink supports numbers, strings, booleans, binary, dates, timestamps and, as jsonb, "
            "arrays, structs and maps",
            hint="cast the column, or leave it out",
        )
    return _TYPES[type(type_)]


def readable(fields: Sequence[StructField]) -> list[Column]:
    """Return the columns in a form that reaches Python unchanged."""
    columns = []
    for position, field in enumerate(fields):
        column = F.col(quoted(field.name))
        if isinstance(field.dataType, TimestampType):
            column = F.unix_micros(column)
        elif isinstance(field.dataType, TimestampNTZType):
            column = column.cast("string")
        elif isinstance(field.dataType, DateType):
            column = F.unix_date(column)
        elif _TYPES.get(type(field.dataType)) == "jsonb":
            # In UTC, so that a row that is deleted has the text that it had when it was inserted.
            column = F.to_json(column, {**JSON, "timeZone": "UTC"})
        columns.append(column.alias(f"c{position}"))
    return columns


def encoder(fields: Sequence[StructField]) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that formats a row as a line, with its weight last."""
    writers = [(field.name, _writer(field.dataType)) for field in fields] + [(WEIGHT, str)]

    def encode(row: Sequence[Any]) -> bytes:
        texts = [
            "\\N" if value is None else _written(name, write, value)
            for (name, write), value in zip(writers, row, strict=True)
        ]
        return ("\t".join(texts) + "\n").encode()

    return encode


def _written(name: str, write: Callable[[Any], str], value: Any) -> str:
    try:
        return write(value)
    except (ValueError, OverflowError) as error:
        raise InvalidChange(
            f"PostgreSQL can't store a value of column {name!r}",
            code="CROWN-SINK-VALUE",
            reason=f"{str(value)[:80]!r}: {error}",
            hint="replace or filter such values in the query",
        ) from error


def _writer(type_: DataType) -> Callable[[Any], str]:
    match type_:
        case StringType():
            return _text
        case BinaryType():
            return lambda value: "\\\\x" + bytes(value).hex()
        case TimestampType():
            return lambda value: f"{_moment(value)}+00"
        case DateType():
            return lambda value: (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        case FloatType() | DoubleType():
            return repr
        case ArrayType() | MapType() | StructType():
            return _json
        case _:
            return str


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("a string with a NUL character")
    return value.translate(_ESCAPES)


def _json(value: str) -> str:
    if _NUL_IN_JSON.search(value):
        raise ValueError("a string with a NUL character")
    return value.translate(_ESCAPES)


def _moment(microseconds: int) -> str:
    return (_EPOCH + datetime.timedelta(microseconds=microseconds)).isoformat(sep=" ")
