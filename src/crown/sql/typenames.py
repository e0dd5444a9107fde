"""Data types as SQL text and sqlglot name them."""

from __future__ import annotations

from sqlglot import exp

from crown import types
from crown.types import DataType

Kind = exp.DataType.Type
_BY_KIND = {
    Kind.BOOLEAN: types.BOOLEAN,
    Kind.TINYINT: types.INT8,
    Kind.SMALLINT: types.INT16,
    Kind.INT: types.INT32,
    Kind.MEDIUMINT: types.INT32,
    Kind.BIGINT: types.INT64,
    Kind.FLOAT: types.FLOAT32,
    Kind.DOUBLE: types.FLOAT64,
    Kind.CHAR: types.STRING,
    Kind.NCHAR: types.STRING,
    Kind.VARCHAR: types.STRING,
    Kind.NVARCHAR: types.STRING,
    Kind.TEXT: types.STRING,
    Kind.BINARY: types.BINARY,
    Kind.VARBINARY: types.BINARY,
    Kind.DATE: types.DATE,
    Kind.TIMESTAMPTZ: types.TIMESTAMP,
    Kind.TIMESTAMPLTZ: types.TIMESTAMP,
    Kind.TIMESTAMP: types.TIMESTAMP_NTZ,
    Kind.TIMESTAMPNTZ: types.TIMESTAMP_NTZ,
    Kind.DATETIME: types.TIMESTAMP_NTZ,
    Kind.TIME: types.TIME,
    Kind.UUID: types.UUID,
    Kind.UTINYINT: types.UINT8,
    Kind.USMALLINT: types.UINT16,
    Kind.UINT: types.UINT32,
    Kind.UBIGINT: types.decimal(20, 0),
    Kind.JSON: types.STRING,
    Kind.VARIANT: types.STRING,
}
_OTHER_NAMES = {"long": types.INT64, "str": types.STRING, "bool": types.BOOLEAN}


def from_sqlglot(data_type: exp.DataType) -> DataType | None:
    """Return the type of a column definition or CAST; None when Crown has no such type."""
    kind = data_type.this
    if isinstance(kind, exp.Interval):
        return _interval(kind.args.get("unit"))
    if kind in (Kind.DECIMAL, Kind.BIGDECIMAL):
        numbers = [int(p.name) for p in data_type.expressions if p.name.isdigit()]
        precision = numbers[0] if numbers else 10
        scale = numbers[1] if len(numbers) > 1 else 0
        return types.exact_decimal(precision, scale)
    if kind in (Kind.ARRAY, Kind.LIST):
        return _array(data_type)
    if kind == Kind.MAP:
        return _map(data_type)
    return _struct(data_type) if kind == Kind.STRUCT else _BY_KIND.get(kind)


def _interval(unit: exp.Expr | None) -> DataType | None:
    """`INTERVAL DAY TO SECOND` or `INTERVAL DAY`."""
    if isinstance(unit, exp.IntervalSpan):
        return types.interval_type(unit.this.name.lower(), unit.expression.name.lower())
    return None if unit is None else types.interval_type(unit.name.lower(), unit.name.lower())


def _array(data_type: exp.DataType) -> DataType | None:
    element = _part(data_type.expressions[0]) if len(data_type.expressions) == 1 else None
    return None if element is None else types.array_of(element)


def _map(data_type: exp.DataType) -> DataType | None:
    parts = [_part(part) for part in data_type.expressions]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    return types.map_of(parts[0], parts[1])


def _struct(data_type: exp.DataType) -> DataType | None:
    fields = [(field.name, _part(field.args.get("kind"))) for field in data_type.expressions]
    known = [(name, type_) for name, type_ in fields if name and type_ is not None]
    return types.struct_of(known) if fields and len(known) == len(fields) else None


def _part(node: exp.Expr | None) -> DataType | None:
    """The type within a nested one, where an unsigned integer is a larger signed one."""
    type_ = from_sqlglot(node) if isinstance(node, exp.DataType) else None
    return None if type_ is None else type_.read_as


def from_name(text: str) -> DataType | None:
    """Return the type of a dict schema: Crown's own names, or any SQL type name.

    >>> from_name("int64"), from_name("bigint"), from_name("decimal(10, 2)")
    ('int64', 'int64', 'decimal(10,2)')
    """
    compact = text.strip().lower().replace(" ", "")
    if compact in _OTHER_NAMES:
        return _OTHER_NAMES[compact]
    try:
        return DataType.parse(compact)
    except ValueError:
        return _from_sql(text)


def is_type(text: str) -> bool:
    """Return whether some database has a type of this name, though Crown may not."""
    try:
        return bool(exp.DataType.build(text, dialect="spark").this != Kind.USERDEFINED)
    except Exception:  # sqlglot raises several kinds of errors for text that is not a type
        return False


def _from_sql(text: str) -> DataType | None:
    try:
        return from_sqlglot(exp.DataType.build(text, dialect="spark"))
    except Exception:  # sqlglot raises several kinds of errors for text that is not a type
        return None
