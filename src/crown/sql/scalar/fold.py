"""Constant folding: evaluate what is known before any row is read, NULLs in particular.

The padded branches of outer joins are ordinary branches with NULLs put in for the missing side's columns;
folding is what makes a WHERE on that side drop them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crown import types
from crown.ir.expression import Call, Expression, Literal
from crown.ir.functions import is_strict
from crown.ir.nullability import Nullable, may_be_null
from crown.sql.scalar import constants, literals
from crown.types import BOOLEAN

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
UNKNOWN = Literal(None, BOOLEAN)

_COMPARE: Mapping[str, Callable[[object, object], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,  # type: ignore[operator]
    "le": lambda a, b: a <= b,  # type: ignore[operator]
    "gt": lambda a, b: a > b,  # type: ignore[operator]
    "ge": lambda a, b: a >= b,  # type: ignore[operator]
}
FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
COMPARISONS = frozenset(FLIPPED)


def is_null_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def fold(call: Call, column: Nullable) -> Expression:
    """Return one call, its arguments already folded."""
    arguments = call.arguments
    function = call.function
    if is_strict(function) and any(is_null_literal(a) for a in arguments):
        return Literal(None, call.type)
    if function in _COMPARE and all(isinstance(a, Literal) for a in arguments):
        left, right = (literals.sort_key(a) for a in arguments if isinstance(a, Literal))
        return Literal(_COMPARE[function](left, right), BOOLEAN)
    match function:
        case "and" | "or":
            return _logic(call)
        case "not":
            return _negation(call)
        case "is_null":
            return _is_null(call, column)
        case "is_not_distinct":
            return _not_distinct(call, column)
        case "coalesce":
            return _coalesce(call, column)
        case "case":
            return _case(call)
        case "in":
            return _in(call)
    if all(isinstance(a, Literal) and a.type != types.NULL for a in arguments):
        return constants.folded(call)
    return call


def conjuncts(expression: Expression) -> list[Expression]:
    """Return the parts of a conjunction, without those that are always TRUE."""
    if isinstance(expression, Call) and expression.function == "and":
        return [part for argument in expression.arguments for part in conjuncts(argument)]
    return [] if expression == TRUE else [expression]


def conjunction(parts: list[Expression]) -> Expression:
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)


def _logic(call: Call) -> Expression:
    """`and` and `or` in three values: neutral values are dropped, an absorbing value wins, NULL stays."""
    absorbing, neutral = (FALSE, TRUE) if call.function == "and" else (TRUE, FALSE)
    flat: list[Expression] = []
    for argument in call.arguments:
        nested = isinstance(argument, Call) and argument.function == call.function
        flat += argument.arguments if nested and isinstance(argument, Call) else (argument,)
    if absorbing in flat:
        return absorbing
    kept = tuple(dict.fromkeys(argument for argument in flat if argument != neutral))
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else Call(call.function, kept, BOOLEAN)


def _negation(call: Call) -> Expression:
    match call.arguments[0]:
        case Literal(None, _):
            return UNKNOWN
        case Literal(value, _):
            return Literal(not value, BOOLEAN)
        case Call("not", (inner,), _):
            return inner
        case Call(function, arguments, _) if function in NEGATED:
            return Call(NEGATED[function], arguments, BOOLEAN)
    return call


def _is_null(call: Call, column: Nullable) -> Expression:
    argument = call.arguments[0]
    if isinstance(argument, Literal):
        return Literal(argument.value is None, BOOLEAN)
    return call if may_be_null(argument, column) else FALSE


def _not_distinct(call: Call, column: Nullable) -> Expression:
    left, right = call.arguments
    if is_null_literal(left):
        return fold(Call("is_null", (right,), BOOLEAN), column)
    if is_null_literal(right):
        return fold(Call("is_null", (left,), BOOLEAN), column)
    if not (may_be_null(left, column) or may_be_null(right, column)):
        return fold(Call("eq", (left, right), BOOLEAN), column)
    return call


def _coalesce(call: Call, column: Nullable) -> Expression:
    kept: list[Expression] = []
    for argument in call.arguments:
        if is_null_literal(argument):
            continue
        kept.append(argument)
        if not may_be_null(argument, column):
            break
    if not kept:
        return Literal(None, call.type)
    return kept[0] if len(kept) == 1 else Call("coalesce", tuple(kept), call.type)


def _case(call: Call) -> Expression:
    kept: list[Expression] = []
    *pairs, otherwise = call.arguments
    for when, then in zip(pairs[::2], pairs[1::2], strict=True):
        if when == TRUE:
            otherwise = then
            break
        if when not in (FALSE, UNKNOWN):
            kept += [when, then]
    return Call("case", (*kept, otherwise), call.type) if kept else otherwise


def _in(call: Call) -> Expression:
    subject, *values = call.arguments
    if is_null_literal(subject):
        return UNKNOWN
    if isinstance(subject, Literal) and all(isinstance(v, Literal) for v in values):
        known = [literals.sort_key(v) for v in values if isinstance(v, Literal) and v.value is not None]
        if literals.sort_key(subject) in known:
            return TRUE
        return FALSE if len(known) == len(values) else UNKNOWN
    return call
