"""Friends of friends on a standalone cluster: who reaches whom in two steps, kept up to date.

    spark-submit --master spark://HOST:7077 two_hops.py INPUT OUTPUT CELLS

INPUT is a directory of parquet files with the changes of `knows` (src, dst, _change_type), on storage that all
machines see; OUTPUT gets the deltas and the checkpoint. Crown must be installed on every machine (or be on
`spark.executorEnv.PYTHONPATH`): executors start the engine host from there.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import crown.spark


def main(source: str, target: str, cells: int) -> None:
    builder = SparkSession.builder.appName("two-hops")
    spark = crown.spark.configure(builder, cells=cells).getOrCreate()
    knows = crown.spark.files(spark, source, "src BIGINT, dst BIGINT", format="parquet", files_per_batch=1)
    deltas = crown.spark.maintain(
        spark,
        "SELECT a.src, b.dst, COUNT(*) AS paths FROM knows a JOIN knows b ON a.dst = b.src GROUP BY a.src, b.dst",
        {"knows": knows},
        cells=cells,
    )
    query = (
        deltas.writeStream.format("parquet")
        .option("path", f"{target}/deltas")
        .option("checkpointLocation", f"{target}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    result = crown.spark.snapshot(spark, f"{target}/checkpoint")
    print(f"{result.count()} pairs are two steps apart")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
