"""Values of literals: reading them from text, comparing them."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from crown import types
from crown.ir.expression import Literal
from crown.types import FLOAT64

_LONGEST = 1_000
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number(text: str) -> Literal | None:
    """Return a numeric literal as Spark types it: the least of int32 and int64, else decimal; with an exponent float64.

    >>> number("7"), number("1.50")
    (Literal(value=7, type='int32'), Literal(value='1.50', type='decimal(3,2)'))
    """
    if len(text) > _LONGEST:
        return None  # converting the digits takes quadratic time, and no type has so many
    try:
        if "e" in text.lower():
            return Literal(float(text), FLOAT64) if math.isfinite(float(text)) else None
        value = Decimal(text)
    except (ValueError, InvalidOperation):
        return None
    if "." not in text:
        whole = int(value)
        for type_ in (types.INT32, types.INT64):
            if whole in type_.integers:
                return Literal(whole, type_)
    digits = value.as_tuple()
    scale = max(0, -int(digits.exponent))
    precision = max(len(digits.digits), scale + (1 if abs(value) >= 1 else 0), 1)
    exact = types.exact_decimal(precision, scale)
    return Literal(format(value, "f"), exact) if exact is not None else None


def sort_key(literal: Literal) -> Decimal | float | str | tuple[bool, float]:
    """Return a value that orders literals of one type as SQL does: NaN equals itself and is the largest number."""
    if isinstance(literal.value, str) and literal.type.is_decimal:
        return Decimal(literal.value)
    if literal.type.is_float and literal.value is not None:
        number = _SPECIAL_FLOATS[literal.value] if isinstance(literal.value, str) else float(literal.value)
        return (True, 0.0) if math.isnan(number) else (False, number)
    return literal.value  # type: ignore[return-value]
