"""Streams of changes from files and Delta change feeds (`debezium` and `kafka` have their own modules).

Each function returns a streaming DataFrame for `maintain`: the table's columns and `_change_type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from crown.changes import CHANGE_TYPE, COMMIT_COLUMNS, INSERT
from crown.errors import SchemaError
from crown.spark.schema import CORRUPT, as_struct
from crown.spark.sources.parquet import remember_names

_FORMATS = ("csv", "json", "parquet", "orc")


def files(
    spark: SparkSession,
    path: str,
    schema: StructType | str,
    *,
    format: str = "parquet",
    files_per_batch: int | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Files of changes that appear in a directory. `schema` is that of the table; `_change_type` is read where a file
    has it (of CSV files, which have their columns by position, only where `schema` names it).

    Parquet files that are given to `maintain` as they come from here are read past Spark's rows, the fastest way in
    (see `crown.spark.sources.parquet`). CSV and JSON records that don't fit the schema keep their text in
    `_corrupt_record`; `maintain` treats those by its `on_invalid`.
    """
    if format not in _FORMATS:
        raise SchemaError(
            f"unknown file format {format!r}", code="CROWN-SOURCE-OPTION", hint=f"one of {', '.join(_FORMATS)}"
        )
    columns = list(as_struct(schema).fields)
    if format != "csv" and CHANGE_TYPE not in [field.name for field in columns]:
        columns.append(StructField(CHANGE_TYPE, StringType()))
    if format in ("csv", "json"):
        columns.append(StructField(CORRUPT, StringType()))
    reader = spark.readStream.format(format).schema(StructType(columns))
    if format == "csv":
        reader = reader.option("header", True).option("enforceSchema", False)
    chosen: dict[str, Any] = dict(options or {})
    if files_per_batch is not None:
        chosen.setdefault("maxFilesPerTrigger", files_per_batch)
    changes = reader.options(**chosen).load(path)
    if CHANGE_TYPE in changes.columns:
        changes = changes.withColumn(CHANGE_TYPE, F.coalesce(F.col(CHANGE_TYPE), F.lit(INSERT)))
    if format == "parquet":
        remember_names(spark, changes, path, chosen)
    return changes


def delta_feed(feed: DataFrame) -> DataFrame:
    """Return a Delta change feed (`readChangeFeed`) as changes: its commit columns are dropped."""
    if CHANGE_TYPE not in feed.columns:
        raise SchemaError(
            "this DataFrame is not a change feed",
            code="CROWN-SOURCE-FEED",
            reason=f"it has no column {CHANGE_TYPE}",
            hint='read the table with .option("readChangeFeed", "true")',
        )
    return feed.drop(*COMMIT_COLUMNS)
