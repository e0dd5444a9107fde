"""Convert between Crown's types and Arrow's, and import Arrow data from other libraries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from crown import types
from crown.errors import InvalidChange
from crown.types import DataType

_TYPES = {
    types.BOOLEAN: pa.bool_(),
    types.INT8: pa.int8(),
    types.INT16: pa.int16(),
    types.INT32: pa.int32(),
    types.INT64: pa.int64(),
    types.FLOAT32: pa.float32(),
    types.FLOAT64: pa.float64(),
    types.STRING: pa.string(),
    types.BINARY: pa.binary(),
    types.DATE: pa.date32(),
    types.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    types.TIMESTAMP_NTZ: pa.timestamp("us"),
    types.TIME: pa.time64("us"),
    types.UINT8: pa.int64(),  # what the kernel returns; it accepts any integers that fit
    types.UINT16: pa.int64(),
    types.UINT32: pa.int64(),
}
_CROWN_TYPES = {arrow: own for own, arrow in _TYPES.items() if own not in (types.UINT8, types.UINT16, types.UINT32)} | {
    pa.uint8(): types.UINT8,
    pa.uint16(): types.UINT16,
    pa.uint32(): types.UINT32,
    pa.uint64(): types.decimal(20, 0),
    pa.large_string(): types.STRING,
    pa.string_view(): types.STRING,
    pa.large_binary(): types.BINARY,
}


def arrow_type(type_: DataType) -> pa.DataType:
    """Return the Arrow type that the kernel uses for a column of this type.

    >>> arrow_type(DataType("decimal(12,2)"))
    Decimal128Type(decimal128(12, 2))
    """
    if type_.element is not None:
        return pa.list_(pa.field("element", arrow_type(type_.element)))
    if type_.entry is not None:
        return pa.map_(*map(arrow_type, type_.entry))
    if type_.is_nested:
        return pa.struct([pa.field(name, arrow_type(field)) for name, field in type_.fields])
    if type_.is_interval:
        return pa.month_day_nano_interval() if type_.is_months else pa.duration("us")
    if type_ == types.UUID:
        return pa.string()
    return pa.decimal128(type_.precision, type_.scale) if type_.is_decimal else _TYPES[type_]


def crown_type(arrow: pa.DataType) -> DataType | None:
    """Return the type of a column of Arrow data; None where Crown has no such type.

    >>> crown_type(pa.large_string()), crown_type(pa.list_(pa.int64())), crown_type(pa.float16())
    ('string', 'array<int64>', None)
    """
    kinds = pa.types
    if kinds.is_dictionary(arrow):
        return crown_type(arrow.value_type)
    if kinds.is_timestamp(arrow):
        return types.TIMESTAMP if arrow.tz else types.TIMESTAMP_NTZ
    if kinds.is_decimal(arrow):
        return types.exact_decimal(arrow.precision, arrow.scale)
    if kinds.is_date(arrow):
        return types.DATE
    if kinds.is_time(arrow):
        return types.TIME
    if kinds.is_duration(arrow):
        return types.DAY_TIME
    if kinds.is_interval(arrow):
        return types.YEAR_MONTH
    if kinds.is_nested(arrow):
        return _nested_type(arrow)
    return _CROWN_TYPES.get(arrow)


def _nested_type(arrow: pa.DataType) -> DataType | None:
    kinds = pa.types
    if kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow):
        element = crown_type(arrow.value_type)
        return None if element is None else types.array_of(element.read_as)
    if kinds.is_map(arrow):
        key, value = crown_type(arrow.key_type), crown_type(arrow.item_type)
        return None if key is None or value is None else types.map_of(key.read_as, value.read_as)
    if not kinds.is_struct(arrow) or not arrow.num_fields:
        return None
    fields = [(field.name, crown_type(field.type)) for field in arrow]
    known = [(name, type_.read_as) for name, type_ in fields if type_ is not None]
    return types.struct_of(known) if len(known) == len(fields) else None


# Columns of NULLs take no memory at all, so their length may be anything. More rows than this need
# a bit each.
_MOST_EMPTY_ROWS = 1 << 24


def read_table(data: Any, name: str) -> pa.Table:
    """Return what has `__arrow_c_stream__` as a table; `name` is the table that it has changes of.

    The C interface carries no sizes, so an importer must trust an array's length and last offset. For pyarrow's arrays,
    these can still be compared with the allocated memory, which takes microseconds: no value is read.
    """
    try:
        table = _as_table(data)
    except Exception as error:
        raise _broken(error, name) from error
    check_table(table, name)
    if table.num_rows > max(_MOST_EMPTY_ROWS, 8 * table.get_total_buffer_size()):
        raise InvalidChange(
            f"table {name!r}: {table.num_rows} changes are too many for one batch",
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
    """Raise `InvalidChange` if a column breaks the Arrow format; with `full` every value is checked."""
    try:
        table.validate(full=full)
    except pa.ArrowException as error:
        raise _broken(error, name, _broken_column(table, full=full)) from error
    for column, values in zip(table.column_names, table.columns, strict=True):
        if any(map(_miscounts_nulls, values.chunks)):
            raise _broken(ValueError("the NULL count does not match the validity bitmap"), name, column)


def _broken_column(table: pa.Table, *, full: bool) -> str | None:
    for column, values in zip(table.column_names, table.columns, strict=True):
        try:
            values.validate(full=full)
        except pa.ArrowException:
            return str(column)
    return None


def _miscounts_nulls(array: pa.Array) -> bool:
    """Whether the bitmap disagrees with the NULL count: pyarrow does not export a bitmap when the count is 0."""
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
        hint="the data is not valid Arrow: write it with another library or version, or give plain rows",
    )
