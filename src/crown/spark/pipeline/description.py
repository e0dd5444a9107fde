"""The description of a pipeline as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class TableSource:
    """`format` is a file format, `kafka`, `debezium` (in Kafka or in text files, a record a line), `delta`, or any
    stream that Spark knows. `encodings` are options of `crown.spark.debezium`.
    """

    name: str
    format: str
    schema: str | None = None
    path: str | None = None
    static: bool = False
    key: tuple[str, ...] = ()
    profile: str | None = None
    window: Any = None
    rows: int | None = None
    files_per_batch: int | None = None
    servers: str | None = None
    topic: str | None = None
    value: Literal["json", "debezium"] = "json"
    encodings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sink:
    """`format` is `materialized` (a parquet table by version), `postgres`, `kafka`, or any sink of Spark's. With
    `overwrite` a new checkpoint may replace what another left in the first two. `place` is its key in the TOML file.
    """

    format: str
    path: str | None = None
    connection: str | None = None
    table: str | None = None
    servers: str | None = None
    topic: str | None = None
    key: tuple[str, ...] = ()
    overwrite: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    place: str = "sink"

    @property
    def where(self) -> str:
        """The directory, table or topic that is written."""
        return self.path or self.table or self.topic or ""


@dataclass(frozen=True)
class PipelineView:
    """A query and the sink of its result. Without a sink it is only a name, expanded in the queries that read it.

    `key` says where the query is in the file, or which file it is, for messages.
    """

    name: str
    query: str
    sink: Sink | None
    key: str


@dataclass(frozen=True)
class PipelineDescription:
    """`views` are those of `[views]`, or the one of `query`, which is then `alone`."""

    views: tuple[PipelineView, ...]
    checkpoint: str
    tables: tuple[TableSource, ...]
    alone: bool = True
    cells: int = 1
    on_invalid: Literal["raise", "quarantine"] = "raise"
    rejects: str | None = None
    trigger: str | None = None  # "available", or an interval such as "10 seconds"; None: batch after batch
    master: str | None = None
    dialect: str = "spark"
    spark: Mapping[str, str] = field(default_factory=dict)
    file: str = "the pipeline"
    name: str | None = None
    console: bool = False  # show the pipeline in a browser, as `crown run --console` does

    @property
    def title(self) -> str:
        """The pipeline's name, or its file's."""
        return self.name or Path(self.file).stem

    @property
    def written(self) -> dict[str, Sink]:
        """The sinks, by view."""
        return {view.name: view.sink for view in self.views if view.sink is not None}

    @property
    def maintained(self) -> dict[str, str]:
        """The queries of the views that have a sink, by name."""
        return {view.name: view.query for view in self.views if view.sink is not None}

    @property
    def names(self) -> dict[str, str]:
        """The queries that only others read, by name."""
        return {view.name: view.query for view in self.views if view.sink is None}
