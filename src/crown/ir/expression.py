"""Scalar expressions: the one form that SQL layer, plan and kernel share.

An expression is fully typed. The SQL layer inserts every cast, so the arguments of an arithmetic
function or a comparison always have one type (decimals: one scale) and the kernel never coerces.

Type names: ``boolean``, ``int8``, ``int16``, ``int32``, ``int64``, ``float32``, ``float64``,
``decimal(p,s)``, ``string``, ``binary``, ``date``, ``timestamp`` (UTC microseconds), ``timestamp_ntz``.

A literal's value is JSON: ``None``, bool, int, float, str; a decimal is a string (``"12.50"``), a date
the days and a timestamp the microseconds since 1970 as int, binary a hex string, and the floats that
JSON lacks are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

LiteralValue: TypeAlias = None | bool | int | float | str

# What the kernel evaluates itself. Everything else that is deterministic and reads one table becomes a
# computed column of that table (see `crown.ir.plan.ComputedColumn`), evaluated by DuckDB or by Spark.
KERNEL_FUNCTIONS: frozenset[str] = frozenset(
    {
        # arithmetic; `divide` takes float64 or decimals (result scale as typed), `modulo` follows the dividend's sign
        *("add", "subtract", "multiply", "divide", "modulo", "negate", "abs"),
        # three-valued comparisons, and `is_not_distinct` (NULL equals NULL)
        *("eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"),
        # three-valued logic (`and`, `or` take any number of arguments); `is_null` is never NULL
        *("and", "or", "not", "is_null"),
        # `in`: first argument against the others; `case`: when, then, when, then, ..., else
        *("in", "case", "coalesce", "cast", "greatest", "least"),
        # `like` takes a literal pattern with % and _; `substring` is 1-based (string, start, length)
        *("like", "upper", "lower", "length", "concat", "substring", "trim", "ltrim", "rtrim", "replace"),
        *("starts_with", "ends_with", "contains"),
        # `round` takes a literal number of digits; `floor` and `ceil` of a float are int64, of a decimal a decimal
        *("round", "floor", "ceil"),
        # of float64; `ln` is NULL where there is no logarithm
        *("sqrt", "exp", "ln", "power", "sign"),
        # parts of a date or timestamp, as int32; `dayofweek` is 1 for Sunday
        *("year", "quarter", "month", "day", "dayofweek", "hour", "minute", "second"),
        # (date, int32 days), (date, date) to int32 days, (literal unit, date or timestamp); weeks begin on Monday
        *("date_add", "date_diff", "date_trunc"),
    }
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column by name: of the atom's source in atom filters and bindings, else a variable or stage column."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Literal:
    value: LiteralValue
    type: str


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    type: str
    _hash: int = field(init=False, repr=False, compare=False)  # once: a deep expression is looked up at every level

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.function, self.arguments, self.type)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.function, self.arguments, self.type)  # another process hashes strings differently


Expression: TypeAlias = Column | Literal | Call


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads, in order, repeats included.

    >>> list(columns_of(Call("add", (Column("a", "int64"), Literal(1, "int64")), "int64")))
    ['a']
    """
    stack = [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, Column):
            yield part.name
        elif isinstance(part, Call):
            stack.extend(reversed(part.arguments))


def to_json(expression: Expression) -> dict[str, Any]:
    match expression:
        case Column(name, type_):
            return {"kind": "column", "name": name, "type": type_}
        case Literal(value, type_):
            return {"kind": "literal", "value": value, "type": type_}
        case Call(function, arguments, type_):
            return {"kind": "call", "function": function, "arguments": [to_json(a) for a in arguments], "type": type_}


def from_json(data: dict[str, Any]) -> Expression:
    """Return the expression that `to_json` wrote; raises ValueError, KeyError or TypeError for anything else."""
    match data["kind"]:
        case "column":
            return Column(_text(data, "name"), _text(data, "type"))
        case "literal":
            value = data["value"]
            if not isinstance(value, LiteralValue):
                raise ValueError(f"{value!r} is not a literal")
            return Literal(value, _text(data, "type"))
        case "call":
            if not isinstance(data["arguments"], list):
                raise ValueError("arguments must be a list")
            return Call(_text(data, "function"), tuple([from_json(a) for a in data["arguments"]]), _text(data, "type"))
        case kind:
            raise ValueError(f"unknown expression kind {kind!r}")


def _text(data: dict[str, Any], key: str) -> str:
    if not isinstance(data[key], str):
        raise ValueError(f"{key} must be a string, not {data[key]!r}")
    return str(data[key])
