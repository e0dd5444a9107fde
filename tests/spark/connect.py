"""An encoder of Debezium's records, written from its documentation, not from the decoder."""

from __future__ import annotations

import base64
import datetime
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

COLUMNS = {
    "id": "BIGINT",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "whole": "INT",
    "truth": "BOOLEAN",
    "single": "FLOAT",
    "double": "DOUBLE",
    "price": "DECIMAL(12,3)",
    "name": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "clock": "TIMESTAMP_NTZ",
}
DDL = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
EPOCH = datetime.datetime(1970, 1, 1)
UNITS = {"millis": "Timestamp", "micros": "MicroTimestamp", "nanos": "NanoTimestamp"}


@dataclass(frozen=True)
class Mode:
    """How a connector is set: with schemas in its records or not, and its handling modes."""

    schemas: bool
    decimals: str = "precise"  # precise, variable (precise, of a column without a scale), numeric, string, double
    timestamps: str = "micros"  # millis, micros, nanos, iso
    binary: str = "base64"


def random_row(rng: random.Random, identity: int, mode: Mode) -> dict[str, Any]:
    """Values of all types, NULLs among them; instants no finer than the mode can say."""
    step = 1000 if mode.timestamps == "millis" else 1

    def moment() -> datetime.datetime:
        return EPOCH + datetime.timedelta(microseconds=rng.randrange(-(10**15), 10**16) // step * step)

    row = {
        "tiny": rng.randrange(-128, 128),
        "small": rng.randrange(-(2**15), 2**15),
        "whole": rng.choice([0, -(2**31), 2**31 - 1, rng.randrange(-1000, 1000)]),
        "truth": rng.random() < 0.5,
        "single": rng.randrange(-1000, 1000) / 8,
        "double": rng.choice([rng.uniform(-1e9, 1e9), 0.1, 1e300, float(rng.randrange(100))]),
        "price": Decimal(rng.choice([0, 1, -1, rng.randrange(-(10**12) + 1, 10**12)])).scaleb(-3),
        "name": rng.choice(["", "ann", "3", "ü€𝄞", "NULL", 'a"b\\c\n', "1970-01-01"]),
        "raw": rng.randbytes(rng.randrange(6)),
        "day": datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randrange(-200_000, 200_000)),
        "moment": moment(),
        "clock": moment(),
    }
    return {"id": identity, **{name: None if rng.random() < 0.15 else value for name, value in row.items()}}


def encoded(row: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    return {name: None if value is None else _value(name, value, mode) for name, value in row.items()}


def _value(name: str, value: Any, mode: Mode) -> Any:
    match name:
        case "price":
            return _decimal(value, mode)
        case "raw":
            if mode.binary == "hex":
                return value.hex()
            encode = base64.urlsafe_b64encode if mode.binary == "base64-url-safe" else base64.b64encode
            return encode(value).decode()
        case "day":
            return value.isoformat() + "Z" if mode.timestamps == "iso" else (value - EPOCH.date()).days
        case "moment" | "clock":
            micros = (value - EPOCH) // datetime.timedelta(microseconds=1)
            if mode.timestamps == "iso":
                return value.isoformat() + "Z"
            return {"millis": micros // 1000, "micros": micros, "nanos": micros * 1000}[mode.timestamps]
    return value


def _decimal(value: Decimal, mode: Mode) -> Any:
    unscaled = int(value.scaleb(3))
    text = base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
    match mode.decimals:
        case "precise":
            return text
        case "variable":
            return {"scale": 3, "value": text}
        case "string":
            return format(value, "f")
        case _:
            return float(value)


def field_schema(name: str, mode: Mode) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string", "optional": True, "field": name}
    match name, COLUMNS[name]:
        case "price", _ if mode.decimals in ("precise", "numeric"):
            parameters = {"scale": "3", "connect.decimal.precision": "12"}
            found |= {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
        case "price", _ if mode.decimals == "variable":
            found |= {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
        case "day", _:
            iso = mode.timestamps == "iso"
            found |= {"type": "string" if iso else "int32", "name": f"io.debezium.time.{'IsoDate' if iso else 'Date'}"}
        case (("moment" | "clock"), _):
            kind = UNITS.get(mode.timestamps) or {"moment": "ZonedTimestamp", "clock": "IsoTimestamp"}[name]
            found |= {"type": "int64", "name": f"io.debezium.time.{kind}"}
        case "raw", _ if mode.binary == "base64":
            found |= {"type": "bytes"}
    return found


def record(operation: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, mode: Mode) -> str:
    images = {"before": before, "after": after}
    payload: dict[str, Any] = {name: row and encoded(row, mode) for name, row in images.items()}
    payload |= {"source": {"table": "t"}, "op": operation, "ts_ms": 1}
    if not mode.schemas:
        return json.dumps(payload)
    fields = [field_schema(name, mode) for name in COLUMNS]
    parts = [{"type": "struct", "fields": fields, "optional": True, "field": name} for name in images]
    schema = {"type": "struct", "fields": [*parts, {"type": "string", "field": "op"}], "name": "t.Envelope"}
    return json.dumps({"schema": schema, "payload": payload})
