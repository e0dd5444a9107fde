"""The time that `now()` returns: a streaming source whose offsets are the time, so that a batch has one time.

The offset is in Spark's own log. A batch that is repeated, by this run or the next, therefore has the time that it had
before. Time advances in whole seconds: a stream without a trigger has at most one batch a second with no other changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

_SCHEMA = StructType([StructField("id", IntegerType(), False), StructField("now", TimestampType(), False)])
_NAME = "crown_clock"


class ClockReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"seconds": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"seconds": max(int(time.time()), start["seconds"])}  # the system clock may be set back

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(end["seconds"])] if start["seconds"] < end["seconds"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int, datetime]]:
        yield 0, datetime.fromtimestamp(partition.value, UTC)


class ClockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ClockReader()


def clock(spark: SparkSession) -> DataFrame:
    """Return the table with the time of each batch, as a stream of changes."""
    spark.dataSource.register(ClockSource)
    return spark.readStream.format(_NAME).load()


def now(spark: SparkSession) -> DataFrame:
    """Return the same table with the time of now, for bounded input."""
    moment = int(time.time())
    return spark.range(1).select(F.lit(0).alias("id"), F.timestamp_seconds(F.lit(moment)).alias("now"))
