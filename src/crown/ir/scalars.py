"""Helpers for scalar expressions that several passes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.types import BINARY, BOOLEAN, STRING, UUID, DataType


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return the expression with columns replaced; columns without a value stay.

    >>> from crown.types import INT64
    >>> substitute(Column("a", INT64), {"a": Literal(1, INT64)})
    Literal(value=1, type='int64')
    """
    match expression:
        case Column(name):
            return values.get(name, expression)
        case Call(function, arguments, type_):
            return Call(function, tuple(substitute(argument, values) for argument in arguments), type_)
    return expression


def cast(expression: Expression, type_: DataType) -> Expression:
    return expression if expression.type == type_ else Call("cast", (expression,), type_)


def null_if(condition: Expression, otherwise: Expression) -> Expression:
    return Call("case", (condition, Literal(None, otherwise.type), otherwise), otherwise.type)


def all_of(conditions: Iterable[Expression]) -> Expression | None:
    """Return the conjunction; None if there are no predicates."""
    known = tuple(conditions)
    if len(known) < 2:
        return known[0] if known else None
    return Call("and", known, BOOLEAN)


def variables_of(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """Return the columns that the expressions read, each once, in order."""
    return tuple(dict.fromkeys(name for expression in expressions for name in columns_of(expression)))


def zero(type_: DataType) -> Literal:
    return Literal(0 if type_.is_integer else 0.0 if type_.is_float else "0", type_)


def zero_of(type_: DataType) -> Literal:
    """A value of any type: 0, the empty string, FALSE, or the first day."""
    if type_.is_nested:
        return Literal(None, type_)
    if type_ in (STRING, BINARY, UUID):
        return Literal("", type_)
    return Literal(False, type_) if type_ == BOOLEAN else Literal("0" if type_.is_decimal else 0, type_)
