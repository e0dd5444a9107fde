"""Read the JSON encodings that Debezium and Kafka Connect use for a column's values into the column's own type.

A value is read without loss or not at all: text in a number, a fraction that the column can't hold, a number without
a unit in a TIMESTAMP raise `Unreadable`, never become NULL. The meaning of a value comes from the Connect schema of its
field, where the record carries one, else by the source's options.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from typing import Any, TypeAlias

from crown import types
from crown.types import DataType

UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}  # in a second
DECIMALS = ("precise", "string", "double")
BINARY = ("base64", "base64-url-safe", "hex")
UNAVAILABLE = "__debezium_unavailable_value"

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:Z|[+-]\d\d:?\d\d)?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)? ?(Z|[+-]\d\d(?::?\d\d)?)?", re.IGNORECASE
)
_EPOCH = datetime.date(1970, 1, 1)
_DAYS = range((datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days + 1)
_DAY = 86_400 * UNITS["micros"]
_LARGEST_FLOAT = 3.4028234663852886e38
_LONGEST_INTEGER = 40  # digits; no integer type has as many
_LARGEST_OFFSET = 18 * 3600  # of a time zone, in seconds, as in Java

_CONNECT, _TIME, _DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."
_MEANINGS = {
    f"{_CONNECT}Decimal": "decimal",
    f"{_DATA}VariableScaleDecimal": "decimal",
    f"{_DATA}Bits": "bits",
    f"{_CONNECT}Date": "days",
    f"{_TIME}Date": "days",
    f"{_CONNECT}Timestamp": "millis",
    f"{_TIME}Timestamp": "millis",
    f"{_TIME}MicroTimestamp": "micros",
    f"{_TIME}NanoTimestamp": "nanos",
    f"{_CONNECT}Time": "time in millis",
    f"{_TIME}Time": "time in millis",
    f"{_TIME}MicroTime": "time in micros",
    f"{_TIME}NanoTime": "time in nanos",
}


class Unreadable(Exception):
    """A record that can't be read as changes of the table; the text is the reason."""


@dataclass(frozen=True)
class Meaning:
    """What a field's values stand for: `kind` is a value of `_MEANINGS`, empty where they stand for themselves.

    `parts` are the meanings of a nested field's parts, by name: `element`, `key` and `value`, or the fields.
    """

    kind: str = ""
    scale: int | None = None
    parts: tuple[tuple[str, Meaning], ...] = ()

    def part(self, name: str) -> Meaning:
        return next((meaning for part, meaning in self.parts if part == name), Meaning())


@dataclass(frozen=True)
class Encodings:
    """What the records don't say. `timestamps` is the unit of TIMESTAMP columns, for all or by column."""

    decimals: str | None = None
    timestamps: str | Mapping[str, str] | None = None
    binary: str = "base64"
    unavailable: str = UNAVAILABLE

    def meaning(self, column: str, type_: DataType) -> Meaning:
        """Return what a column's values stand for where its record carries no schema."""
        if isinstance(self.timestamps, Mapping):
            unit = self.timestamps.get(column)
        else:
            unit = self.timestamps if type_.is_timestamp else None
        if unit in UNITS:
            return Meaning(unit)
        if self.decimals == "precise" and type_.is_decimal:
            return Meaning("decimal", type_.scale)
        return Meaning()


ValueReader: TypeAlias = Callable[[Any, Meaning], Any]


def meaning_of(field: Mapping[str, Any]) -> Meaning:
    """Return what the Connect schema of a field says of its values."""
    if field.get("type") in ("array", "map", "struct"):
        parts: dict[Any, Any] = {"element": field.get("items"), "key": field.get("keys"), "value": field.get("values")}
        parts |= {inner.get("field"): inner for inner in field.get("fields") or () if isinstance(inner, dict)}
        nested = tuple((str(name), meaning_of(part)) for name, part in parts.items() if isinstance(part, dict))
        return Meaning(_meaning(field.get("name"), None).kind, None, nested)
    scale = (field.get("parameters") or {}).get("scale")
    return _meaning(field.get("name"), scale)


@cache
def _meaning(name: str | None, scale: str | None) -> Meaning:
    return Meaning(_MEANINGS.get(name or "", ""), int(scale) if scale is not None else None)


def reader(type_: DataType, encodings: Encodings) -> ValueReader | None:
    """What reads JSON values as a column of this type; None for types that can't be read.

    Dates and timestamps come back as numbers of days and of microseconds.

    >>> reader(types.INT64, Encodings())(7, Meaning())
    7
    >>> reader(types.decimal(6, 2), Encodings())("AeJA", Meaning("decimal", 2))
    Decimal('1234.56')
    """
    read = _plain_reader(type_, encodings)
    return None if read is None else reader_if_sent(read, encodings)


def reader_if_sent(read: ValueReader, encodings: Encodings) -> ValueReader:
    """Return a reader that rejects the mark which Debezium sends in place of an unchanged large value."""

    def available(value: Any, meaning: Meaning) -> Any:
        if value == encodings.unavailable:
            raise Unreadable("its value was not sent (an unchanged large value, TOAST)")
        return read(value, meaning)

    return available


def _plain_reader(type_: DataType, encodings: Encodings) -> ValueReader | None:
    if (precision := type_.precision) is not None and (scale := type_.scale) is not None:
        return lambda value, meaning: _decimal(value, meaning, precision, scale, encodings)
    if type_.is_integer:
        integers = type_.integers
        return lambda value, meaning: _integer(value, meaning, integers)
    if type_ == types.BINARY:
        return lambda value, meaning: _binary(value, encodings)
    plain: dict[str, ValueReader] = {
        "boolean": _boolean,
        "float32": lambda value, meaning: _double(value, meaning, _LARGEST_FLOAT),
        "float64": lambda value, meaning: _double(value, meaning, None),
        "string": _string,
        "date": _date,
        "timestamp": lambda value, meaning: _timestamp(value, meaning, instant=True),
        "timestamp_ntz": lambda value, meaning: _timestamp(value, meaning, instant=False),
    }
    return plain.get(type_)


def _boolean(value: Any, meaning: Meaning) -> bool:
    # MySQL's BOOLEAN is a TINYINT.
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise _unfit(value, "is not a boolean")


def _integer(value: Any, meaning: Meaning, values: range) -> int:
    if meaning.kind == "decimal" and not _is_number(value):
        value = _unscaled(value, meaning)
    elif meaning.kind == "bits" and isinstance(value, str):
        value = int.from_bytes(_base64(value), "little")
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() >= _LONGEST_INTEGER:
        raise _unfit(value, "is out of range")  # written out, it might have a billion digits
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(value, "is not an integer")
    if value not in values:
        raise _unfit(value, "is out of range")
    return value


def _double(value: Any, meaning: Meaning, largest: float | None) -> float:
    if meaning.kind == "decimal" and not _is_number(value):
        value = _unscaled(value, meaning)
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if not _is_number(value):
        raise _unfit(value, "is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if Decimal(value).is_finite() and (number in (float("inf"), float("-inf")) or (largest and abs(number) > largest)):
        raise _unfit(value, "is out of range")
    return number


def _decimal(value: Any, meaning: Meaning, precision: int, scale: int, encodings: Encodings) -> Decimal:
    if _is_number(value):
        number = Decimal(value)
    elif meaning.kind == "decimal":
        number = _unscaled(value, meaning)
    elif isinstance(value, str):
        number = _decimal_text(value, encodings)
    else:
        raise _unfit(value, "is not a number")
    if not number.is_finite():
        raise _unfit(value, "is not a finite number")
    return _exactly(number, precision, scale)


def _decimal_text(text: str, encodings: Encodings) -> Decimal:
    """A decimal as text. Digits alone may just as well be base64, so they count only where the source says so."""
    if encodings.decimals is None and _BASE64.fullmatch(text):
        raise _unfit(text, 'could be base64 or a number: give decimals="precise" or decimals="string"')
    if not _NUMBER.fullmatch(text):
        raise _unfit(text, "is not a number")
    return Decimal(text)


def _exactly(number: Decimal, precision: int, scale: int) -> Decimal:
    """Return the number with exactly `scale` digits after the point."""
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    try:
        return context.quantize(number, Decimal((0, (1,), -scale)))
    except (Inexact, InvalidOperation) as error:
        raise _unfit(number, f"does not fit into DECIMAL({precision},{scale})") from error


def _unscaled(value: Any, meaning: Meaning) -> Decimal:
    """Return a decimal as its unscaled value in base64; with `scale` and `value` if each value has its own scale."""
    scale = meaning.scale
    if isinstance(value, dict):
        scale, value = value.get("scale"), value.get("value")
    if not isinstance(value, str) or isinstance(scale, bool) or not isinstance(scale, int) or abs(scale) > 10_000:
        raise _unfit(value, "is not a decimal of Kafka Connect")
    data = _base64(value)
    if not data:
        raise _unfit(value, "is not a decimal of Kafka Connect")
    # By way of Decimal: Python refuses to write integers of more than 4,300 digits as text.
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -scale))


def _string(value: Any, meaning: Meaning) -> str:
    if meaning.kind == "decimal" and not _is_number(value):
        return format(_unscaled(value, meaning), "f")
    if isinstance(value, int) and not isinstance(value, bool):
        if meaning.kind == "days":
            return _date_text(value)
        if meaning.kind in UNITS:
            micros = _micros(value, meaning.kind)
            return f"{_date_text(micros // _DAY)}T{_time_text(micros % _DAY)}"
        if meaning.kind.startswith("time in "):
            return _time_text(_micros(value, meaning.kind.removeprefix("time in ")))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | Decimal):
        return _checked_text(str(value))
    raise _unfit(value, "is not text")


def _checked_text(text: str) -> str:
    """JSON can contain half of a surrogate pair, which is not a character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _unfit(text, "has half of a surrogate pair, which is not a character") from error
    return text


def _date_text(days: int) -> str:
    return (_EPOCH + datetime.timedelta(days=_checked_days(days))).isoformat()


def _time_text(micros: int) -> str:
    if not 0 <= micros <= _DAY:
        raise _unfit(micros, "is not a time of day")
    seconds, fraction = divmod(micros, UNITS["micros"])
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}" if fraction else text


def _binary(value: Any, encodings: Encodings) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, f"is not bytes in {encodings.binary}")
    if encodings.binary == "hex":
        try:
            data = bytes.fromhex(value)
        except ValueError as error:
            raise _unfit(value, "is not hexadecimal") from error
    else:
        data = _base64(value, url_safe=encodings.binary == "base64-url-safe")
    if data == encodings.unavailable.encode():
        raise Unreadable("its value was not sent (an unchanged large value, TOAST)")
    return data


def _base64(text: str, *, url_safe: bool = False) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_" if url_safe else None, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unfit(text, "is not base64") from error


def _date(value: Any, meaning: Meaning) -> int:
    if isinstance(value, str) and (found := _DATE.fullmatch(value)) is not None:
        return _days(found[1], value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(value, "is not a date")
    if meaning.kind in UNITS:
        days, rest = divmod(_micros(value, meaning.kind), _DAY)
        if rest:
            raise _unfit(value, "is a date with a time of day")
        return _checked_days(days)
    return _checked_days(value)


def _timestamp(value: Any, meaning: Meaning, *, instant: bool) -> int:
    if isinstance(value, str):
        return _timestamp_text(value, instant=instant)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(value, "is not a timestamp")
    if meaning.kind == "days":
        return _checked_days(value) * _DAY
    if meaning.kind not in UNITS:
        raise _unfit(value, 'is a timestamp of unknown unit: give timestamps="millis", "micros" or "nanos"')
    micros = _micros(value, meaning.kind)
    if micros // _DAY not in _DAYS:
        raise _unfit(value, f"is out of range for a timestamp in {meaning.kind}")
    return micros


def _timestamp_text(text: str, *, instant: bool) -> int:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise _unfit(text, "is not a timestamp")
    date, hour, minute, second, fraction, zone = found.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise _unfit(text, "is not a timestamp")
    if (fraction or "")[6:].strip("0"):
        raise _unfit(text, "is more precise than microseconds")
    if zone is None and instant:
        raise _unfit(text, "has no time zone, which a TIMESTAMP needs; declare the column as TIMESTAMP_NTZ")
    offset = _offset(zone)
    if abs(offset) > _LARGEST_OFFSET:
        raise _unfit(text, "has no valid time zone")
    seconds = _days(date, text) * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second or 0)
    micros = (seconds - offset) * UNITS["micros"] + int(((fraction or "") + "000000")[:6])
    if micros // _DAY not in _DAYS:
        raise _unfit(text, "is out of range")
    return micros


def _offset(zone: str | None) -> int:
    if zone is None or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _days(date: str, text: str) -> int:
    try:
        return (datetime.date.fromisoformat(date) - _EPOCH).days
    except ValueError as error:
        raise _unfit(text, "is not a date") from error


def _checked_days(days: int) -> int:
    if days not in _DAYS:
        raise _unfit(days, "is out of range for a date")
    return days


def _micros(value: int, unit: str) -> int:
    micros, rest = divmod(value * UNITS["micros"], UNITS[unit])
    if rest:
        raise _unfit(value, "is more precise than microseconds")
    return micros


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _unfit(value: Any, why: str) -> Unreadable:
    return Unreadable(f"{str(value)[:80]!r} {why}")
