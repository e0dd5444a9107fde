"""Read JSON arrays and objects into columns of arrays, structs and maps.

A map is an object, whose names are its keys, or a list of pairs, as Kafka Connect writes maps whose keys are not text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from crown import types
from crown.spark.sources.encodings import Encodings, Meaning, Unreadable, ValueReader, reader, reader_if_sent
from crown.types import DataType

_EPOCH = datetime.datetime(1970, 1, 1)


def column_reader(column: str, type_: DataType, encodings: Encodings) -> ValueReader | None:
    """Like `encodings.reader`, for a column of any type."""
    if not type_.is_nested:
        return reader(type_, encodings)
    read = _part_reader(column, type_, encodings)
    return None if read is None else reader_if_sent(read, encodings)


def find_field(image: Mapping[str, Any], name: str) -> str | None:
    """Return the field of an object for a column; names match as Spark matches them, whatever their case."""
    if name in image:
        return name
    return next((found for found in image if found.lower() == name.lower()), None)


def _part_reader(column: str, type_: DataType, encodings: Encodings) -> ValueReader | None:
    """What reads a part that is not NULL, as pyarrow takes it."""
    if type_.element is not None:
        return _array_reader(_part_reader(column, type_.element, encodings))
    if type_.entry is not None:
        key, value = type_.entry
        return _map_reader(key, _part_reader(column, key, encodings), _part_reader(column, value, encodings))
    if type_.is_nested:
        return _struct_reader({name: _part_reader(column, field, encodings) for name, field in type_.fields})
    read = reader(type_, encodings)
    if read is None:
        return None
    own = encodings.meaning(column, type_) if type_.is_timestamp or type_.is_decimal else Meaning()
    return lambda value, meaning: _as_object(read(value, own if meaning == Meaning() else meaning), type_)


def _as_object(value: Any, type_: DataType) -> Any:
    """Dates and timestamps, which are read as numbers."""
    if type_ == types.DATE:
        return _EPOCH.date() + datetime.timedelta(days=value)
    if type_.is_timestamp:
        moment = _EPOCH + datetime.timedelta(microseconds=value)
        return moment.replace(tzinfo=datetime.UTC) if type_ == types.TIMESTAMP else moment
    return value


def _array_reader(element: ValueReader | None) -> ValueReader | None:
    if element is None:
        return None

    def read(value: Any, meaning: Meaning) -> list[Any]:
        if not isinstance(value, list):
            raise Unreadable(f"{str(value)[:80]!r} is not an array")
        inner = meaning.part("element")
        return [None if one is None else element(one, inner) for one in value]

    return read


def _struct_reader(fields: Mapping[str, ValueReader | None]) -> ValueReader | None:
    readers = {name: read for name, read in fields.items() if read is not None}
    if len(readers) < len(fields):
        return None

    def read(value: Any, meaning: Meaning) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Unreadable(f"{str(value)[:80]!r} is not an object")
        found = {name: find_field(value, name) for name in readers}
        parts = {name: None if place is None else value[place] for name, place in found.items()}
        return {
            name: None if part is None else readers[name](part, meaning.part(found[name] or name))
            for name, part in parts.items()
        }

    return read


def _map_reader(key_type: DataType, key: ValueReader | None, item: ValueReader | None) -> ValueReader | None:
    if key is None or item is None or key_type.is_nested:
        return None

    def read(value: Any, meaning: Meaning) -> list[tuple[Any, Any]]:
        keys, items = meaning.part("key"), meaning.part("value")
        pairs = [(key(name, keys), one) for name, one in _pairs(value, key_type)]
        if len({name for name, _ in pairs}) < len(pairs):
            raise Unreadable("a map has a key twice")
        return [(name, None if one is None else item(one, items)) for name, one in pairs]

    return read


def _pairs(value: Any, key_type: DataType) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [(_key(name, key_type), one) for name, one in value.items()]
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Unreadable(f"{str(value)[:80]!r} is not a map")
    if any(name is None for name, _ in value):
        raise Unreadable("a map has a NULL as a key")
    return [(name, one) for name, one in value]


def _key(name: str, type_: DataType) -> Any:
    """The key that the name of a field stands for: a number or boolean as its JSON."""
    if not type_.is_numeric and type_ != types.BOOLEAN:
        return name
    try:
        return json.loads(name, parse_float=Decimal, parse_constant=str)
    except ValueError:
        return name
