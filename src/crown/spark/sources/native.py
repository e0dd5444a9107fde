"""Sources that Spark can also read without Python, as real-time mode requires."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from crown.changes import CHANGE_TYPE
from crown.spark.schema import CORRUPT

_REMEMBERED = "_crown_native"


def remember_json(changes: DataFrame, records: DataFrame, row: StructType) -> None:
    """Record for a stream of JSON records how Spark's own parser reads them."""
    fields = [*row.fields, StructField(CHANGE_TYPE, StringType()), StructField(CORRUPT, StringType())]
    nullable = StructType([StructField(field.name, field.dataType, True) for field in fields])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = records.select(F.col("value").cast("string").alias("text"))
    parsed = parsed.select("text", F.from_json("text", nullable, options).alias("row"))
    columns = [F.col(f"row.`{field.name}`").alias(field.name) for field in row.fields]
    columns.append(F.coalesce(F.col(f"row.{CHANGE_TYPE}"), F.lit("insert")).alias(CHANGE_TYPE))
    # A record without a value has no text that could be shown.
    corrupt = F.when(F.col("text").isNull(), F.lit("")).otherwise(F.col(f"row.{CORRUPT}"))
    setattr(changes, _REMEMBERED, parsed.select(*columns, corrupt.alias(CORRUPT)))


def native(changes: DataFrame) -> DataFrame:
    """Return the same changes, read by Spark alone if that was recorded."""
    found: DataFrame = vars(changes).get(_REMEMBERED, changes)
    return found
