"""Parse TOML into a `Pipeline`: unknown options and invalid values are rejected by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crown.errors import SchemaError
from crown.spark.pipeline.description import PipelineDescription, PipelineView, TableSource
from crown.spark.pipeline.filekey import FileKey
from crown.spark.pipeline.formats import KNOWN_SOURCES, table_options
from crown.spark.pipeline.sinks import read_sink
from crown.spark.pipeline.values import (
    OptionReader,
    check_kafka,
    format_of,
    one_of,
    read_anything,
    read_cells,
    read_count,
    read_dialect,
    read_flag,
    read_mapping,
    read_master,
    read_names,
    read_options,
    read_settings,
    read_spark,
    read_sql_file,
    read_text,
    read_timestamps,
    read_trigger,
    resolved,
)
from crown.spark.pipeline.viewfiles import read_views
from crown.spark.sources.encodings import BINARY, DECIMALS

_GIVEN = ("name", "cells", "on_invalid", "trigger", "master", "dialect", "spark", "console")
_ENCODINGS = ("decimals", "timestamps", "binary", "unavailable")


def read(path: Path) -> PipelineDescription:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SchemaError(f"{path} can't be read: {reason}", code="CROWN-PIPELINE-FILE") from error
    place = FileKey(str(path))
    options = read_options(data, _TOP, place)
    base = path.parent
    for name in ("checkpoint", "tables"):
        if not options.get(name):
            raise place.missing(name)
    if options.get("on_invalid") == "quarantine" and "rejects" not in options:
        raise place.missing("rejects", 'with on_invalid = "quarantine", name the directory for rejected changes')
    given = {name: options[name] for name in _GIVEN if name in options}
    return PipelineDescription(
        views=_views(options, base, place, alone=options.get("name") or path.stem),
        checkpoint=resolved(base, options["checkpoint"]),
        tables=_tables(options["tables"], base, place.at("tables")),
        alone="views" not in options,
        rejects=resolved(base, options["rejects"]) if "rejects" in options else None,
        file=str(path),
        **given,
    )


def _views(options: Mapping[str, Any], base: Path, place: FileKey, *, alone: str) -> tuple[PipelineView, ...]:
    """Return the views of `views`, or the one of `query`, which has the name `alone`."""
    given = [name for name in ("query", "query_file", "views") if name in options]
    if len(given) != 1:
        hint = 'give one of query = "SELECT ...", query_file = "file.sql", or [views.NAME] for each of several views'
        if given:
            raise place.at(given[1]).fault(f"is given beside {given[0]}", hint=hint)
        raise place.missing("query", hint)
    if given == ["views"]:
        return read_views(options["views"], options.get("sink"), base, place.at("views"))
    if not options.get("sink"):
        raise place.missing("sink")
    query_file = options.get("query_file")
    query = (
        options["query"] if query_file is None else read_sql_file(base / query_file, query_file, place.at("query_file"))
    )
    return (PipelineView(alone, query, read_sink(options["sink"], base, place.at("sink")), given[0]),)


def _tables(data: Mapping[str, Any], base: Path, place: FileKey) -> tuple[TableSource, ...]:
    found: dict[str, TableSource] = {}
    for name, value in data.items():
        if name.lower() in found:
            raise place.at(name).fault("is defined twice", hint="table names are not case-sensitive")
        found[name.lower()] = _table(name, value, base, place.at(name))
    return tuple(found.values())


def _table(name: str, value: Any, base: Path, place: FileKey) -> TableSource:
    value = read_mapping(value, place)
    format_ = format_of(value, KNOWN_SOURCES, place)
    known = {option: _TABLE[option] for option in table_options(format_, value)}
    options = read_options(value, known, place)
    _file_source(format_, options, place)
    if format_ in ("kafka", "debezium") and "path" not in options:
        check_kafka(options, place, ("subscribe", "subscribePattern", "assign"))
    if "path" in options:
        options["path"] = resolved(base, options["path"])
    encodings = {option: options.pop(option) for option in _ENCODINGS if option in options}
    return TableSource(name=name, **options, encodings=encodings)


def _file_source(format_: str, options: Mapping[str, Any], place: FileKey) -> None:
    files = format_ in ("csv", "json", "parquet", "orc")
    if (files or format_ == "delta") and "path" not in options:
        raise place.missing("path")
    streamed = files and not options.get("static")
    if (streamed or format_ in ("kafka", "debezium")) and "schema" not in options:
        raise place.missing("schema", 'give the columns and their types: schema = "id BIGINT, name STRING"')


_TOP: Mapping[str, OptionReader] = {
    "query": read_text,
    "query_file": read_text,
    "views": read_anything,
    "name": read_text,
    "checkpoint": read_text,
    "console": read_flag,
    "cells": read_cells,
    "on_invalid": one_of("raise", "quarantine"),
    "rejects": read_text,
    "trigger": read_trigger,
    "master": read_master,
    "dialect": read_dialect,
    "tables": read_mapping,
    "sink": read_mapping,
    "spark": read_spark,
}
_TABLE: Mapping[str, OptionReader] = {
    "format": read_text,
    "path": read_text,
    "schema": read_text,
    "static": read_flag,
    "key": read_names,
    "profile": one_of("static", "insert_only", "fifo", "arbitrary"),
    "window": read_anything,
    "rows": read_count,
    "files_per_batch": read_count,
    "servers": read_text,
    "topic": read_text,
    "value": one_of("json", "debezium"),
    "decimals": one_of(*DECIMALS),
    "timestamps": read_timestamps,
    "binary": one_of(*BINARY),
    "unavailable": read_text,
    "options": read_settings,
}
