"""A pipeline in a TOML file: sources, query, sink, cells, windows and checkpoint."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from crown.errors import SchemaError, StateError
from crown.spark.filesystem import read_file, write_at_once
from crown.spark.flow.streaming import maintain
from crown.spark.settings import configure
from crown.spark.sinks.materialize import materialize
from crown.spark.sources import changes as sources

_TOP = {
    "query",
    "query_file",
    "checkpoint",
    "cells",
    "on_invalid",
    "rejects",
    "trigger",
    "master",
    "tables",
    "sink",
    "spark",
}
_TABLE = {"format", "path", "schema", "static", "key", "profile", "window", "files_per_batch", "options"}
_SINK = {"format", "path", "connection", "table", "options"}
_NOTE = "crown.json"


@dataclass(frozen=True)
class TableSource:
    """`format` is a file format, `debezium` (Kafka or JSON-line text files), `delta`, or any stream that Spark
    knows.
    """

    name: str
    format: str
    schema: str | None = None
    path: str | None = None
    static: bool = False
    key: tuple[str, ...] = ()
    profile: str | None = None
    window: Any = None
    files_per_batch: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    query: str
    checkpoint: str
    tables: tuple[TableSource, ...]
    sink: Mapping[str, Any]
    cells: int = 2
    on_invalid: str = "raise"
    rejects: str | None = None
    trigger: str | None = None  # "available", or an interval such as "10 seconds"; None: batch after batch
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Pipeline:
        """Read a pipeline; relative paths in it are relative to its file."""
        try:
            data = tomllib.loads(path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise SchemaError(f"{path} can't be read: {error}", code="CROWN-PIPELINE-FILE") from error
        _known(data, _TOP, "the pipeline")
        base = path.parent
        query = data.get("query")
        if query is None and "query_file" in data:
            query = Path(_path(base, data["query_file"])).read_text()
        tables = tuple(_table(name, value, base) for name, value in data.get("tables", {}).items())
        sink = dict(data.get("sink", {}))
        _known(sink, _SINK, "the sink")
        for name, value in (
            ("query", query),
            ("checkpoint", data.get("checkpoint")),
            ("tables", tables),
            ("sink", sink),
        ):
            if not value:
                raise SchemaError(f"the pipeline has no {name}", code="CROWN-PIPELINE-MISSING")
        if "path" in sink:
            sink["path"] = _path(base, sink["path"])
        return Pipeline(
            query=str(query),
            checkpoint=_path(base, data["checkpoint"]),
            tables=tables,
            sink=sink,
            cells=data.get("cells", 2),
            on_invalid=data.get("on_invalid", "raise"),
            rejects=_path(base, data["rejects"]) if "rejects" in data else None,
            trigger=data.get("trigger"),
            master=data.get("master"),
            spark=data.get("spark", {}),
        )

    def session(self) -> SparkSession:
        """A session with the recommended settings, then the file's own."""
        builder = configure(SparkSession.builder.appName("crown"), cells=self.cells)
        if self.master is not None:
            builder = builder.master(self.master)
        for name, value in self.spark.items():
            builder = builder.config(name, str(value))
        return builder.getOrCreate()

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Check the checkpoint, build the query and start it."""
        _claim(self.checkpoint, self._identity())
        deltas = maintain(
            spark,
            self.query,
            {table.name: _stream(spark, table) for table in self.tables},
            cells=self.cells,
            keys={table.name: table.key for table in self.tables if table.key},
            profiles={table.name: table.profile for table in self.tables if table.profile},
            windows={table.name: table.window for table in self.tables if table.window},
            on_invalid=self.on_invalid,  # type: ignore[arg-type]
            rejects=self.rejects,
        )
        writer = self._writer(deltas)
        if self.trigger == "available":
            writer = writer.trigger(availableNow=True)
        elif self.trigger is not None:
            writer = writer.trigger(processingTime=self.trigger)
        return writer.start()

    def _writer(self, deltas: DataFrame) -> DataStreamWriter:
        sink = self.sink
        match sink.get("format"):
            case "materialized":
                return materialize(deltas, checkpoint=self.checkpoint, parquet=sink["path"])
            case "postgres":
                return materialize(deltas, checkpoint=self.checkpoint, postgres=sink["connection"], table=sink["table"])
            case format_:
                writer = deltas.writeStream.format(format_ or "parquet").options(**sink.get("options", {}))
                if "path" in sink:
                    writer = writer.option("path", sink["path"])
                return writer.option("checkpointLocation", self.checkpoint).outputMode("append")

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint is bound to, in words that a refusal can show."""
        return {
            "query": " ".join(self.query.split()),
            "cells": self.cells,
            **{f"schema of {t.name}": t.schema for t in self.tables},
            **{f"key of {t.name}": list(t.key) for t in self.tables},
            **{f"window of {t.name}": t.window for t in self.tables},
        }


def _claim(checkpoint: str, identity: dict[str, Any]) -> None:
    """Write down whose the checkpoint is; refuse one that belongs to something else."""
    text = read_file(checkpoint, _NOTE)
    if text is None:
        write_at_once(checkpoint, _NOTE, json.dumps(identity, indent=1).encode())
        return
    before = json.loads(text)
    changed = [name for name in {**before, **identity} if before.get(name) != identity.get(name)]
    if changed:
        raise StateError(
            f"the checkpoint {checkpoint} belongs to another pipeline",
            code="CROWN-STATE-OTHER-PLAN",
            reason="; ".join(f"{name} was {before.get(name)!r}, is {identity.get(name)!r}" for name in changed),
            hint="use a new checkpoint, or go back to what it was made with",
        )


def _stream(spark: SparkSession, table: TableSource) -> DataFrame:
    if table.static:
        static = spark.read.format(table.format).options(**table.options)
        return (static.schema(table.schema) if table.schema else static).load(table.path)
    if table.format in ("csv", "json", "parquet", "orc"):
        return sources.files(
            spark,
            _needed(table, "path"),
            _needed(table, "schema"),
            format=table.format,
            files_per_batch=table.files_per_batch,
            options=table.options,
        )
    if table.format == "debezium":
        if table.path is not None:
            reader = spark.readStream.format("text").options(**table.options)
            if table.files_per_batch is not None:
                reader = reader.option("maxFilesPerTrigger", table.files_per_batch)
            records = reader.load(table.path)
        else:
            records = spark.readStream.format("kafka").options(**table.options).load()
        return sources.debezium(records, _needed(table, "schema"))
    if table.format == "delta":
        feed = spark.readStream.format("delta").option("readChangeFeed", "true").options(**table.options)
        return sources.delta_feed(feed.load(_needed(table, "path")))
    stream = spark.readStream.format(table.format).options(**table.options)
    return (stream.schema(table.schema) if table.schema else stream).load(table.path)


def _table(name: str, value: Mapping[str, Any], base: Path) -> TableSource:
    _known(value, _TABLE, f"table {name}")
    if "format" not in value:
        raise SchemaError(f"table {name} has no format", code="CROWN-PIPELINE-MISSING")
    key = value.get("key", ())
    return TableSource(
        name=name,
        **{option: value[option] for option in _TABLE & value.keys() - {"key", "path"}},
        key=(key,) if isinstance(key, str) else tuple(key),
        path=_path(base, value["path"]) if "path" in value else None,
    )


def _needed(table: TableSource, option: str) -> str:
    value = getattr(table, option)
    if value is None:
        raise SchemaError(f"table {table.name} has no {option}", code="CROWN-PIPELINE-MISSING")
    return str(value)


def _known(data: Mapping[str, Any], options: set[str], place: str) -> None:
    unknown = sorted(set(data) - options)
    if unknown:
        raise SchemaError(
            f"{place} has an unknown option {unknown[0]!r}",
            code="CROWN-PIPELINE-OPTION",
            hint=f"options are {', '.join(sorted(options))}",
        )


def _path(base: Path, path: str) -> str:
    return path if "://" in path else str((base / path).resolve())
