"""The stream of a pipeline: from its sources through `maintain` to its sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from crown.plan.view_key import view_key
from crown.spark.failure import crown_error
from crown.spark.flow.maintained import MaintainedView, views_of
from crown.spark.flow.streaming import MaintainOptions, maintain
from crown.spark.flow.views import DeltaSink
from crown.spark.pipeline.checking import Check, CheckedView, check
from crown.spark.pipeline.claim import check_claim, write_claim
from crown.spark.pipeline.description import PipelineDescription, Sink, TableSource
from crown.spark.settings import configure, with_jar
from crown.spark.sinks.kafka import Topic, to_kafka
from crown.spark.sinks.materialize import materialize
from crown.spark.sources import changes as sources
from crown.spark.sources.debezium import debezium
from crown.spark.sources.kafka import kafka

_Ready: TypeAlias = tuple[MaintainedView, Callable[[], StreamingQuery]]


def session(pipeline: PipelineDescription) -> SparkSession:
    builder = SparkSession.builder.appName("crown")
    if pipeline.master is not None:
        builder = builder.master(pipeline.master)
    builder = configure(builder, cells=pipeline.cells)
    for name, value in pipeline.spark.items():
        builder = builder.config(name, value)
    try:
        # The pipeline may name additional jars.
        return with_jar(builder).getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise crown_error(str(error), what="Spark can't start") from error


@dataclass(frozen=True)
class Started:
    """A stream, and what it runs."""

    query: StreamingQuery
    view: MaintainedView


def start(pipeline: PipelineDescription, spark: SparkSession) -> Started:
    checked = check(pipeline)
    check_claim(pipeline, checked)
    try:
        view, begin = _writer(pipeline, spark, checked) if pipeline.alone else _views(pipeline, spark, checked)
        write_claim(pipeline, checked)
        return Started(begin(), view)
    except (PySparkException, Py4JJavaError) as error:
        raise crown_error(str(error), what=f"{pipeline.file} can't be started") from error


def _writer(pipeline: PipelineDescription, spark: SparkSession, checked: Check) -> _Ready:
    """Return the pipeline's one query, and what starts its stream."""
    ((_, sink),) = pipeline.written.items()
    (view,), key = pipeline.views, _keys(sink, checked.views[0])
    deltas = maintain(spark, view.query, _tables(pipeline, spark), **_options(pipeline, batch=sink.format == "kafka"))
    writer = _sink_writer(deltas, sink, pipeline.checkpoint, key)
    if pipeline.trigger is not None:
        writer = writer.trigger(**_trigger(pipeline))
    return views_of(deltas)[0], writer.start


def _views(pipeline: PipelineDescription, spark: SparkSession, checked: Check) -> _Ready:
    """Return all views as one, and what starts their stream."""
    sinks = {view.name: _batch_sink(pipeline.written[view.name], view) for view in checked.views}
    repeats = any(callable(sink) for sink in sinks.values())
    views = maintain(
        spark,
        pipeline.maintained,
        _tables(pipeline, spark),
        names=pipeline.names,
        **_options(pipeline, batch=repeats),
    )
    trigger = _trigger(pipeline) if pipeline.trigger is not None else None
    return views.running, lambda: views.start(sinks, checkpoint=pipeline.checkpoint, trigger=trigger)


def _trigger(pipeline: PipelineDescription) -> dict[str, Any]:
    return {"availableNow": True} if pipeline.trigger == "available" else {"processingTime": pipeline.trigger}


def _tables(pipeline: PipelineDescription, spark: SparkSession) -> dict[str, DataFrame]:
    return {table.name: _stream(spark, table) for table in pipeline.tables}


def _options(pipeline: PipelineDescription, *, batch: bool) -> MaintainOptions:
    tables = pipeline.tables
    return {
        "cells": pipeline.cells,
        "keys": {table.name: table.key for table in tables if table.key},
        "profiles": {table.name: table.profile for table in tables if table.profile},
        "windows": {table.name: table.window for table in tables if table.window},
        "on_invalid": pipeline.on_invalid,
        "rejects": pipeline.rejects,
        "batch": batch,
        "dialect": pipeline.dialect,
    }


def _keys(sink: Sink, view: CheckedView) -> tuple[str, ...]:
    """Return the columns of the keys of a topic's records."""
    if sink.key or view.explanation is None:
        return sink.key
    plan = view.explanation.plan
    return tuple(plan.columns[position].name for position in view_key(plan) or ())


def _sink_writer(deltas: DataFrame, sink: Sink, checkpoint: str, key: tuple[str, ...]) -> DataStreamWriter:
    match sink.format:
        case "materialized":
            return materialize(deltas, checkpoint=checkpoint, parquet=sink.path, overwrite=sink.overwrite)
        case "postgres":
            return materialize(
                deltas,
                checkpoint=checkpoint,
                postgres=sink.connection,
                table=sink.table,
                overwrite=sink.overwrite,
            )
        case "kafka":
            return to_kafka(
                deltas, servers=sink.servers, topic=sink.topic, checkpoint=checkpoint, key=key, options=sink.options
            )
    writer = deltas.writeStream.format(sink.format).options(**sink.options)
    if sink.path is not None:
        writer = writer.option("path", sink.path)
    return writer.option("checkpointLocation", checkpoint).outputMode("append")


def _batch_sink(sink: Sink, view: CheckedView) -> DeltaSink:
    """Return a sink of one of several views, as `MaintainedViews.start` takes it."""
    match sink.format:
        case "materialized":
            return {"parquet": str(sink.path), "overwrite": sink.overwrite}
        case "postgres":
            return {"postgres": str(sink.connection), "table": str(sink.table), "overwrite": sink.overwrite}
    key = _keys(sink, view)

    def write(deltas: DataFrame, batch: int) -> None:
        if sink.format == "kafka":
            Topic(sink.servers, sink.topic, key, sink.options).write(deltas)
        else:
            writer = deltas.write.format(sink.format).mode("append").options(**sink.options)
            writer.save(sink.path)

    return write


def _stream(spark: SparkSession, table: TableSource) -> DataFrame:
    if table.static:
        static = spark.read.format(table.format).options(**table.options)
        return (static.schema(table.schema) if table.schema else static).load(table.path)
    match table.format:
        case "csv" | "json" | "parquet" | "orc":
            assert table.path is not None
            assert table.schema is not None
            return sources.files(
                spark,
                table.path,
                table.schema,
                format=table.format,
                files_per_batch=table.files_per_batch,
                options=table.options,
            )
        case "debezium" if table.path is not None:
            assert table.schema is not None
            reader = spark.readStream.format("text").options(**table.options)
            if table.files_per_batch is not None:
                reader = reader.option("maxFilesPerTrigger", table.files_per_batch)
            return debezium(reader.load(table.path), table.schema, **table.encodings)
        case "kafka" | "debezium":
            assert table.schema is not None
            value = "debezium" if table.format == "debezium" else table.value
            return kafka(
                spark,
                table.schema,
                servers=table.servers,
                topic=table.topic,
                value=value,
                options=table.options,
                **table.encodings,
            )
        case "delta":
            feed = spark.readStream.format("delta").option("readChangeFeed", "true").options(**table.options)
            return sources.delta_feed(feed.load(table.path))
    stream = spark.readStream.format(table.format).options(**table.options)
    return (stream.schema(table.schema) if table.schema else stream).load(table.path)
