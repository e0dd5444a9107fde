"""From TOML to a `Pipeline`: unknown options and values that can't be meant are refused by name."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from crown.errors import SchemaError
from crown.spark.flow.cells import MOST_CELLS
from crown.spark.pipeline.description import PipelineDescription, Sink, TableSource
from crown.spark.pipeline.formats import KNOWN_SINKS, KNOWN_SOURCES, sink_options, table_options
from crown.spark.sources.encodings import BINARY, DECIMALS, UNITS

_INTERVAL = re.compile(
    r"(?:interval\s+)?(?:\d+(?:\.\d+)?\s*(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\]|local-cluster\[[\d, ]+\]|yarn|(spark|k8s|mesos)://.+"
)
_GIVEN = ("name", "cells", "on_invalid", "trigger", "master", "spark", "console")
_ENCODINGS = ("decimals", "timestamps", "binary", "unavailable")


@dataclass(frozen=True)
class FileKey:
    """A key of a file, for messages."""

    file: str
    key: str = ""

    def at(self, key: str) -> FileKey:
        return FileKey(self.file, f"{self.key}.{key}" if self.key else key)

    def fault(
        self, what: str, *, code: str = "VALUE", hint: str | None = None, reason: str | None = None
    ) -> SchemaError:
        where = f"{self.file}: {self.key} " if self.key else f"{self.file} "
        return SchemaError(where + what, code=f"CROWN-PIPELINE-{code}", reason=reason, hint=hint)

    def missing(self, key: str, hint: str | None = None) -> SchemaError:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return SchemaError(f"{where} has no {key}", code="CROWN-PIPELINE-MISSING", hint=hint)


Reader: TypeAlias = Callable[[Any, FileKey], Any]


def read(path: Path) -> PipelineDescription:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SchemaError(f"{path} can't be read: {reason}", code="CROWN-PIPELINE-FILE") from error
    place = FileKey(str(path))
    options = _options(data, _TOP, place)
    base = path.parent
    if ("query" in options) == ("query_file" in options):
        raise place.missing("query", 'give either query = "SELECT ..." or query_file = "file.sql"')
    query = options["query"] if "query" in options else _query_file(base, options["query_file"], place)
    for name in ("checkpoint", "tables", "sink"):
        if not options.get(name):
            raise place.missing(name)
    if options.get("on_invalid") == "quarantine" and "rejects" not in options:
        raise place.missing("rejects", 'with on_invalid = "quarantine", name the directory for rejected changes')
    given = {name: options[name] for name in _GIVEN if name in options}
    return PipelineDescription(
        query=query,
        checkpoint=_path(base, options["checkpoint"]),
        tables=_tables(options["tables"], base, place.at("tables")),
        sink=_sink(options["sink"], base, place.at("sink")),
        rejects=_path(base, options["rejects"]) if "rejects" in options else None,
        file=str(path),
        **given,
    )


def _tables(data: Mapping[str, Any], base: Path, place: FileKey) -> tuple[TableSource, ...]:
    found: dict[str, TableSource] = {}
    for name, value in data.items():
        if name.lower() in found:
            raise place.at(name).fault("is defined twice", hint="table names are not case-sensitive")
        found[name.lower()] = _table(name, value, base, place.at(name))
    return tuple(found.values())


def _table(name: str, value: Any, base: Path, place: FileKey) -> TableSource:
    value = _mapping(value, place)
    format_ = _format(value, KNOWN_SOURCES, place)
    known = {option: _TABLE[option] for option in table_options(format_, value)}
    options = _options(value, known, place)
    _file_source(format_, options, place)
    if format_ in ("kafka", "debezium") and "path" not in options:
        _kafka(options, place, ("subscribe", "subscribePattern", "assign"))
    if "path" in options:
        options["path"] = _path(base, options["path"])
    encodings = {option: options.pop(option) for option in _ENCODINGS if option in options}
    return TableSource(name=name, **options, encodings=encodings)


def _file_source(format_: str, options: Mapping[str, Any], place: FileKey) -> None:
    files = format_ in ("csv", "json", "parquet", "orc")
    if (files or format_ == "delta") and "path" not in options:
        raise place.missing("path")
    streamed = files and not options.get("static")
    if (streamed or format_ in ("kafka", "debezium")) and "schema" not in options:
        raise place.missing("schema", 'give the columns and their types: schema = "id BIGINT, name STRING"')


def _sink(value: Any, base: Path, place: FileKey) -> Sink:
    value = _mapping(value, place)
    format_ = _format(value, KNOWN_SINKS, place)
    known, needed = sink_options(format_)
    options = _options(value, {option: _SINK[option] for option in known}, place)
    for option in needed:
        if option not in options:
            raise place.missing(option)
    if format_ == "kafka":
        _kafka(options, place, ("topic",))
    if "path" in options:
        options["path"] = _path(base, options["path"])
    return Sink(**options)


def _kafka(options: Mapping[str, Any], place: FileKey, topics: tuple[str, ...]) -> None:
    passed = options.get("options", {})
    if "servers" not in options and "kafka.bootstrap.servers" not in passed:
        raise place.missing("servers", 'name the brokers: servers = "host:9092"')
    if "topic" not in options and not passed.keys() & set(topics):
        raise place.missing("topic")


def _format(value: Mapping[str, Any], known: Collection[str], place: FileKey) -> str:
    if "format" not in value:
        raise place.missing("format", f"one of {', '.join(known)}")
    return _text(value["format"], place.at("format"))


def _options(data: Mapping[str, Any], readers: Mapping[str, Reader], place: FileKey) -> dict[str, Any]:
    for name in data:
        if name not in readers:
            hint = f"options are {', '.join(sorted(readers))}"
            raise place.at(name).fault("is not an option", code="OPTION", hint=closest(name, readers) + hint)
    return {name: readers[name](value, place.at(name)) for name, value in data.items()}


def closest(word: str, known: Collection[str]) -> str:
    """
    >>> closest("cvs", ["csv", "json"])
    "did you mean 'csv'? "
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {found[0]!r}? " if found else ""


def _mapping(value: Any, place: FileKey) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.fault(f"is {value!r}, not a table", hint=f"write it as [{place.key}]")
    return value


def _text(value: Any, place: FileKey) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.fault(f"is {value!r}, not a string")
    if "\0" in value:
        raise place.fault(f"is {value!r}", reason="it contains a NUL character")
    return value


def _count(value: Any, place: FileKey) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise place.fault(f"is {value!r}", hint="a whole number, 1 or more")
    return value


def _cells(value: Any, place: FileKey) -> int:
    if _count(value, place) > MOST_CELLS:
        raise place.fault(f"is {value!r}", hint=f"at most {MOST_CELLS}; about the number of cores")
    return int(value)


def _flag(value: Any, place: FileKey) -> bool:
    if not isinstance(value, bool):
        raise place.fault(f"is {value!r}", hint="true or false")
    return value


def _one_of(*allowed: str) -> Reader:
    def read_one(value: Any, place: FileKey) -> str:
        if value not in allowed:
            hint = closest(str(value), allowed) + f"one of {', '.join(allowed)}"
            raise place.fault(f"is {value!r}", hint=hint)
        return str(value)

    return read_one


def _names(value: Any, place: FileKey) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise place.fault(f"is {value!r}", hint='names of columns: ["id"]')
    return tuple(names)


def _settings(value: Any, place: FileKey) -> dict[str, str]:
    found = {}
    for name, setting in _flat(_mapping(value, place)):
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


def _spark(value: Any, place: FileKey) -> dict[str, str]:
    found = _settings(value, place)
    for name in found:
        if not name.startswith("spark."):
            raise place.at(name).fault(
                "is not a Spark setting", code="OPTION", hint="the names of settings start with spark."
            )
    return found


def _trigger(value: Any, place: FileKey) -> str:
    if not isinstance(value, str) or not (value == "available" or _INTERVAL.fullmatch(value.strip())):
        hint = 'use "available" (process what exists, then stop) or an interval such as "10 seconds"'
        raise place.fault(f"is {value!r}", hint=hint)
    return value


def _master(value: Any, place: FileKey) -> str:
    if not isinstance(value, str) or not _MASTER.fullmatch(value.strip()):
        raise place.fault(f"is {value!r}", hint='"local[2]", "yarn", "spark://host:7077" or "k8s://..."')
    return value


def _timestamps(value: Any, place: FileKey) -> Any:
    if isinstance(value, dict):
        return {column: _one_of(*UNITS)(unit, place.at(column)) for column, unit in value.items()}
    return _one_of(*UNITS)(value, place)


def _anything(value: Any, place: FileKey) -> Any:
    return value


def _query_file(base: Path, name: str, place: FileKey) -> str:
    try:
        return Path(_path(base, name)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise place.at("query_file").fault(f"is {name!r}, which can't be read: {reason}", code="FILE") from error


def _path(base: Path, path: str) -> str:
    return path if "://" in path else str((base / path).resolve())


_TOP: Mapping[str, Reader] = {
    "query": _text,
    "query_file": _text,
    "name": _text,
    "checkpoint": _text,
    "console": _flag,
    "cells": _cells,
    "on_invalid": _one_of("raise", "quarantine"),
    "rejects": _text,
    "trigger": _trigger,
    "master": _master,
    "tables": _mapping,
    "sink": _mapping,
    "spark": _spark,
}
_TABLE: Mapping[str, Reader] = {
    "format": _text,
    "path": _text,
    "schema": _text,
    "static": _flag,
    "key": _names,
    "profile": _one_of("static", "insert_only", "fifo", "arbitrary"),
    "window": _anything,
    "rows": _count,
    "files_per_batch": _count,
    "servers": _text,
    "topic": _text,
    "value": _one_of("json", "debezium"),
    "decimals": _one_of(*DECIMALS),
    "timestamps": _timestamps,
    "binary": _one_of(*BINARY),
    "unavailable": _text,
    "options": _settings,
}
_SINK: Mapping[str, Reader] = {
    "format": _text,
    "path": _text,
    "connection": _text,
    "table": _text,
    "servers": _text,
    "topic": _text,
    "key": _names,
    "overwrite": _flag,
    "options": _settings,
}
