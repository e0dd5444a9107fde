"""Columns of Arrow and Spark schemas. Neither library is imported unless one of its objects is given."""

from __future__ import annotations

from typing import Any

from crown import types

ForeignColumn = tuple[str, str | None, bool, str]  # name, type (None: not maintained), nullable, type as written


def columns(value: Any) -> list[ForeignColumn] | None:
    """The columns of a pyarrow or Spark schema, or of anything that exports an Arrow schema; None for other things."""
    if type(value).__name__ == "StructType" and hasattr(value, "fields"):
        return [(f.name, _spark_type(f.dataType), bool(f.nullable), str(f.dataType)) for f in value.fields]
    if hasattr(value, "schema") and type(getattr(value, "schema", None)).__name__ == "StructType":
        return columns(value.schema)
    if hasattr(value, "__arrow_c_schema__") or hasattr(value, "schema"):
        import pyarrow

        schema = value if isinstance(value, pyarrow.Schema) else getattr(value, "schema", value)
        if not isinstance(schema, pyarrow.Schema):
            if not hasattr(schema, "__arrow_c_schema__"):
                return None
            schema = pyarrow.schema(schema)
        return [(f.name, arrow_type(f.type), f.nullable, str(f.type)) for f in schema]
    return None


def arrow_type(value: Any) -> str | None:
    """The type of a pyarrow DataType; None for anything else."""
    if not type(value).__module__.startswith("pyarrow"):
        return None
    import pyarrow.types as arrow
    from pyarrow import DataType

    if not isinstance(value, DataType):
        return None
    if arrow.is_dictionary(value):
        return arrow_type(value.value_type)
    if arrow.is_timestamp(value):
        return "timestamp" if value.tz else "timestamp_ntz"
    if arrow.is_decimal(value):
        return f"decimal({value.precision},{value.scale})" if 0 <= value.scale <= value.precision <= 38 else None
    tests = (
        (arrow.is_boolean, "boolean"),
        (arrow.is_int8, "int8"),
        (arrow.is_int16, "int16"),
        (arrow.is_int32, "int32"),
        (arrow.is_int64, "int64"),
        (arrow.is_float32, "float32"),
        (arrow.is_float64, "float64"),
        (arrow.is_string, "string"),
        (arrow.is_large_string, "string"),
        (arrow.is_string_view, "string"),
        (arrow.is_binary, "binary"),
        (arrow.is_large_binary, "binary"),
        (arrow.is_date, "date"),
    )
    return next((name for test, name in tests if test(value)), None)


def _spark_type(value: Any) -> str | None:
    return types.from_name(value.simpleString())
