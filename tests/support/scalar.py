"""Scalar expressions evaluated in plain Python, with SQL's three-valued logic. Values as Python has them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from crown.expression import Call, Column, Expression, Literal

_EPOCH = datetime.datetime(1970, 1, 1)


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    match expression:
        case Column(name):
            return row[name]
        case Literal(value, type_):
            return _literal(value, type_)
        case Call(function, arguments, type_):
            if function == "case":
                return _case(arguments, row)
            values = [evaluate(argument, row) for argument in arguments]
            return _call(function, values, type_, [argument.type for argument in arguments])


def _literal(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_.startswith("decimal"):
        return Decimal(value)
    if type_ == "date":
        return (_EPOCH + datetime.timedelta(days=value)).date()
    if type_ in ("timestamp", "timestamp_ntz"):
        return _EPOCH + datetime.timedelta(microseconds=value)
    return float(value) if type_ in ("float32", "float64") else value


def _case(arguments: tuple[Expression, ...], row: Mapping[str, Any]) -> Any:
    for when, then in zip(arguments[0::2], arguments[1::2], strict=False):
        if evaluate(when, row) is True:
            return evaluate(then, row)
    return evaluate(arguments[-1], row) if len(arguments) % 2 else None


def _call(function: str, values: list[Any], type_: str, types: list[str]) -> Any:
    match function:
        case "is_null":
            return values[0] is None
        case "is_not_distinct":
            return values[0] == values[1]
        case "coalesce":
            return next((value for value in values if value is not None), None)
        case "and":
            return False if False in values else None if None in values else True
        case "or":
            return True if True in values else None if None in values else False
        case "in":
            if values[0] is None:
                return None
            return True if values[0] in values[1:] else None if None in values[1:] else False
        case "greatest" | "least":
            known = [value for value in values if value is not None]
            return (max if function == "greatest" else min)(known) if known else None
    if any(value is None for value in values):
        return None
    return _strict(function, values, type_, types)


def _strict(function: str, values: list[Any], type_: str, types: list[str]) -> Any:
    match function, values:
        case "add", [a, b]:
            return a + b
        case "subtract", [a, b]:
            return a - b
        case "multiply", [a, b]:
            return a * b
        case "negate", [a]:
            return -a
        case "abs", [a]:
            return abs(a)
        case "divide", [a, b]:
            return (
                None if b == 0 else _cast(Decimal(a) / Decimal(b) if type_.startswith("dec") else a / b, type_, type_)
            )
        case "modulo", [a, b]:
            return None if b == 0 else math.fmod(a, b) if isinstance(a, float) else a - b * int(a / b)
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge", [a, b]:
            return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[function]
        case "not", [a]:
            return not a
        case "cast", [a]:
            return _cast(a, types[0], type_)
        case "like", [a, pattern]:
            regex = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
            return re.fullmatch(regex, a, re.DOTALL) is not None
        case "upper", [a]:
            return a.upper()
        case "lower", [a]:
            return a.lower()
        case "length", [a]:
            return len(a)
        case "concat", _:
            return "".join(values)
        case "substring", [a, start, length]:
            return a[max(start - 1, 0) :][:length]
        case "trim", [a]:
            return a.strip(" ")
        case "year" | "month" | "day", [a]:
            return getattr(a, function)
    raise NotImplementedError(function)


def _cast(value: Any, source: str, target: str) -> Any:
    if target.startswith("decimal"):
        scale = int(target.rstrip(")").split(",")[1])
        return Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if target in ("float32", "float64"):
        return float(value)
    if target.startswith("int"):
        return int(value)
    if target == "string":
        return str(value).lower() if isinstance(value, bool) else str(value)
    if target == "boolean":
        return bool(value)
    if target == "date":
        if isinstance(value, datetime.datetime):
            return value.date()
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)
    if target in ("timestamp", "timestamp_ntz"):
        if isinstance(value, datetime.datetime):
            return value
        if isinstance(value, datetime.date):
            return datetime.datetime(value.year, value.month, value.day)
        return datetime.datetime.fromisoformat(value)
    raise NotImplementedError(f"{source} to {target}")
