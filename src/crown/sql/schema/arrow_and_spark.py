"""Columns of Arrow and Spark schemas. PySpark is not imported: its objects are recognised by their class names."""

from __future__ import annotations

from typing import Any

import pyarrow

from crown.arrow import crown_type
from crown.sql.typenames import from_name
from crown.types import DataType

SchemaColumn = tuple[str, DataType | None, bool, str]  # name, type (None: not supported), nullable, type as written


def columns(value: Any) -> list[SchemaColumn] | None:
    """The columns of a pyarrow or Spark schema, or of anything that exports an Arrow schema; None for other things."""
    if type(value).__name__ == "StructType" and hasattr(value, "fields"):
        return [(f.name, _spark_type(f.dataType), bool(f.nullable), str(f.dataType)) for f in value.fields]
    if hasattr(value, "schema") and type(getattr(value, "schema", None)).__name__ == "StructType":
        return columns(value.schema)
    if hasattr(value, "__arrow_c_schema__") or hasattr(value, "schema"):
        schema = value if isinstance(value, pyarrow.Schema) else getattr(value, "schema", value)
        if not isinstance(schema, pyarrow.Schema):
            if not hasattr(schema, "__arrow_c_schema__"):
                return None
            schema = pyarrow.schema(schema)
        return [(f.name, type_of_arrow(f.type), f.nullable, str(f.type)) for f in schema]
    return None


def is_arrow_type(value: Any) -> bool:
    """Whether the value is a pyarrow DataType, of whatever kind."""
    return isinstance(value, pyarrow.DataType)


def type_of_arrow(value: Any) -> DataType | None:
    """Return the type of a pyarrow DataType; None for anything else."""
    return crown_type(value) if is_arrow_type(value) else None


def _spark_type(value: Any) -> DataType | None:
    return from_name(value.simpleString())
