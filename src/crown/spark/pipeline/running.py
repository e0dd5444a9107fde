"""The stream of a pipeline: from its sources through `maintain` to its sink."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from crown.spark.failure import crown_error
from crown.spark.flow.streaming import maintain
from crown.spark.pipeline.checking import Check, check
from crown.spark.pipeline.claim import check_claim, write_claim
from crown.spark.pipeline.description import PipelineDescription, TableSource
from crown.spark.pipeline.viewkey import view_key
from crown.spark.settings import configure, with_jar
from crown.spark.sinks.kafka import to_kafka
from crown.spark.sinks.materialize import materialize
from crown.spark.sources import changes as sources
from crown.spark.sources.debezium import debezium
from crown.spark.sources.kafka import kafka


def session(pipeline: PipelineDescription) -> SparkSession:
    builder = configure(SparkSession.builder.appName("crown"), cells=pipeline.cells)
    if pipeline.master is not None:
        builder = builder.master(pipeline.master)
    for name, value in pipeline.spark.items():
        builder = builder.config(name, value)
    try:
        # The pipeline may have named jars of its own.
        return with_jar(builder).getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise crown_error(str(error), what="Spark can't start") from error


def start(pipeline: PipelineDescription, spark: SparkSession) -> StreamingQuery:
    checked = check(pipeline)
    check_claim(pipeline, checked)
    try:
        writer = _writer(pipeline, _deltas(pipeline, spark), checked)
        if pipeline.trigger == "available":
            writer = writer.trigger(availableNow=True)
        elif pipeline.trigger is not None:
            writer = writer.trigger(processingTime=pipeline.trigger)
        write_claim(pipeline, checked)
        return writer.start()
    except (PySparkException, Py4JJavaError) as error:
        raise crown_error(str(error), what=f"{pipeline.file} can't be started") from error


def _deltas(pipeline: PipelineDescription, spark: SparkSession) -> DataFrame:
    tables = pipeline.tables
    return maintain(
        spark,
        pipeline.query,
        {table.name: _stream(spark, table) for table in tables},
        cells=pipeline.cells,
        keys={table.name: table.key for table in tables if table.key},
        profiles={table.name: table.profile for table in tables if table.profile},
        windows={table.name: table.window for table in tables if table.window},
        on_invalid=pipeline.on_invalid,
        rejects=pipeline.rejects,
        batch=pipeline.sink.format == "kafka",
    )


def _writer(pipeline: PipelineDescription, deltas: DataFrame, checked: Check) -> DataStreamWriter:
    sink, checkpoint = pipeline.sink, pipeline.checkpoint
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
            key = sink.key or (view_key(checked.explanation.plan) if checked.explanation is not None else ())
            return to_kafka(
                deltas, servers=sink.servers, topic=sink.topic, checkpoint=checkpoint, key=key, options=sink.options
            )
    writer = deltas.writeStream.format(sink.format).options(**sink.options)
    if sink.path is not None:
        writer = writer.option("path", sink.path)
    return writer.option("checkpointLocation", checkpoint).outputMode("append")


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
