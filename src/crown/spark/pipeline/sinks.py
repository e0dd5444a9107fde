"""Read the sinks of views from a pipeline's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crown.spark.pipeline.description import Sink
from crown.spark.pipeline.filekey import FileKey
from crown.spark.pipeline.formats import KNOWN_SINKS, sink_options
from crown.spark.pipeline.values import (
    OptionReader,
    check_kafka,
    format_of,
    read_flag,
    read_mapping,
    read_names,
    read_options,
    read_settings,
    read_text,
    resolved,
)

VIEW = "{view}"  # in the options of a sink, the place for the view's name


def read_sink(value: Any, base: Path, place: FileKey, *, view: str | None = None) -> Sink:
    """Return the sink of a table of the file, in which `{view}` is the name of the view, if it has one."""
    value = read_mapping(value, place)
    format_ = format_of(value, KNOWN_SINKS, place)
    known, needed = sink_options(format_)
    options = read_options(value, {option: _SINK[option] for option in known}, place)
    for option in needed:
        if option not in options:
            raise place.missing(option)
    if format_ == "kafka":
        check_kafka(options, place, ("topic",))
    if view is not None:
        options = {name: _named(option, view) for name, option in options.items()}
    if "path" in options:
        options["path"] = resolved(base, options["path"])
    return Sink(**options, place=place.key)


def _named(option: Any, view: str) -> Any:
    match option:
        case str():
            return option.replace(VIEW, view)
        case dict():
            return {name: _named(inner, view) for name, inner in option.items()}
    return option


_SINK: Mapping[str, OptionReader] = {
    "format": read_text,
    "path": read_text,
    "connection": read_text,
    "table": read_text,
    "servers": read_text,
    "topic": read_text,
    "key": read_names,
    "overwrite": read_flag,
    "options": read_settings,
}
