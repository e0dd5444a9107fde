"""Formats of sources and sinks: which options each takes, and which need a connector that Spark doesn't come with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FILES = ("csv", "json", "parquet", "orc")
_BUILT_IN_SOURCES = (*FILES, "text", "xml", "rate", "rate-micro-batch", "socket", "jdbc", "binaryFile")
_BUILT_IN_SINKS = (*FILES, "text", "xml", "console", "noop", "memory")
# Formats that need a connector, each with a part of its jar's name.
CONNECTORS = {
    "kafka": "spark-sql-kafka-0-10",
    "delta": "delta-spark",
    "avro": "spark-avro",
    "iceberg": "iceberg-spark-runtime",
}
KNOWN_SOURCES = (*FILES, "kafka", "debezium", "delta", *_BUILT_IN_SOURCES[len(FILES) :], "avro", "iceberg")
KNOWN_SINKS = ("materialized", "postgres", "kafka", *_BUILT_IN_SINKS, "delta", "avro", "iceberg")
# Sinks that store rows, so that two views can't share one.
WITH_A_TARGET = ("materialized", "postgres", "kafka", *FILES, "text", "xml", "delta", "avro", "iceberg")

_COMMON = ("format", "schema", "key", "profile", "window", "rows", "options")
_DEBEZIUM = ("decimals", "timestamps", "binary", "unavailable")


def table_options(format_: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that a table of this format takes."""
    if format_ in FILES:
        return (*_COMMON, "path", "static", "files_per_batch")
    if format_ == "kafka":
        debezium = _DEBEZIUM if given.get("value") == "debezium" else ()
        return (*_COMMON, "servers", "topic", "value", *debezium)
    if format_ == "debezium":
        where = ("path", "files_per_batch") if "path" in given else ("servers", "topic", "path")
        return (*_COMMON, *where, *_DEBEZIUM)
    return (*_COMMON, "path", "static")


def sink_options(format_: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options that a sink takes, and those that it needs."""
    match format_:
        case "materialized":
            return ("format", "path", "overwrite"), ("path",)
        case "postgres":
            return ("format", "connection", "table", "overwrite"), ("connection", "table")
        case "kafka":
            return ("format", "servers", "topic", "key", "options"), ()
        case _ if format_ in (*FILES, "text", "xml", "avro", "delta"):
            return ("format", "path", "options"), ("path",)
        case _:
            return ("format", "path", "options"), ()
