"""Scalar expressions: the one form that SQL layer, plan and kernel share. `crown.ir.functions` lists the functions.

An expression is fully typed. The SQL layer inserts every cast, so the arguments of an arithmetic
function or a comparison always have one type (decimals: one scale) and the kernel never coerces.

Type names: ``boolean``, ``int8``, ``int16``, ``int32``, ``int64``, ``float32``, ``float64``,
``decimal(p,s)``, ``string``, ``binary``, ``date``, ``timestamp`` (UTC microseconds), ``timestamp_ntz``.

A literal's value is JSON: ``None``, bool, int, float, str; a decimal is a string (``"12.50"``), a date
the days and a timestamp the microseconds since 1970 as int, binary a hex string, and the floats that
JSON lacks are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crown.ir.functions import FUNCTIONS

LiteralValue: TypeAlias = None | bool | int | float | str

_TYPES = frozenset(
    {"boolean", "int8", "int16", "int32", "int64", "float32", "float64"}
    | {"string", "binary", "date", "timestamp", "timestamp_ntz"}
)
_DECIMAL_TYPE = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_DECIMAL = re.compile(r"-?\d{1,38}(\.\d{1,38})?")
_BINARY = re.compile(r"([0-9a-f]{2})*")
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "date": 32, "timestamp": 64, "timestamp_ntz": 64}
_SPECIAL_FLOATS = ("NaN", "Infinity", "-Infinity")


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


def from_json(data: Any) -> Expression:
    """The expression that `to_json` wrote. Raises ValueError for anything else.

    What is read may come from anyone: only known functions, types and values of these types get through.
    """
    if not isinstance(data, dict):
        raise ValueError("an expression must be an object")
    match data["kind"]:
        case "column":
            if not isinstance(data["name"], str):
                raise ValueError(f"{data['name']!r} is not the name of a column")
            return Column(data["name"], _type(data["type"]))
        case "literal":
            return _checked_literal(data["value"], _type(data["type"]))
        case "call":
            return _checked_call(data["function"], data["arguments"], _type(data["type"]))
        case kind:
            raise ValueError(f"unknown expression kind {kind!r}")


def _type(name: Any) -> str:
    if isinstance(name, str):
        matched = _DECIMAL_TYPE.fullmatch(name)
        if name in _TYPES or (matched and 1 <= int(matched[1]) <= 38 and int(matched[2]) <= int(matched[1])):
            return name
    raise ValueError(f"{name!r} is not a type")


def _checked_call(function: Any, arguments: Any, type_: str) -> Call:
    known = FUNCTIONS.get(function) if isinstance(function, str) else None
    if known is None:
        raise ValueError(f"{function!r} is not a function")
    if not isinstance(arguments, list) or not known.takes(len(arguments)):
        raise ValueError(f"{function} has the wrong number of arguments")
    return Call(function, tuple(from_json(argument) for argument in arguments), type_)


def _checked_literal(value: Any, type_: str) -> Literal:
    if value is None or _fits(value, type_):
        return Literal(value, type_)
    raise ValueError(f"{value!r} is not a literal of type {type_}")


def _fits(value: Any, type_: str) -> bool:
    if type_ in _BITS:
        limit = 1 << (_BITS[type_] - 1)
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if type_ in ("float32", "float64"):
        return (isinstance(value, int | float) and not isinstance(value, bool)) or value in _SPECIAL_FLOATS
    if type_ == "boolean":
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if type_ == "binary":
        return _BINARY.fullmatch(value) is not None
    return type_ == "string" or _DECIMAL.fullmatch(value) is not None
