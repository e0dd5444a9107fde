"""Calls of the user's own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from crown.errors import CrownError
from crown.ir.expression import Call, Expression, Literal
from crown.ir.functions import Declared
from crown.sql.scalar import constants
from crown.sql.scalar.binding import ScalarBinder
from crown.sql.scalar.catalogue import FAMILIES
from crown.sql.scalar.coerce import cast
from crown.wording import counted


def check_function_names(functions: Mapping[str, Declared], dialect: str) -> None:
    """Raise a `CrownError` for a name that a query can't call, or that means something else in SQL."""
    for name in functions:
        try:
            parsed = parse_one(f"{name}(1, 2)", dialect=dialect)
        except SqlglotError:
            parsed = None
        plain = isinstance(parsed, exp.Anonymous) and str(parsed.this).lower() == name
        if plain and not any(name in names for names in FAMILIES.values()):
            continue
        raise CrownError(
            f"a function can't be named {name}",
            code="CROWN-FUNCTION-DECLARED",
            reason="SQL has a function of this name, or it is not a plain name",
            hint=f"give it another name: functions={{'my_{name}': ...}}",
        )


def call_declared(binder: ScalarBinder, node: exp.Expr, function: Declared, parts: Sequence[exp.Expr]) -> Expression:
    """Return the call, its arguments cast to their declared types."""
    context = binder.context
    if len(parts) != len(function.arguments):
        context.fail(
            node,
            "UNKNOWN-FUNCTION",
            f"{function.name} takes {counted(len(function.arguments), 'argument')}, not {len(parts)}",
            reason="that is how the Python function is declared",
        )
    arguments = [
        cast(context, part, binder.bind(part), type_) for part, type_ in zip(parts, function.arguments, strict=True)
    ]
    call = binder.call(function.function, arguments, function.returns, node)
    if isinstance(call, Call) and all(isinstance(argument, Literal) for argument in arguments):
        return constants.evaluate(call, {function.name: function.evaluate})
    return call
