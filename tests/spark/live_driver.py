"""An application in real-time mode that tests kill: changes from Kafka, deltas to Kafka. Run as a script."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import crown.spark


def main(servers: str, jars: str, run: str, directory: str, sql: str, cells: int) -> None:
    # Each partition of each of Spark's stages needs a separate slot: two of each topic, and the
    # cells.
    builder = SparkSession.builder.master("local[8]").appName("crown-live")
    for name, value in {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    spark = crown.spark.configure(builder, cells=cells).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    tables = {
        name: crown.spark.kafka(spark, "src BIGINT, dst BIGINT", servers=servers, topic=f"{name}{run}")
        for name in ("g", "h")
    }
    deltas = crown.spark.maintain(spark, sql, tables, cells=cells, real_time=True)
    checkpoint = str(Path(directory) / "checkpoint")
    writer = crown.spark.to_kafka(deltas, servers=servers, topic=f"out{run}", checkpoint=checkpoint)
    writer = writer.trigger(realTime="5 seconds")  # type: ignore[call-overload]
    query = writer.start()
    print("started", flush=True)
    while True:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            # A batch may end between a deletion and its insertion, which comes in another
            # partition. Run again, the batch has both.
            if "CROWN-CHANGE-ABSENT" not in str(error):
                raise
            query = writer.start()


if __name__ == "__main__":
    servers, jars, run, directory, sql, cells = sys.argv[1:]
    main(servers, jars, run, directory, sql, int(cells))
