"""Data types and Spark's rules for them: promotion, casts, decimal precision and scale, types of aggregates.

A type equals its canonical text, which is also how plans write it: ``boolean``, ``int8``, ``int16``, ``int32``,
``int64``, ``float32``, ``float64``, ``decimal(p,s)``, ``string``, ``binary``, ``date``, ``timestamp`` (UTC
microseconds), ``timestamp_ntz``, ``time``, ``uuid``; ``interval_day_to_second`` and the
other intervals (months or microseconds, named by their first and last field); ``array<type>``, ``map<key,value>`` and
``struct<`name`:type,...>``; ``uint8``, ``uint16`` and ``uint32`` for columns of tables, which a query reads as the next
larger signed type; and ``null`` for an untyped NULL until its context gives it a type. The names in other systems are
defined where those are read: `crown.sql.typenames`, `crown.arrow`, `crown.spark.schema`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Self, TypeAlias
from typing import Literal as OneOf

MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6
_DECIMAL = re.compile(r"decimal\(([1-9]\d?),(0|[1-9]\d?)\)")
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_DIGITS = {"int8": 3, "int16": 5, "int32": 10, "int64": 20}
_PLAIN = frozenset(
    {*_BITS, "boolean", "float32", "float64", "string", "binary", "date", "timestamp", "timestamp_ntz", "null"}
    | {"time", "uuid", "uint8", "uint16", "uint32"}
)
# The fields of Spark's two kinds of intervals, and what one of each is in months or microseconds.
_YEAR_MONTH = {"year": 12, "month": 1}
_DAY_TIME = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_INTERVALS = {
    f"interval_{first}" if first == last else f"interval_{first}_to_{last}": (first, last)
    for fields in (tuple(_YEAR_MONTH), tuple(_DAY_TIME))
    for at, first in enumerate(fields)
    for last in fields[at:]
}
_READ_AS = {"uint8": "int16", "uint16": "int32", "uint32": "int64"}
_DEEPEST = 32  # types may be nested this deep


class TooDeep(ValueError):
    """A type is nested more deeply than any value may be."""


_SQL_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
}


class DataType(str):
    """A data type; anything else is a ValueError.

    >>> DataType("decimal(12,2)").scale, DataType("int64").is_integer, DataType("int64").sql_name
    (2, True, 'BIGINT')
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if text not in _PLAIN and text not in _INTERVALS and not (text.endswith(">") and _nested(text) is not None):
            found = _DECIMAL.fullmatch(text)
            if found is None or not _is_decimal(int(found[1]), int(found[2])):
                raise ValueError(f"{text!r} is not a type")
        return super().__new__(cls, text)

    @classmethod
    def parse(cls, text: Any) -> DataType:
        """Return the type of a stored column: like the constructor, but ``null`` is rejected."""
        if not isinstance(text, str) or text == "null":
            raise ValueError(f"{text!r} is not a type")
        return cls(text)

    @property
    def is_nested(self) -> bool:
        return self.endswith(">")

    @property
    def element(self) -> DataType | None:
        """The type of an array's elements; None for other types."""
        return _nested(self)[1][0][1] if self.startswith("array<") else None

    @property
    def entry(self) -> tuple[DataType, DataType] | None:
        """The types of a map's keys and values; None for other types."""
        if not self.startswith("map<"):
            return None
        (_, key), (_, value) = _nested(self)[1]
        return key, value

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        """The names and types of a struct's fields; none for other types."""
        return _nested(self)[1] if self.startswith("struct<") else ()

    @property
    def read_as(self) -> DataType:
        """The type in which a query reads a column of this type: an unsigned integer as a larger signed one."""
        return DataType(_READ_AS[self]) if self in _READ_AS else self

    @property
    def is_integer(self) -> bool:
        return self in _BITS

    @property
    def is_float(self) -> bool:
        return self in ("float32", "float64")

    @property
    def is_decimal(self) -> bool:
        return self.startswith("decimal")

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_timestamp(self) -> bool:
        return self in ("timestamp", "timestamp_ntz")

    @property
    def is_temporal(self) -> bool:
        return self == "date" or self.is_timestamp

    @property
    def is_interval(self) -> bool:
        return self in _INTERVALS

    @property
    def is_months(self) -> bool:
        """Whether it is an interval of years and months, whose values are months."""
        return self.is_interval and self.interval_fields[1] in _YEAR_MONTH

    @property
    def interval_fields(self) -> tuple[str, str]:
        """The first and the last field of an interval type."""
        return _INTERVALS[self]

    @property
    def integers(self) -> range:
        """The values of an integer type."""
        limit = 1 << (_BITS[self] - 1)
        return range(-limit, limit)

    @property
    def precision(self) -> int | None:
        """The number of digits of a decimal; None for other types."""
        found = _DECIMAL.fullmatch(self)
        return None if found is None else int(found[1])

    @property
    def scale(self) -> int | None:
        """The number of a decimal's digits after the point; None for other types."""
        found = _DECIMAL.fullmatch(self)
        return None if found is None else int(found[2])

    @property
    def as_decimal(self) -> tuple[int, int] | None:
        """Precision and scale of a decimal, or of the decimal that holds an integer type; None for other types."""
        if self in _DIGITS:
            return _DIGITS[self], 0
        precision, scale = self.precision, self.scale
        return None if precision is None or scale is None else (precision, scale)

    @property
    def sql_name(self) -> str:
        """The name of the type in SQL."""
        if not self.is_nested:
            return _SQL_NAMES.get(self, self.upper().replace("_", " ") if self.is_interval else self.upper())
        kind, parts = _nested(self)
        separator = ": " if kind == "struct" else ""
        return f"{kind.upper()}<{', '.join(f'{name}{separator}{type_.sql_name}' for name, type_ in parts)}>"

    @property
    def shown(self) -> str:
        """The type as the user wrote it, if that is known, for messages."""
        return str(getattr(self, "written", self.sql_name))


class WrittenType(DataType):
    """A type that also knows how the user wrote it, for messages; otherwise the same as the type.

    >>> WrittenType(STRING, "VARCHAR(10)") == STRING, WrittenType(STRING, "VARCHAR(10)").shown
    (True, 'VARCHAR(10)')
    """

    written: str

    def __new__(cls, type_: str, written: str) -> Self:
        made = super().__new__(cls, type_)
        made.written = written
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.written)


class UnreadType(WrittenType):
    """A type that Crown does not support: a column of it may be in a table, but no query can read it."""


def array_of(element: DataType) -> DataType:
    """Return the type of arrays of these elements.

    >>> array_of(STRING), array_of(STRING).element, array_of(STRING).sql_name
    ('array<string>', 'string', 'ARRAY<STRING>')
    """
    return DataType(f"array<{element}>")


def map_of(key: DataType, value: DataType) -> DataType:
    return DataType(f"map<{key},{value}>")


def struct_of(fields: Iterable[tuple[str, DataType]]) -> DataType:
    """Return the type of structs of these fields; there must be at least one.

    >>> struct_of([("a", INT64)]).fields
    (('a', 'int64'),)
    """
    listed = ",".join(f"`{name.replace('`', '``')}`:{type_}" for name, type_ in fields)
    return DataType(f"struct<{listed}>")


_Nested: TypeAlias = tuple[str, tuple[tuple[str, DataType], ...]]
_NAME = re.compile(r"`((?:[^`]|``)*)`:")
_FLAT = re.compile(r"[a-z_0-9]+(\([0-9, ]*\))?")


@cache
def _nested(text: str) -> _Nested:
    """The kind of a nested type, and its parts by name. Raises ValueError for anything else."""
    found, end = _nested_at(text, 0, 0)
    if end != len(text):
        raise ValueError(f"{text!r} is not a type")
    return found


def _nested_at(text: str, start: int, depth: int) -> tuple[_Nested, int]:
    kind = next((kind for kind in ("array", "map", "struct") if text.startswith(f"{kind}<", start)), None)
    if depth > _DEEPEST:
        raise TooDeep(f"{text!r} is nested too deeply")
    if kind is None:
        raise ValueError(f"{text!r} is not a type")
    parts: list[tuple[str, DataType]] = []
    at = start + len(kind) + 1
    while True:
        name = ""
        if kind == "struct":
            named = _NAME.match(text, at)
            if named is None:
                raise ValueError(f"{text!r} is not a type")
            name, at = named[1].replace("``", "`"), named.end()
        end = _type_end(text, at, depth)
        parts.append((name, DataType(text[at:end])))
        at = end + 1
        if text[end : end + 1] != ",":
            break
    if text[end : end + 1] != ">" or (kind != "struct" and len(parts) != {"array": 1, "map": 2}[kind]):
        raise ValueError(f"{text!r} is not a type")
    return (kind, tuple(parts)), at


def _type_end(text: str, start: int, depth: int) -> int:
    if text.startswith(("array<", "map<", "struct<"), start):
        return _nested_at(text, start, depth + 1)[1]
    flat = _FLAT.match(text, start)
    if flat is None:
        raise ValueError(f"{text!r} is not a type")
    return flat.end()


def repeated_field(type_: DataType) -> str | None:
    """Return a name that two fields of one struct in the type have, for rows as dicts would lose one; else None."""
    fields = type_.fields
    seen: set[str] = set()
    for name, _ in fields:
        if name in seen:
            return name
        seen.add(name)
    inner = [t for _, t in fields] + list(type_.entry or ()) + ([] if type_.element is None else [type_.element])
    return next(filter(None, map(repeated_field, inner)), None)


BOOLEAN = DataType("boolean")
INT8 = DataType("int8")
INT16 = DataType("int16")
INT32 = DataType("int32")
INT64 = DataType("int64")
FLOAT32 = DataType("float32")
FLOAT64 = DataType("float64")
STRING = DataType("string")
BINARY = DataType("binary")
DATE = DataType("date")
TIMESTAMP = DataType("timestamp")
TIMESTAMP_NTZ = DataType("timestamp_ntz")
TIME = DataType("time")
UUID = DataType("uuid")
INTERVAL_DAY = DataType("interval_day")
DAY_TIME = DataType("interval_day_to_second")
YEAR_MONTH = DataType("interval_year_to_month")
UINT8 = DataType("uint8")
UINT16 = DataType("uint16")
UINT32 = DataType("uint32")
NULL = DataType("null")
INTEGERS = (INT8, INT16, INT32, INT64)  # each holds those before it


def _is_decimal(precision: int, scale: int) -> bool:
    return 1 <= precision <= MAX_PRECISION and 0 <= scale <= precision


def exact_decimal(precision: int, scale: int) -> DataType | None:
    """Return the decimal type of just these digits; None where there is none."""
    return DataType(f"decimal({precision},{scale})") if _is_decimal(precision, scale) else None


def decimal(precision: int, scale: int) -> DataType:
    """Return a decimal type, adjusted to 38 digits as Spark does: the scale is reduced, but not below 6.

    >>> decimal(41, 20)
    'decimal(38,17)'
    """
    if precision > MAX_PRECISION:
        digits = precision - scale
        scale = max(MAX_PRECISION - digits, min(scale, _MIN_ADJUSTED_SCALE))
        precision = MAX_PRECISION
    return DataType(f"decimal({precision},{scale})")


def longest_decimal(scale: int) -> DataType:
    """Return the decimal type with all the digits that a decimal can have."""
    return DataType(f"decimal({MAX_PRECISION},{scale})")


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which two values are compared or shown in one column; None where Spark finds none.

    >>> common_type(INT32, decimal(5, 2)), common_type(DATE, BOOLEAN)
    ('decimal(12,2)', None)
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return _common_numeric(left, right)
    if left.is_temporal and right.is_temporal:
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if left.is_interval and right.is_interval:
        return _common_interval(left, right)
    if left.is_nested or right.is_nested or left.is_interval or right.is_interval:
        return None
    if STRING in (left, right):  # ANSI Spark reads the string as the other type
        other = right if left == STRING else left
        if other.is_integer:
            return INT64
        return FLOAT64 if other.is_numeric else other
    return None


def interval_type(first: str, last: str) -> DataType | None:
    """Return the type of intervals from one field to another; None if there is none.

    >>> interval_type("day", "second"), interval_type("day", "day"), interval_type("month", "day")
    ('interval_day_to_second', 'interval_day', None)
    """
    return next((DataType(name) for name, fields in _INTERVALS.items() if fields == (first, last)), None)


def _common_interval(left: DataType, right: DataType) -> DataType | None:
    """The type with the fields of both, which must be of one kind."""
    fields = list(_YEAR_MONTH | _DAY_TIME)
    parts = [fields.index(field) for type_ in (left, right) for field in type_.interval_fields]
    return interval_type(fields[min(parts)], fields[max(parts)])


def _common_numeric(left: DataType, right: DataType) -> DataType:
    if left.is_float or right.is_float:
        return FLOAT32 if left == right == FLOAT32 else FLOAT64
    if left.is_integer and right.is_integer:
        return max(left, right, key=INTEGERS.index)
    return _common_decimal(left, right)


def _common_decimal(left: DataType, right: DataType) -> DataType:
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(s1, s2)
    return decimal(max(p1 - s1, p2 - s2) + scale, scale)


def _parts(type_: DataType) -> tuple[int, int]:
    parts = type_.as_decimal
    assert parts is not None, type_
    return parts


def widens(source: DataType, target: DataType) -> bool:
    """Whether every value of `source` has its own, distinct value in `target`: the cast can be undone.

    >>> widens(INT32, INT64), widens(INT64, FLOAT64)
    (True, False)
    """
    if source == target:
        return True
    if source.is_integer and target.is_integer:
        return INTEGERS.index(source) <= INTEGERS.index(target)
    if target.is_decimal and (source.is_integer or source.is_decimal):
        (p1, s1), (p2, s2) = _parts(source), _parts(target)
        return s2 >= s1 and p2 - s2 >= p1 - s1
    if target == FLOAT64:
        return source in (FLOAT32, INT8, INT16, INT32)
    return False


def _read_as_number(type_: DataType, other: DataType) -> DataType:
    """Beside an integer a string is read as a bigint, beside another number as a double; NULL takes the other type."""
    if type_ not in (NULL, STRING):
        return type_
    if other in (NULL, STRING):
        return FLOAT64
    if type_ == NULL:
        return other
    return INT64 if other.is_integer else FLOAT64


Arithmetic = OneOf["add", "subtract", "multiply", "divide", "modulo"]


def arithmetic_types(operator: Arithmetic, left: DataType, right: DataType) -> tuple[DataType | None, DataType] | None:
    """(type of both operands, type of the result), or None where Spark has no such operation.

    The operands' type is None where no decimal holds both: then each keeps its own.

    >>> arithmetic_types("multiply", decimal(12, 2), decimal(12, 2))
    ('decimal(12,2)', 'decimal(25,4)')
    """
    left, right = _read_as_number(left, right), _read_as_number(right, left)
    if not (left.is_numeric and right.is_numeric):
        return None
    if not (left.is_decimal or right.is_decimal) or left.is_float or right.is_float:
        operand = _common_numeric(left, right)
        if operator == "divide" or operand.is_decimal:
            operand = FLOAT64
        return operand, operand
    (p1, s1), (p2, s2) = _parts(left), _parts(right)
    scale = max(s1, s2)
    fits = max(p1 - s1, p2 - s2) + scale <= MAX_PRECISION
    return _common_decimal(left, right) if fits else None, _decimal_result(operator, (p1, s1), (p2, s2))


def _decimal_result(operator: Arithmetic, left: tuple[int, int], right: tuple[int, int]) -> DataType:
    (p1, s1), (p2, s2) = left, right
    scale = max(s1, s2)
    match operator:
        case "add" | "subtract":
            return decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "multiply":
            return decimal(p1 + p2 + 1, s1 + s2)
        case "divide":
            scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return decimal(p1 - s1 + s2 + scale, scale)
        case "modulo":
            return decimal(min(p1 - s1, p2 - s2) + scale, scale)


def sum_type(type_: DataType) -> DataType | None:
    if type_.is_integer:
        return INT64
    if type_.is_decimal:
        precision, scale = _parts(type_)
        return decimal(min(MAX_PRECISION, precision + 10), scale)
    if type_.is_interval:
        return type_
    return FLOAT64 if type_.is_float or type_ in (NULL, STRING) else None


def average_type(type_: DataType) -> DataType | None:
    if type_.is_decimal:
        precision, scale = _parts(type_)
        return decimal(min(MAX_PRECISION, precision + 4), min(MAX_PRECISION, scale + 4))
    if type_.is_interval:
        return widest_interval(type_)
    return FLOAT64 if type_.is_numeric or type_ in (NULL, STRING) else None


def widest_interval(type_: DataType) -> DataType:
    """Return the interval type with all fields of its kind."""
    return YEAR_MONTH if type_.is_months else DAY_TIME


def castable(source: DataType, target: DataType) -> bool:
    """Whether a value of `source` can be cast to `target`, as in Spark's ANSI mode.

    >>> castable(STRING, DATE), castable(DATE, INT32)
    (True, False)
    """
    if source == target:
        return True
    if source.is_nested or target.is_nested:
        return False
    if STRING in (source, target):
        return True
    if source.is_interval and target.is_interval:
        return source.is_months == target.is_months
    if source.is_interval or target.is_interval:
        other = target if source.is_interval else source
        return other.is_integer or other.is_decimal
    if TIME in (source, target):
        return source.is_timestamp
    if UUID in (source, target) or BINARY in (source, target):
        return False
    if source.is_numeric or target.is_numeric:
        other = target if source.is_numeric else source
        return other.is_numeric or other in (BOOLEAN, TIMESTAMP)
    return source.is_temporal and target.is_temporal
