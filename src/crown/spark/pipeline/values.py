"""Read values of a pipeline's file: each reader returns the value of a key, or rejects it by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from crown.spark.flow.cell_keys import MOST_CELLS
from crown.spark.pipeline.filekey import FileKey, closest
from crown.spark.sources.encodings import UNITS
from crown.sql.dialect import dialects

_INTERVAL = re.compile(
    r"(?:interval\s+)?(?:\d+(?:\.\d+)?\s*(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\]|local-cluster\[[\d, ]+\]|yarn|(spark|k8s|mesos)://.+"
)

OptionReader: TypeAlias = Callable[[Any, FileKey], Any]


def read_options(data: Mapping[str, Any], readers: Mapping[str, OptionReader], place: FileKey) -> dict[str, Any]:
    for name in data:
        if name not in readers:
            hint = f"options are {', '.join(sorted(readers))}"
            raise place.at(name).fault("is not an option", code="OPTION", hint=closest(name, readers) + hint)
    return {name: readers[name](value, place.at(name)) for name, value in data.items()}


def read_mapping(value: Any, place: FileKey) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.fault(f"is {value!r}, not a table", hint=f"write it as [{place.key}]")
    return value


def read_text(value: Any, place: FileKey) -> str:
    if not isinstance(value, str):
        raise place.fault(f"is {value!r}, not a string")
    if not value.strip():
        raise place.fault("is empty")
    if "\0" in value:
        raise place.fault(f"is {value!r}", reason="it contains a NUL character")
    return value


def read_count(value: Any, place: FileKey) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise place.fault(f"is {value!r}", hint="a whole number, 1 or more")
    return value


def read_cells(value: Any, place: FileKey) -> int:
    if read_count(value, place) > MOST_CELLS:
        raise place.fault(f"is {value!r}", hint=f"at most {MOST_CELLS}; `crown run --check` suggests a number")
    return int(value)


def read_flag(value: Any, place: FileKey) -> bool:
    if not isinstance(value, bool):
        raise place.fault(f"is {value!r}", hint="true or false")
    return value


def one_of(*allowed: str) -> OptionReader:
    def read_one(value: Any, place: FileKey) -> str:
        if value not in allowed:
            hint = closest(str(value), allowed) + f"one of {', '.join(allowed)}"
            raise place.fault(f"is {value!r}", hint=hint)
        return str(value)

    return read_one


def read_names(value: Any, place: FileKey) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise place.fault(f"is {value!r}", hint='names of columns: ["id"]')
    return tuple(names)


def read_settings(value: Any, place: FileKey) -> dict[str, str]:
    found = {}
    for name, setting in _flat(read_mapping(value, place)):
        if not isinstance(setting, str | int | float | bool):
            raise place.at(name).fault(f"is {setting!r}", hint="use a string, a number, true or false")
        found[name] = str(setting).lower() if isinstance(setting, bool) else str(setting)
    return found


def _flat(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """TOML takes the points of a name that is not in quotes for tables in tables."""
    pairs: list[tuple[str, Any]] = []
    for name, value in data.items():
        if isinstance(value, dict):
            pairs += [(f"{name}.{inner}", setting) for inner, setting in _flat(value)]
        else:
            pairs.append((name, value))
    return pairs


def read_spark(value: Any, place: FileKey) -> dict[str, str]:
    found = read_settings(value, place)
    for name in found:
        if not name.startswith("spark."):
            raise place.at(name).fault(
                "is not a Spark setting", code="OPTION", hint="the names of settings start with spark."
            )
    return found


def read_trigger(value: Any, place: FileKey) -> str:
    if not isinstance(value, str) or not (value == "available" or _INTERVAL.fullmatch(value.strip())):
        hint = 'use "available" (process what exists, then stop) or an interval such as "10 seconds"'
        raise place.fault(f"is {value!r}", hint=hint)
    return value


def read_master(value: Any, place: FileKey) -> str:
    if not isinstance(value, str) or not _MASTER.fullmatch(value.strip()):
        raise place.fault(f"is {value!r}", hint='"local[2]", "yarn", "spark://host:7077" or "k8s://..."')
    return value


def read_timestamps(value: Any, place: FileKey) -> Any:
    if isinstance(value, dict):
        return {column: one_of(*UNITS)(unit, place.at(column)) for column, unit in value.items()}
    return one_of(*UNITS)(value, place)


def read_dialect(value: Any, place: FileKey) -> str:
    known = dialects()
    if not isinstance(value, str) or value.lower() not in known:
        raise place.fault(f"is {value!r}", hint=closest(str(value), known) + "a dialect of sqlglot, such as postgres")
    return value.lower()


def read_anything(value: Any, place: FileKey) -> Any:
    return value


def format_of(value: Mapping[str, Any], known: Collection[str], place: FileKey) -> str:
    if "format" not in value:
        raise place.missing("format", f"one of {', '.join(known)}")
    return read_text(value["format"], place.at("format"))


def resolved(base: Path, path: str) -> str:
    return path if "://" in path else str((base / path).resolve())


def read_sql_file(path: Path, shown: str, place: FileKey) -> str:
    """Return the text of a file with a query, which the key names as `shown`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise place.fault(f"is {shown!r}, which can't be read: {reason}", code="FILE") from error


def check_kafka(options: Mapping[str, Any], place: FileKey, topics: tuple[str, ...]) -> None:
    passed = options.get("options", {})
    if "servers" not in options and "kafka.bootstrap.servers" not in passed:
        raise place.missing("servers", 'name the brokers: servers = "host:9092"')
    if "topic" not in options and not passed.keys() & set(topics):
        raise place.missing("topic")
