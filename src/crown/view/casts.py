"""Cast the values that pandas and CSV files hold for typed columns, if the cast is lossless.

These are dates and times as ISO 8601 text, floats for decimals and integers, and numpy scalars. A value that can't be
cast exactly is left unchanged and rejected later.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crown.arrow import arrow_type
from crown.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType

# Dates and times as pandas, SQL and CSV files write them. More digits than microseconds would be
# lost.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?(Z|[+-]\d\d(:?\d\d)?)?)?")


def cast_rows(types: Sequence[DataType], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows with each value cast to the type of its column, or unchanged if it can't be.

    >>> from crown.types import DataType
    >>> cast_rows([DataType("decimal(4,1)"), DATE], [(0.5, "2024-02-29")])
    [(Decimal('0.5'), datetime.date(2024, 2, 29))]
    """
    return [tuple(_cast(value, kind) for value, kind in zip(row, types, strict=True)) for row in rows]


def _cast(value: Any, kind: DataType) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isfinite(value):
        if kind.is_decimal:
            return Decimal(repr(value))
        return int(value) if kind.is_integer and value.is_integer() else value
    if kind == DATE and isinstance(value, datetime.datetime):
        return value.date() if _is_midnight(value) else value
    if isinstance(value, str):
        return _time(value, kind)
    return value


def _is_midnight(value: datetime.datetime) -> bool:
    # (pandas' NaT is a datetime that equals nothing, not even itself.)
    return value == value and value.tzinfo is None and value.time() == datetime.time()


def _time(text: str, kind: DataType) -> Any:
    if not _ISO.fullmatch(text):
        return text
    try:
        if kind == DATE:
            return datetime.date.fromisoformat(text)
        if kind in (TIMESTAMP, TIMESTAMP_NTZ):
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    return text


def may_be_cast(found: pa.DataType, kind: DataType) -> bool:
    """Whether `cast_column` may change a column of this Arrow type; most data already has the right types."""
    if _is_text(found):
        return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return bool((pa.types.is_floating(found) or pa.types.is_null(found)) and found != arrow_type(kind))


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def cast_column(column: pa.ChunkedArray, kind: DataType) -> pa.ChunkedArray:
    """Return the column cast to the type of the table's column, or unchanged if some value can't be cast."""
    if not may_be_cast(column.type, kind):
        return column
    text, wanted = _is_text(column.type), arrow_type(kind)
    if not text and column.null_count == len(column):
        # pandas gives a column without values a float type.
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    if not text and not kind.is_decimal and not kind.is_integer:
        return column
    try:
        if text:
            return _from_text(column, kind, wanted)
        return _decimals(column, wanted) if kind.is_decimal else pc.cast(column, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def _decimals(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return floats as decimals with the digits of their shortest form: the float 19.99 becomes the decimal 19.99."""
    values = column.to_pylist()
    if not all(value is None or math.isfinite(value) for value in values):
        raise pa.ArrowInvalid("not a decimal")
    exact = [None if value is None else Decimal(repr(value)) for value in values]
    return pa.chunked_array([pa.array(exact, wanted)])


def _from_text(column: pa.ChunkedArray, kind: DataType, wanted: pa.DataType) -> pa.ChunkedArray:
    if kind == TIMESTAMP:
        # Text without a time zone is in UTC, as everywhere else.
        values = [None if text is None else _utc(text) for text in column.to_pylist()]
        return pa.chunked_array([pa.array(values, wanted)])
    return pc.cast(column, wanted)


def _utc(text: str) -> datetime.datetime:
    if not _ISO.fullmatch(text):
        raise pa.ArrowInvalid("not a time")
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found
