"""Scalar expressions: the form that the SQL layer, the plan and the kernel share. `crown.ir.functions` lists the
functions.

An expression is fully typed. The SQL layer inserts every cast, so the arguments of an arithmetic
function or a comparison always have one type (decimals: one scale) and the kernel never coerces.

A literal's value is JSON: ``None``, bool, int, float, str; a decimal is a string (``"12.50"``), a date
the days and a timestamp the microseconds since 1970 as int, an interval its months or microseconds, binary a hex
string, and the floats that JSON lacks are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crown import types
from crown.ir.functions import FUNCTIONS, Traits, declared_name
from crown.types import BINARY, BOOLEAN, STRING, DataType

LiteralValue: TypeAlias = None | bool | int | float | str

_DECIMAL = re.compile(r"-?\d{1,38}(\.\d{1,38})?")
_BINARY = re.compile(r"([0-9a-f]{2})*")
# The range of the integers that represent dates and timestamps.
_INTEGERS = {
    types.DATE: types.INT32,
    types.TIMESTAMP: types.INT64,
    types.TIMESTAMP_NTZ: types.INT64,
    types.TIME: types.INT64,
}
_ANY_NUMBER = Traits(0, None)
_SPECIAL_FLOATS = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class Column:
    """A column by name: of the atom's source in atom filters and bindings, else a variable or stage column."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    value: LiteralValue
    type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    size: int = field(init=False, repr=False, compare=False)  # calls in it, counted as often as they are written
    columns: frozenset[str] = field(init=False, repr=False, compare=False)  # that it reads
    fails: bool = field(init=False, repr=False, compare=False)  # see `fails_on_its_own`
    _hash: int = field(init=False, repr=False, compare=False)  # once: a deep expression is looked up at every level

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum([a.size for a in self.arguments if isinstance(a, Call)]))
        object.__setattr__(self, "columns", _all_columns(self.arguments))
        object.__setattr__(self, "fails", self.function == "single_row" or any(map(fails_on_its_own, self.arguments)))
        object.__setattr__(self, "_hash", hash((self.function, self.arguments, self.type)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.function, self.arguments, self.type)  # another process hashes strings differently


Expression: TypeAlias = Column | Literal | Call


def fails_on_its_own(expression: Expression) -> bool:
    """Whether the expression must not be computed for rows that are not in the result, where it could raise an error.

    >>> fails_on_its_own(Call("single_row", (Column("a", types.INT64), Column("n", types.INT64)), types.INT64))
    True
    """
    return isinstance(expression, Call) and expression.fails


_NONE: frozenset[str] = frozenset()


def column_set(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    if isinstance(expression, Call):
        return expression.columns
    return frozenset((expression.name,)) if isinstance(expression, Column) else _NONE


def _all_columns(expressions: tuple[Expression, ...]) -> frozenset[str]:
    """Those of all expressions, as the set of the first one that has them all: long chains then share it."""
    found = _NONE
    for expression in expressions:
        more = column_set(expression)
        if not more <= found:
            found = more if found <= more else found | more
    return found


def makes_rows(expression: Expression) -> bool:
    """Whether the expression makes a row of each element of an array; allowed only as a column of a map stage."""
    return isinstance(expression, Call) and expression.function.startswith("explode")


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads, in order, repeats included.

    >>> from crown.types import INT64
    >>> list(columns_of(Call("add", (Column("a", INT64), Literal(1, INT64)), INT64)))
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


def from_json(data: Any) -> Expression:
    """Return the expression that `to_json` wrote. Raises ValueError for anything else.

    The input is not trusted: only known functions, types and values of these types are accepted.
    """
    if not isinstance(data, dict):
        raise ValueError("an expression must be an object")
    match data["kind"]:
        case "column":
            if not isinstance(data["name"], str):
                raise ValueError(f"{data['name']!r} is not the name of a column")
            return Column(data["name"], DataType.parse(data["type"]))
        case "literal":
            return _checked_literal(data["value"], DataType.parse(data["type"]))
        case "call":
            return _checked_call(data["function"], data["arguments"], DataType.parse(data["type"]))
        case kind:
            raise ValueError(f"unknown expression kind {kind!r}")


def _checked_call(function: Any, arguments: Any, type_: DataType) -> Call:
    known = FUNCTIONS.get(function) if isinstance(function, str) else None
    if isinstance(function, str) and declared_name(function):
        known = _ANY_NUMBER
    if known is None:
        raise ValueError(f"{function!r} is not a function")
    if not isinstance(arguments, list) or not known.takes(len(arguments)):
        raise ValueError(f"{function} has the wrong number of arguments")
    return Call(function, tuple(from_json(argument) for argument in arguments), type_)


def _checked_literal(value: Any, type_: DataType) -> Literal:
    if value is None or _fits(value, type_):
        return Literal(value, type_)
    raise ValueError(f"{value!r} is not a literal of type {type_}")


def _integers(type_: DataType) -> range:
    if type_.is_interval:
        return (types.INT32 if type_.is_months else types.INT64).integers
    return _INTEGERS.get(type_, type_).integers


def _fits(value: Any, type_: DataType) -> bool:
    if type_.is_nested:
        return False
    if type_.is_integer or type_.is_interval or type_ in _INTEGERS:
        integers = _integers(type_)
        return isinstance(value, int) and not isinstance(value, bool) and value in integers
    if type_.is_float:
        return (isinstance(value, int | float) and not isinstance(value, bool)) or value in _SPECIAL_FLOATS
    if type_ == BOOLEAN:
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if type_ == BINARY:
        return _BINARY.fullmatch(value) is not None
    return type_ in (STRING, types.UUID) or _DECIMAL.fullmatch(value) is not None
