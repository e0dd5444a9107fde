"""Debezium's JSON records as changes of a table.

An update without `before`, as PostgreSQL sends it unless a table's replica identity is FULL, and a `before` with some
values missing only make sense for a table with a primary key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from crown.changes import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from crown.errors import SchemaError
from crown.spark.schema import as_struct
from crown.spark.sources.decoding import Fields, RecordChange, RowReader, decoded, parse_json
from crown.spark.sources.encodings import BINARY, DECIMALS, UNAVAILABLE, UNITS, Encodings, Unreadable, meaning_of

_NO_BEFORE = "a record without `before` needs a PRIMARY KEY, or REPLICA IDENTITY FULL in PostgreSQL"


class DebeziumOptions(TypedDict, total=False):
    """What records without a schema can't say about their values; see `debezium`."""

    decimals: str | None
    timestamps: str | Mapping[str, str] | None
    binary: str
    unavailable: str


def debezium(
    records: DataFrame,
    schema: StructType | str,
    *,
    value: str = "value",
    key: str = "key",
    decimals: str | None = None,
    timestamps: str | Mapping[str, str] | None = None,
    binary: str = "base64",
    unavailable: str = UNAVAILABLE,
) -> DataFrame:
    """Return Debezium's JSON records (with or without the `schema` and `payload` around them) as changes.

    `records` has the JSON text in the column `value`, and where it has the message's key in the column `key`, deletes
    need no `before`. Creates and snapshot reads insert, deletes delete, updates do both. Tombstones are skipped.

    Values are read by the Connect schema in the record. Where records carry none (`schemas.enable=false`), say what
    they don't: `decimals` is Debezium's `decimal.handling.mode` ("precise", "string" or "double"), `timestamps` the
    unit of TIMESTAMP columns ("millis", "micros" or "nanos"; a dict gives it by column), `binary` the
    `binary.handling.mode` ("base64", "base64-url-safe" or "hex"). A record with a field that doesn't fit its column is
    invalid, also one with the placeholder `unavailable` for an unchanged large value.
    """
    row = as_struct(schema)
    _check_options(row, decimals, timestamps, binary)
    rows = RowReader(row, Encodings(decimals, timestamps, binary, unavailable))
    return decoded(records, rows, read_record, value=value, key=key)


def _check_options(
    row: StructType, decimals: str | None, timestamps: str | Mapping[str, str] | None, binary: str
) -> None:
    units: dict[str, str | None] = dict(timestamps) if isinstance(timestamps, Mapping) else {"": timestamps}
    for column in units.keys() - {"", *row.fieldNames()}:
        raise SchemaError(f"timestamps= names {column!r}, which is not a column", code="CROWN-SOURCE-OPTION")
    given: list[tuple[str, str | None, tuple[str, ...]]] = [
        ("decimals", decimals, DECIMALS),
        ("binary", binary, BINARY),
    ]
    given += [("timestamps", unit, tuple(UNITS)) for unit in units.values()]
    for option, word, allowed in given:
        if word is not None and word not in allowed:
            raise SchemaError(
                f"{option} must not be {word!r}", code="CROWN-SOURCE-OPTION", hint=f"one of {', '.join(allowed)}"
            )


def read_record(rows: RowReader, text: str | None, key: str | None) -> list[RecordChange]:
    """Return the changes of a record; none of a tombstone."""
    record, fields = _unwrapped(text) if text is not None else (None, {})
    if record is None:
        return []
    operation, before, after = record.get("op"), record.get("before"), record.get("after")
    match operation:
        case "c" | "r":
            return [RecordChange(INSERT, rows.whole(after, fields.get("after"), "after"))]
        case "u" if before is None:
            return [RecordChange(UPDATE_POSTIMAGE, rows.whole(after, fields.get("after"), "after"), _NO_BEFORE)]
        case "u":
            old = RecordChange(UPDATE_PREIMAGE, *rows.partial(before, fields.get("before"), "before"))
            return [old, RecordChange(UPDATE_POSTIMAGE, rows.whole(after, fields.get("after"), "after"))]
        case "d" if before is not None:
            return [RecordChange(DELETE, *rows.partial(before, fields.get("before"), "before"))]
        case "d":
            return [_by_message_key(rows, key)]
        case "t":
            raise Unreadable("truncate is not supported: delete the rows instead, or start with a new checkpoint")
        case "m":
            return []  # a message in the log of the database, not a change
    raise Unreadable(f"op is {operation!r}, not c, r, u or d: this is not a change record of Debezium")


def _by_message_key(rows: RowReader, key: str | None) -> RecordChange:
    if key is None:
        raise Unreadable("a delete without `before`, and the message has no key")
    image, fields = _unwrapped(key)
    values, _ = rows.partial(image, fields.get(""), "the message's key")
    return RecordChange(DELETE, values, _NO_BEFORE)


def _unwrapped(text: str) -> tuple[dict[str, Any] | None, dict[str, Fields]]:
    """Return a record without what is around it, and the meanings of the fields of its images (of its own under "")."""
    record = parse_json(text)
    schema = None
    if isinstance(record, dict) and "payload" in record and "op" not in record:
        schema, record = record.get("schema"), record["payload"]
    if record is not None and not isinstance(record, dict):
        raise Unreadable("the record is not a JSON object")
    return record, _meanings(schema) if isinstance(schema, dict) else {}


def _meanings(schema: Mapping[str, Any]) -> dict[str, Fields]:
    try:
        own = [part for part in schema.get("fields") or [] if isinstance(part, dict)]
        described: dict[str, list[Any]] = {"": own}
        described |= {
            part["field"]: part.get("fields") or [] for part in own if part.get("field") in ("before", "after")
        }
        return {
            image: {field["field"]: meaning_of(field) for field in fields if isinstance(field, dict)}
            for image, fields in described.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable("the record's schema is not one of Kafka Connect") from error
