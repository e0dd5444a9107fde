"""Crown's type names as Arrow types, and tables of other people's making."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from crown.errors import InvalidChange

_TYPES = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type in which the kernel gives a column of this type.

    >>> arrow_type("decimal(12,2)")
    Decimal128Type(decimal128(12, 2))
    """
    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(match[1]), int(match[2]))
    return _TYPES[name]


# Columns of NULLs take no memory at all, so their length may be anything. More rows than this need a bit each.
_MOST_EMPTY_ROWS = 1 << 24


def read_table(data: Any, name: str) -> pa.Table:
    """Return what has `__arrow_c_stream__` as a table; `name` is the table that it has changes of.

    The C interface carries no sizes, so whoever imports an array must believe its length and its last offset. What
    pyarrow holds can still be compared with the memory that is there, which takes microseconds: no value is read.
    """
    try:
        table = _as_table(data)
    except Exception as error:
        raise _broken(error, name) from error
    check_table(table, name)
    if table.num_rows > max(_MOST_EMPTY_ROWS, 8 * table.get_total_buffer_size()):
        raise InvalidChange(
            f"table {name!r}: {table.num_rows} changes are too many at once",
            code="CROWN-CHANGE-SIZE",
            hint="apply them in several batches",
        )
    return table


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    return data if isinstance(data, pa.Table) else pa.table(data)


def check_table(table: pa.Table, name: str, *, full: bool = False) -> None:
    """Raise `InvalidChange` if a column breaks the Arrow format; with `full` every value is looked at."""
    try:
        table.validate(full=full)
    except pa.ArrowException as error:
        raise _broken(error, name, _broken_column(table, full=full)) from error
    for column, values in zip(table.column_names, table.columns, strict=True):
        if any(_miscounts_nulls(chunk) for chunk in values.iterchunks()):
            raise _broken(ValueError("the count of NULLs is not that of the validity bitmap"), name, column)


def _broken_column(table: pa.Table, *, full: bool) -> str | None:
    for column, values in zip(table.column_names, table.columns, strict=True):
        try:
            values.validate(full=full)
        except pa.ArrowException:
            return str(column)
    return None


def _miscounts_nulls(array: pa.Array) -> bool:
    """Whether the bitmap has other NULLs than are counted: pyarrow does not export a bitmap when the count is 0."""
    if not len(array) or (bitmap := array.buffers()[0]) is None:
        return False
    first, last = array.offset, array.offset + len(array)
    bits: int = int.from_bytes(memoryview(bitmap)[first // 8 : (last + 7) // 8], "little") >> first % 8
    present = (bits & (1 << len(array)) - 1).bit_count()
    return present != len(array) - int(array.null_count)


def _broken(error: Exception, name: str, column: str | None = None) -> InvalidChange:
    place = f"table {name!r}" if column is None else f"table {name!r}, column {column!r}"
    return InvalidChange(
        f"{place}: the changes can't be read",
        code="CROWN-CHANGE-ARROW",
        reason=str(error) or type(error).__name__,
        hint="the data breaks the Arrow format: write it with another library or version, or give plain rows",
    )
