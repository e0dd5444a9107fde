"""Check the arguments of a view's methods; errors use the user's words."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeGuard

from crown.errors import CrownError, InvalidChange
from crown.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from crown.wording import with_article

MOST_THREADS = 256
_MOST_SAMPLED = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise _wrong(f"{name} must be True or False, not {shown(value)}")


def check_name(value: object) -> None:
    if not isinstance(value, str):
        raise _wrong(f"the name of a view must be a string, not {_kind(value)}")


def check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise _wrong(f"{name} must be a string, not {_kind(value)}")


def check_port(port: object) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise _wrong(f"port must be a whole number from 0 to 65535, not {shown(port)}")


def check_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise _wrong(f"a path must be a string or a pathlib.Path, not {_kind(path)}")


def check_threads(threads: object) -> None:
    if not _is_integer(threads) or not 1 <= threads <= MOST_THREADS:
        raise _wrong(
            f"threads must be a number from 1 to {MOST_THREADS}, not {shown(threads)}",
            hint="use as many threads as the machine has cores to spare",
        )


def check_on_invalid(on_invalid: object) -> None:
    if not isinstance(on_invalid, str) or on_invalid not in ("raise", "quarantine"):
        raise _wrong(
            f"on_invalid must be 'raise' or 'quarantine', not {shown(on_invalid)}",
            hint="'raise' rejects the whole batch, 'quarantine' only the invalid changes (see `rejected`)",
        )


def check_sample(rows: object, seed: object) -> None:
    if not _is_integer(rows) or not 0 <= rows <= _MOST_SAMPLED:
        raise _wrong(f"the number of rows to sample must be from 0 to {_MOST_SAMPLED}, not {shown(rows)}")
    if seed is not None and not _is_integer(seed):
        raise _wrong(f"seed must be an integer, not {shown(seed)}")


def check_page(offset: object, limit: object) -> None:
    for name, value in (("offset", offset), ("limit", limit)):
        if not _is_integer(value) or not 0 <= value < 2**63:
            raise _wrong(f"{name} must be a number from 0 on, not {shown(value)}")


def check_keep(keep: object) -> None:
    if not isinstance(keep, str) or keep not in ("read", "all"):
        raise _wrong(
            f"keep must be 'read' or 'all', not {shown(keep)}",
            hint="'read' stores the columns that some view reads, 'all' everything, for views to come",
        )


def read_watermark(table: str, column: DataType, watermark: object) -> int:
    """Return the watermark in the unit of the window's column: microseconds for timestamps, days for dates."""
    if isinstance(watermark, datetime) and column == TIMESTAMP:
        return _microseconds(watermark if watermark.tzinfo is not None else watermark.replace(tzinfo=UTC))
    if isinstance(watermark, datetime) and column == TIMESTAMP_NTZ and watermark.tzinfo is None:
        return _microseconds(watermark.replace(tzinfo=UTC))
    if isinstance(watermark, date) and not isinstance(watermark, datetime) and column == DATE:
        return (watermark - _EPOCH.date()).days
    if _is_integer(watermark) and -(2**63) <= watermark < 2**63:
        return watermark
    wanted = {
        TIMESTAMP: "a datetime, or a 64-bit integer of microseconds since 1970",
        TIMESTAMP_NTZ: "a datetime without time zone, or a 64-bit integer of microseconds since 1970",
        DATE: "a date, or a 64-bit integer of days since 1970",
    }.get(column, "a 64-bit integer")
    raise InvalidChange(
        f"the watermark of table {table} must be {wanted}, not {shown(watermark)}",
        code="CROWN-CHANGE-TYPE",
        reason=f"the column of its window is {with_article(column.shown)}",
    )


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def check_budget(budget: object) -> None:
    if budget is None:
        return
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < math.inf:
        raise _wrong(
            f"budget must be a number of bytes above 0, not {shown(budget)}", hint="leave it out to show no limit"
        )


def table_changes(changes: object) -> list[tuple[str, Any]]:
    """Return the pairs of table and data that `apply` was given."""
    if isinstance(changes, Mapping):
        return list(changes.items())
    if isinstance(changes, Sequence) and not isinstance(changes, str | bytes):
        pairs = list(changes)
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            return [(table, data) for table, data in pairs]
    raise InvalidChange(
        f"{_kind(changes)} is not a collection of changes",
        code="CROWN-CHANGE-TYPE",
        hint="give a dict of table names and data, or a list of (table name, data) pairs",
    )


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {shown(value)}"


def shown(value: object) -> str:
    """Format a value for a message."""
    try:
        text = repr(value)
    except Exception:
        return with_article(type(value).__name__)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _wrong(message: str, *, hint: str | None = None) -> CrownError:
    return CrownError(message, code="CROWN-ARGUMENT", hint=hint)
