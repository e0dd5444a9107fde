"""Deltas as records of Kafka topics: one JSON object each, at least once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from crown.changes import AFTER, ATTEMPT, BATCH, CHANGE_TYPE, MULTIPLICITY, POSITION
from crown.errors import PlanError
from crown.spark.flow.selection import quoted

_NOT_OF_THE_ROW = (CHANGE_TYPE, MULTIPLICITY, BATCH, AFTER, ATTEMPT, POSITION)
# NULLs are written, and times in full precision.
JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def to_kafka(
    deltas: DataFrame,
    *,
    servers: str | None = None,
    topic: str | None = None,
    checkpoint: str,
    key: Sequence[str] = (),
    options: Mapping[str, str | int | float | bool] | None = None,
) -> DataStreamWriter:
    """Return a stream writer (choose a trigger, then `.start()`) that sends each delta as one record.

    The value is a JSON object with every column of `deltas`, `_change_type` among them. The record's key is a JSON
    object with the columns `key`, by default with all columns of the view, so changes of one row go to one partition
    in their order. Pass the columns that identify the view's rows (those of GROUP BY) as `key`.

    Kafka gets each delta at least once: a batch that Spark runs again is sent again. Ask `maintain` for `_batch` and
    `_position` (`batch=True`) and have the consumer drop what it has seen by the two. In real-time mode they are always
    present, with `_attempt`; see `maintain`. `options` are those of Spark's Kafka sink.
    """
    sink = Topic(servers, topic, tuple(key), options or {})
    records, settings = sink.records(deltas), sink.settings() | {"topic": sink.destination}
    return records.writeStream.format("kafka").option("checkpointLocation", checkpoint).options(**settings)


@dataclass(frozen=True)
class Topic:
    """The topic of one view. Servers and topic may also be among the options of Spark's sink."""

    servers: str | None = None
    topic: str | None = None
    key: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(sink: Mapping[str, Any]) -> Topic:
        """Return the topic that a sink of `MaintainedViews.start` names: `{"kafka": servers, "topic": ...}`."""
        unknown = sorted(sink.keys() - {"kafka", "topic", "key", "options"})
        reason = None
        if unknown:
            reason = f"it has no option {unknown[0]}"
        elif not sink.get("topic"):
            reason = "topic is missing"
        elif isinstance(sink.get("key"), str):
            reason = "key is a list of columns"
        if reason is not None:
            raise PlanError(
                "the options of a Kafka sink are invalid",
                code="CROWN-SINK-TARGET",
                reason=reason,
                hint='{"kafka": "host:9092", "topic": "name", "key": ["column"], "options": {...}}',
            )
        return Topic(sink["kafka"], sink["topic"], tuple(sink.get("key") or ()), sink.get("options") or {})

    def settings(self) -> dict[str, Any]:
        """Return the options of Spark's sink that say how to send records, but not where to."""
        servers = {} if self.servers is None else {"kafka.bootstrap.servers": self.servers}
        return servers | {name: value for name, value in self.options.items() if name.lower() != "topic"}

    @property
    def destination(self) -> str:
        found = next((value for name, value in self.options.items() if name.lower() == "topic"), self.topic)
        if found is None:
            raise PlanError("the Kafka sink has no topic", code="CROWN-SINK-TARGET", hint='give topic="name"')
        return str(found)

    def write(self, deltas: DataFrame) -> None:
        """Send the deltas of one batch, as `to_kafka` sends those of a stream."""
        self.records(deltas).write.format("kafka").options(**self.settings(), topic=self.destination).save()

    def records(self, deltas: DataFrame) -> DataFrame:
        key, value = self.record({name: F.col(quoted(name)) for name in deltas.columns})
        return deltas.select(key.alias("key"), value.alias("value"))

    def record(self, columns: Mapping[str, Column]) -> tuple[Column, Column]:
        """Return the key and the value of the record for a delta with these columns."""
        for name in self.key:
            if name not in columns:
                raise PlanError(
                    f"key names {name!r}, which is not a column of the deltas",
                    code="CROWN-SINK-KEY",
                    hint=f"columns are {', '.join(columns)}",
                )
        key = self.key or [name for name in columns if name not in _NOT_OF_THE_ROW]
        return _json([columns[name].alias(name) for name in key]), _json(
            [column.alias(name) for name, column in columns.items()]
        )


def _json(columns: Sequence[Column]) -> Column:
    return F.to_json(F.struct(*columns), JSON)
