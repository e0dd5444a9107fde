"""Values of literals: reading them from text, converting them between types, comparing them."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from crown import types
from crown.ir.expression import Literal, LiteralValue

_EPOCH_DATE = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)
_LIMITS = {name: 1 << (bits - 1) for name, bits in zip(types.INTEGERS, (8, 16, 32, 64), strict=True)}
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number(text: str) -> Literal | None:
    """A numeric literal as Spark types it: the least of int32 and int64, else decimal; with an exponent float64.

    >>> number("7"), number("1.50")
    (Literal(value=7, type='int32'), Literal(value='1.50', type='decimal(3,2)'))
    """
    try:
        if "e" in text.lower():
            return Literal(float(text), "float64") if math.isfinite(float(text)) else None
        value = Decimal(text)
    except (ValueError, InvalidOperation):
        return None
    if "." not in text:
        whole = int(value)
        for type_ in ("int32", "int64"):
            if -_LIMITS[type_] <= whole < _LIMITS[type_]:
                return Literal(whole, type_)
    digits = value.as_tuple()
    scale = max(0, -int(digits.exponent))
    precision = max(len(digits.digits), scale + (1 if abs(value) >= 1 else 0), 1)
    return Literal(format(value, "f"), f"decimal({precision},{scale})") if precision <= 38 else None


def convert(literal: Literal, target: str) -> Literal | None:
    """The literal as a value of `target`, or None when it has none there.

    >>> convert(Literal("1994-01-01", "string"), "date")
    Literal(value=8766, type='date')
    """
    value, source = literal.value, literal.type
    if value is None or source == target:
        return Literal(value, target)
    try:
        converted = _convert(value, source, target)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    return None if converted is None else Literal(converted, target)


def _convert(value: LiteralValue, source: str, target: str) -> LiteralValue:
    if target in types.INTEGERS:
        # A string must be a whole number; a decimal or float is cut.
        whole = int(str(value)) if source == "string" else int(value if isinstance(value, bool) else _as_decimal(value))
        return whole if -_LIMITS[target] <= whole < _LIMITS[target] else None
    if target in types.FLOATS:
        wide = float(value) if isinstance(value, bool) else _SPECIAL_FLOATS.get(str(value)) or float(str(value))
        # The kernel widens a FLOAT column's values; a literal must be the same number to be equal to one of them.
        return wide if target == "float64" else struct.unpack("f", struct.pack("f", wide))[0]
    if types.is_decimal(target):
        precision, scale = types.decimal_parts(target) or (38, 0)
        exact = _as_decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        return format(exact, "f") if len(exact.as_tuple().digits) <= precision else None
    if target == "date":
        if source == "string":
            return (datetime.date.fromisoformat(str(value).strip()[:10]) - _EPOCH_DATE).days
        return int(value) // 86_400_000_000 if source.startswith("timestamp") else None  # type: ignore[arg-type]
    if target in ("timestamp", "timestamp_ntz"):
        if source == "date":
            return int(value) * 86_400_000_000  # type: ignore[arg-type]
        return _timestamp(str(value)) if source == "string" else int(value)  # type: ignore[arg-type]
    if target == "boolean" and source == "string":
        return {"true": True, "t": True, "false": False, "f": False}.get(str(value).lower())
    if target == "string" and source in (*types.INTEGERS, "string"):
        return str(value)
    if target == "string" and source == "date":
        return str(_EPOCH_DATE + datetime.timedelta(days=int(str(value))))
    if target == "binary" and source == "string":
        return str(value).encode().hex()
    return None


def _as_decimal(value: LiteralValue) -> Decimal:
    exact = Decimal(str(value).strip())
    if not exact.is_finite():
        raise ValueError(value)
    return exact


def _timestamp(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return round((moment - _EPOCH) / datetime.timedelta(microseconds=1))


def sort_key(literal: Literal) -> Decimal | float | str:
    """A value that orders literals of one type as SQL does."""
    if isinstance(literal.value, str) and (types.is_decimal(literal.type)):
        return Decimal(literal.value)
    if isinstance(literal.value, str) and literal.type in types.FLOATS:
        return _SPECIAL_FLOATS[literal.value]
    return literal.value  # type: ignore[return-value]


def add_months(days: int, months: int) -> int:
    """A date, as days since 1970, some months on; the day is cut to the month's last."""
    date = _EPOCH_DATE + datetime.timedelta(days=days)
    month = date.year * 12 + date.month - 1 + months
    year, month = divmod(month, 12)
    first_of_next = datetime.date(year + (month + 1) // 12, (month + 1) % 12 + 1, 1)
    last = (first_of_next - datetime.timedelta(days=1)).day
    return (datetime.date(year, month + 1, min(date.day, last)) - _EPOCH_DATE).days
