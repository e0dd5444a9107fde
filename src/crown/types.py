"""Spark's type rules: promotion, decimal precision and scale, and the types other systems call by other names.

Types are the names of `crown.ir.expression`, and ``null`` for an untyped NULL until its context gives it one.
"""

from __future__ import annotations

import re
from typing import Literal as OneOf

from sqlglot import exp

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
NULL = "null"

_DIGITS_OF_INTEGER = {"int8": 3, "int16": 5, "int32": 10, "int64": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6
_SPARK_NAME = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}

Kind = exp.DataType.Type
_BY_SQLGLOT = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "int8",
    Kind.SMALLINT: "int16",
    Kind.INT: "int32",
    Kind.MEDIUMINT: "int32",
    Kind.BIGINT: "int64",
    Kind.FLOAT: "float32",
    Kind.DOUBLE: "float64",
    Kind.CHAR: "string",
    Kind.NCHAR: "string",
    Kind.VARCHAR: "string",
    Kind.NVARCHAR: "string",
    Kind.TEXT: "string",
    Kind.BINARY: "binary",
    Kind.VARBINARY: "binary",
    Kind.DATE: "date",
    Kind.TIMESTAMPTZ: "timestamp",
    Kind.TIMESTAMPLTZ: "timestamp",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPNTZ: "timestamp_ntz",
    Kind.DATETIME: "timestamp_ntz",
}


def spark_name(type_: str) -> str:
    """The type in Spark SQL's words."""
    return _SPARK_NAME.get(type_, type_.upper())


def decimal(precision: int, scale: int) -> str:
    """A decimal type, adjusted to 38 digits as Spark does: the scale gives way, but not below 6.

    >>> decimal(41, 20)
    'decimal(38,17)'
    """
    if precision > _MAX_PRECISION:
        digits = precision - scale
        scale = max(_MAX_PRECISION - digits, min(scale, _MIN_ADJUSTED_SCALE))
        precision = _MAX_PRECISION
    return f"decimal({precision},{scale})"


def decimal_parts(type_: str) -> tuple[int, int] | None:
    """(precision, scale) of a decimal; of the decimal that holds an integer type; None for all others."""
    if type_ in _DIGITS_OF_INTEGER:
        return _DIGITS_OF_INTEGER[type_], 0
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_decimal(type_: str) -> bool:
    return type_.startswith("decimal(")


def is_numeric(type_: str) -> bool:
    return type_ in INTEGERS or type_ in FLOATS or is_decimal(type_)


def common_type(left: str, right: str) -> str | None:
    """The type in which two values are compared or shown in one column; None where Spark finds none.

    >>> common_type("int32", "decimal(5,2)"), common_type("date", "boolean")
    ('decimal(12,2)', None)
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if is_numeric(left) and is_numeric(right):
        return _common_numeric(left, right)
    if left in TEMPORAL and right in TEMPORAL:
        return "timestamp" if "timestamp" in (left, right) else "timestamp_ntz"
    if "string" in (left, right):  # ANSI Spark reads the string as the other type
        other = right if left == "string" else left
        if other in INTEGERS:
            return "int64"
        return "float64" if is_numeric(other) else other
    return None


def _common_numeric(left: str, right: str) -> str:
    if left in FLOATS or right in FLOATS:
        return "float32" if left == right == "float32" else "float64"
    if left in INTEGERS and right in INTEGERS:
        return INTEGERS[max(INTEGERS.index(left), INTEGERS.index(right))]
    return _widest_decimal(left, right)


def _widest_decimal(left: str, right: str) -> str:
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(s1, s2)
    return decimal(max(p1 - s1, p2 - s2) + scale, scale)


def _parts(type_: str) -> tuple[int, int]:
    parts = decimal_parts(type_)
    assert parts is not None, type_
    return parts


def widens(source: str, target: str) -> bool:
    """Whether every value of `source` has its own, distinct value in `target`: the cast can be undone.

    >>> widens("int32", "int64"), widens("int64", "float64")
    (True, False)
    """
    if source == target:
        return True
    if source in INTEGERS and target in INTEGERS:
        return INTEGERS.index(source) <= INTEGERS.index(target)
    if is_decimal(target) and (source in INTEGERS or is_decimal(source)):
        (p1, s1), (p2, s2) = _parts(source), _parts(target)
        return s2 >= s1 and p2 - s2 >= p1 - s1
    if target == "float64":
        return source in ("float32", "int8", "int16", "int32")
    return False


def _read_as_number(type_: str, other: str) -> str:
    """Beside an integer a string is read as a bigint, beside another number as a double; NULL is what the other is."""
    if type_ not in (NULL, "string"):
        return type_
    if other in (NULL, "string"):
        return "float64"
    if type_ == NULL:
        return other
    return "int64" if other in INTEGERS else "float64"


Arithmetic = OneOf["add", "subtract", "multiply", "divide", "modulo"]


def arithmetic_types(operator: Arithmetic, left: str, right: str) -> tuple[str, str] | None:
    """(type of both operands, type of the result), or None where Spark has no such operation.

    The operands' type is "decimal" where no decimal holds both: then each keeps its own.

    >>> arithmetic_types("multiply", "decimal(12,2)", "decimal(12,2)")
    ('decimal(12,2)', 'decimal(25,4)')
    """
    left, right = _read_as_number(left, right), _read_as_number(right, left)
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if not (is_decimal(left) or is_decimal(right)) or left in FLOATS or right in FLOATS:
        operand = _common_numeric(left, right)
        if operator == "divide" or is_decimal(operand):
            operand = "float64"
        return operand, operand
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    match operator:
        case "add" | "subtract":
            scale = max(s1, s2)
            result = decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "multiply":
            result = decimal(p1 + p2 + 1, s1 + s2)
        case "divide":
            scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            result = decimal(p1 - s1 + s2 + scale, scale)
        case "modulo":
            scale = max(s1, s2)
            result = decimal(min(p1 - s1, p2 - s2) + scale, scale)
    scale = max(s1, s2)
    fits = max(p1 - s1, p2 - s2) + scale <= _MAX_PRECISION
    return _widest_decimal(left, right) if fits else "decimal", result


def sum_type(type_: str) -> str | None:
    if type_ in INTEGERS:
        return "int64"
    if is_decimal(type_):
        precision, scale = _parts(type_)
        return decimal(min(_MAX_PRECISION, precision + 10), scale)
    return "float64" if type_ in FLOATS or type_ in (NULL, "string") else None


def average_type(type_: str) -> str | None:
    if is_decimal(type_):
        precision, scale = _parts(type_)
        return decimal(min(_MAX_PRECISION, precision + 4), min(_MAX_PRECISION, scale + 4))
    return "float64" if is_numeric(type_) or type_ in (NULL, "string") else None


def castable(source: str, target: str) -> bool:
    """Whether a value of `source` can be cast to `target`, as in Spark's ANSI mode.

    >>> castable("string", "date"), castable("date", "int32")
    (True, False)
    """
    if source == target or "string" in (source, target):
        return True
    if "binary" in (source, target):
        return False
    if is_numeric(source) or is_numeric(target):
        other = target if is_numeric(source) else source
        return is_numeric(other) or other in ("boolean", "timestamp")
    return source in TEMPORAL and target in TEMPORAL


def from_sqlglot(data_type: exp.DataType) -> str | None:
    """The type of a column definition or CAST; None when Crown has no such type."""
    kind = data_type.this
    if kind in (Kind.DECIMAL, Kind.BIGDECIMAL):
        numbers = [int(p.name) for p in data_type.expressions if p.name.isdigit()]
        precision = numbers[0] if numbers else 10
        scale = numbers[1] if len(numbers) > 1 else 0
        return f"decimal({precision},{scale})" if 1 <= precision <= _MAX_PRECISION and scale <= precision else None
    return _BY_SQLGLOT.get(kind)


def from_name(text: str) -> str | None:
    """The type of a dict schema: Crown's own names, or any SQL type name.

    >>> from_name("int64"), from_name("bigint"), from_name("decimal(10, 2)")
    ('int64', 'int64', 'decimal(10,2)')
    """
    compact = text.strip().lower().replace(" ", "")
    if compact in INTEGERS or compact in FLOATS or compact in TEMPORAL:
        return compact
    if compact in ("boolean", "string", "binary"):
        return compact
    if compact in ("long", "str", "bool"):
        return {"long": "int64", "str": "string", "bool": "boolean"}[compact]
    try:
        return from_sqlglot(exp.DataType.build(text, dialect="spark"))
    except Exception:  # sqlglot raises several kinds for text that is no type
        return None
