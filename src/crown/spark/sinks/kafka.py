"""A view's deltas as records of a Kafka topic: one JSON object each, at least once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
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
    writer = _records(deltas, key).writeStream.format("kafka").option("checkpointLocation", checkpoint)
    return writer.options(**_options(servers, topic, options))


def write_to_kafka(
    deltas: DataFrame,
    *,
    servers: str | None,
    topic: str | None,
    key: Sequence[str],
    options: Mapping[str, Any],
) -> None:
    """Send the deltas of one batch, as `to_kafka` sends those of a stream."""
    _records(deltas, key).write.format("kafka").options(**_options(servers, topic, options)).save()


def _options(servers: str | None, topic: str | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    own = {"kafka.bootstrap.servers": servers, "topic": topic}
    return {**{name: value for name, value in own.items() if value is not None}, **(options or {})}


def _records(deltas: DataFrame, key: Sequence[str]) -> DataFrame:
    for column in key:
        if column not in deltas.columns:
            raise PlanError(
                f"key names {column!r}, which is not a column of the deltas",
                code="CROWN-SINK-KEY",
                hint=f"columns are {', '.join(deltas.columns)}",
            )
    told_by = key or [name for name in deltas.columns if name not in _NOT_OF_THE_ROW]
    return deltas.select(_json(told_by).alias("key"), _json(deltas.columns).alias("value"))


def _json(columns: Sequence[str]) -> Any:
    return F.to_json(F.struct(*(F.col(quoted(name)) for name in columns)), JSON)
