"""`materialize`: keep a target equal to the view, exactly once per batch however often Spark repeats it."""

from __future__ import annotations

from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from crown.errors import PlanError
from crown.spark.sinks.parquet import ParquetTarget
from crown.spark.sinks.postgres import PostgresTarget

Target: TypeAlias = ParquetTarget | PostgresTarget


def materialize(
    deltas: DataFrame,
    *,
    checkpoint: str,
    parquet: str | None = None,
    postgres: str | None = None,
    table: str | None = None,
    overwrite: bool = False,
) -> DataStreamWriter:
    """Return a stream writer (choose a trigger, then `.start()`) that keeps a target equal to the view of `deltas`.

    `parquet="path"` is a versioned table of parquet files: see `read_materialized`. `postgres="connection string"` with
    `table="name"` is a PostgreSQL table, created if it is not there; each batch is one transaction that also records
    its number, so a repeated batch changes nothing.

    A target belongs to the stream, and so to the checkpoint, that wrote it first. Another one is rejected, unless it
    starts with a new checkpoint and `overwrite`: its first batch then replaces the target. With the target's own
    checkpoint `overwrite` does nothing, so a program may leave it on.
    """
    target = target_of(deltas.schema, checkpoint, parquet=parquet, postgres=postgres, table=table, overwrite=overwrite)
    target.check(deltas.sparkSession)
    return deltas.writeStream.foreachBatch(target.apply).option("checkpointLocation", checkpoint).outputMode("append")


def target_of(
    schema: StructType,
    checkpoint: str,
    *,
    parquet: str | None = None,
    postgres: str | None = None,
    table: str | None = None,
    overwrite: bool = False,
) -> Target:
    """Return the target that these options of `materialize` name."""
    if (parquet is None) == (postgres is None):
        raise PlanError(
            "materialize needs exactly one target",
            code="CROWN-SINK-TARGET",
            hint="give either parquet=... or postgres=...",
        )
    if parquet is not None:
        return ParquetTarget(parquet, schema, checkpoint, overwrite=overwrite)
    if table is None:
        raise PlanError("the PostgreSQL target needs a table", code="CROWN-SINK-TARGET", hint='give table="name"')
    assert postgres is not None
    return PostgresTarget(postgres, table, schema, checkpoint, overwrite=overwrite)
