"""Whether a value can be NULL, for folding, for the columns of a plan and for aggregates alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.functions import is_total

Nullable: TypeAlias = Callable[[str], bool]  # whether a column can be NULL


def may_be_null(expression: Expression, nullable: Nullable) -> bool:
    """Whether the value of `expression` can be NULL, given which columns can. Errs towards yes.

    >>> from crown.types import BOOLEAN, INT64
    >>> may_be_null(Call("is_null", (Column("a", INT64),), BOOLEAN), lambda column: True)
    False
    """
    match expression:
        case Column(name):
            return nullable(name)
        case Literal(value):
            return value is None
        case Call("is_null" | "is_not_distinct" | "hash" | "xxhash64"):
            return False
        case Call("coalesce" | "greatest" | "least", arguments):
            return all(may_be_null(argument, nullable) for argument in arguments)
        case Call("case", arguments):
            has_else = len(arguments) % 2 == 1
            results = [*arguments[1::2], *arguments[-1:]] if has_else else []
            return not has_else or any(may_be_null(result, nullable) for result in results)
        case Call("cast", (argument,), type_):
            # NaN and the infinities are not decimals; any other value that does not fit is an
            # error.
            return (argument.type.is_float and type_.is_decimal) or may_be_null(argument, nullable)
        case Call(function, arguments):
            known = is_total(function) or function in ("and", "or", "in")
            return not known or any(may_be_null(argument, nullable) for argument in arguments)
