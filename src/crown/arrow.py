"""Crown's type names as Arrow types."""

from __future__ import annotations

import re

import pyarrow as pa

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
