"""Convert between Spark's types and Crown's: tables from DataFrames, and the schema of a view's deltas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
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

from crown import types
from crown.changes import AFTER, ATTEMPT, BATCH, CHANGE_TYPE, COMMIT_COLUMNS, MULTIPLICITY, POSITION
from crown.errors import SchemaError
from crown.ir.plan import Plan

# Between Spark and the cells, this replaces `_change_type`: whether the row is deleted; null if the
# change type is unknown.
DELETED = "_deleted"
# Of a record that can't be read: its text and the fault; of one that only a table with a primary
# key can take, its text (empty: it belongs to the record of the row before).
CORRUPT = "_corrupt_record"
CORRUPT_REASON = "_corrupt_reason"
KEYED_RECORD = "_keyed_record"
FEED_COLUMNS = COMMIT_COLUMNS | {CHANGE_TYPE, MULTIPLICITY, CORRUPT, CORRUPT_REASON, KEYED_RECORD}

_SPARK_TYPES: dict[types.DataType, DataType] = {
    types.BOOLEAN: BooleanType(),
    types.INT8: ByteType(),
    types.INT16: ShortType(),
    types.INT32: IntegerType(),
    types.INT64: LongType(),
    types.FLOAT32: FloatType(),
    types.FLOAT64: DoubleType(),
    types.STRING: StringType(),
    types.BINARY: BinaryType(),
    types.DATE: DateType(),
    types.TIMESTAMP: TimestampType(),
    types.TIMESTAMP_NTZ: TimestampNTZType(),
}
_CROWN_TYPES = {type(spark): crown for crown, spark in _SPARK_TYPES.items()}


def as_struct(schema: StructType | str) -> StructType:
    """Return a schema that may be given as DDL text."""
    if isinstance(schema, StructType):
        return schema
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed


def spark_type(type_: types.DataType) -> DataType:
    """
    >>> spark_type(types.decimal(12, 2))
    DecimalType(12,2)
    >>> spark_type(types.array_of(types.STRING)).simpleString()
    'array<string>'
    """
    if (parts := type_.as_decimal) is not None and type_.is_decimal:
        return DecimalType(*parts)
    if type_.element is not None:
        return ArrayType(spark_type(type_.element))
    if (entry := type_.entry) is not None:
        return MapType(spark_type(entry[0]), spark_type(entry[1]))
    if type_.is_nested:
        return StructType([StructField(name, spark_type(field)) for name, field in type_.fields])
    if type_ == types.UUID:
        return StringType()
    if type_ not in _SPARK_TYPES:
        raise SchemaError(
            f"a view on Spark can't have a column of type {type_.sql_name}",
            code="CROWN-SCHEMA-TYPE",
            hint="take its parts as columns, or cast it to a string",
        )
    return _SPARK_TYPES[type_]


def crown_type(type_: DataType) -> types.DataType | None:
    """Return the name of a Spark type in plans; None where Crown has no such type."""
    try:
        return _crown_type(type_)
    except types.TooDeep:
        return None


def _crown_type(type_: DataType) -> types.DataType | None:
    match type_:
        case DecimalType():
            return types.exact_decimal(type_.precision, type_.scale)
        case ArrayType():
            element = crown_type(type_.elementType)
            return None if element is None else types.array_of(element)
        case MapType():
            key, value = crown_type(type_.keyType), crown_type(type_.valueType)
            return None if key is None or value is None else types.map_of(key, value)
        case StructType():
            fields = [(field.name, crown_type(field.dataType)) for field in type_.fields]
            known = {name.lower(): (name, field) for name, field in fields if field is not None}
            # Names differ by more than case, as those of columns do.
            return types.struct_of(known.values()) if known and len(known) == len(fields) else None
    return _CROWN_TYPES.get(type(type_)) or (types.STRING if isinstance(type_, StringType) else None)


def table_schema(
    tables: Mapping[str, DataFrame],
    *,
    keys: Mapping[str, Sequence[str]],
    profiles: Mapping[str, str],
    windows: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """What the SQL layer must know of the tables. A query that reads a column of a type that Crown does not take from
    Spark is refused by its name.
    """
    for option in (keys, profiles, windows):
        for name in option:
            if name not in tables:
                raise SchemaError(f"there is no table {name!r}", code="CROWN-SCHEMA-OPTION")
    return {
        name: {
            "columns": {field.name: _column_type(field.dataType) for field in _own(frame)},
            "not_null": tuple(field.name for field in _own(frame) if not field.nullable),
            "primary_key": tuple(keys.get(name, ())),
            "profile": profiles.get(name, "arbitrary" if frame.isStreaming else "static"),
            "window": windows.get(name),
        }
        for name, frame in tables.items()
    }


def _own(frame: DataFrame) -> list[StructField]:
    """Return the table's own columns."""
    return [field for field in frame.schema.fields if field.name not in _feed_columns(frame)]


def _column_type(type_: DataType) -> str:
    written = type_.simpleString()
    own = crown_type(type_)
    if own is None:
        return types.UnreadType("null", written.upper())
    # A nested type's text does not quote the names of its fields.
    return own if own.is_nested else written


def _feed_columns(frame: DataFrame) -> frozenset[str]:
    """Return the columns of a table's changes that are not the table's."""
    numbered = frozenset({CHANGE_TYPE, BATCH, POSITION})
    if not numbered <= set(frame.columns):
        return FEED_COLUMNS
    return FEED_COLUMNS | numbered | {AFTER, ATTEMPT}


def output_schema(plan: Plan, *, names: Sequence[str] | None = None, deltas: bool = True) -> StructType:
    """Return the columns of the view, by the plan's names or others; as deltas with `_change_type` and, for a bag,
    `_multiplicity`.
    """
    shown = [column.name for column in plan.columns] if names is None else names
    fields = [
        StructField(name, spark_type(column.type), column.nullable)
        for name, column in zip(shown, plan.columns, strict=True)
    ]
    if deltas:
        _check_names(shown)
        fields.append(StructField(CHANGE_TYPE, StringType(), False))
        if plan.bag:
            fields.append(StructField(MULTIPLICITY, LongType(), False))
    return StructType(fields)


def _check_names(names: Sequence[str]) -> None:
    """Reject columns whose names are reserved in deltas."""
    for name in names:
        if name.lower() in (CHANGE_TYPE, MULTIPLICITY, BATCH, AFTER, ATTEMPT, POSITION):
            raise SchemaError(
                f"the query has an output column {name!r}",
                code="CROWN-SQL-RESERVED-NAME",
                reason="deltas already have a column of that name",
                hint="rename the column with AS",
            )
