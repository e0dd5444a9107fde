"""A streaming source of exactly one row ever, which lets a stream read static DataFrames once.

Spark won't union a static DataFrame into a stream. A cross join with this source does it: the row is there in the first
batch only, its offset is in Spark's own log, so a restart neither loads a static table again nor misses it.
In every later batch the source is an empty relation without partitions, and a Cartesian product with it has no tasks:
the static side isn't even scanned.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import IntegerType, StructField, StructType

_SCHEMA = StructType([StructField("_once", IntegerType(), False)])


class OnceReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"given": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"given": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)] if start["given"] < end["given"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (0,)


class OnceSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "crown_once"

    def schema(self) -> StructType:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return OnceReader()


def load_once(spark: SparkSession, static: DataFrame) -> DataFrame:
    """Return `static` as a stream with all its rows in the first batch and nothing after."""
    spark.dataSource.register(OnceSource)
    once = spark.readStream.format("crown_once").load()
    return once.hint("shuffle_replicate_nl").crossJoin(static).drop("_once")
