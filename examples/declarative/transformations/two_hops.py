"""A view maintained by Crown as a flow of a declarative pipeline.

Declarative pipelines analyse nothing inside a query function, so the DataFrame is made here, at module level.
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import crown.spark

spark = SparkSession.active()
source = os.environ.get("TWO_HOPS_INPUT", "/var/tmp/crown-two-hops/knows")
deltas = crown.spark.maintain(
    spark,
    "SELECT a.src, b.dst, COUNT(*) AS paths FROM knows a JOIN knows b ON a.dst = b.src GROUP BY a.src, b.dst",
    {"knows": crown.spark.files(spark, source, "src BIGINT, dst BIGINT", format="parquet")},
    cells=2,
)


@dp.table
def two_hops() -> DataFrame:
    return deltas
