"""An application in real-time mode that tests kill: changes from Kafka, deltas to Kafka. Run as a script.

The queries are JSON: each view by name goes to its own topic.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import crown.spark


def main(servers: str, jars: str, run: str, directory: str, queries: dict[str, str], cells: int) -> None:
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
    checkpoint = str(Path(directory) / "checkpoint")
    trigger: Any = {"realTime": "5 seconds"}

    def start() -> StreamingQuery:
        if len(queries) == 1:
            ((name, sql),) = queries.items()
            deltas = crown.spark.maintain(spark, sql, tables, cells=cells, real_time=True)
            writer = crown.spark.to_kafka(deltas, servers=servers, topic=f"{name}{run}", checkpoint=checkpoint)
            return writer.trigger(**trigger).start()
        views = crown.spark.maintain(spark, queries, tables, cells=cells, real_time=True)
        sinks = {name: {"kafka": servers, "topic": f"{name}{run}"} for name in queries}
        return views.start(sinks, checkpoint=checkpoint, trigger=trigger)

    query = start()
    print("started", flush=True)
    while True:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            # A batch may end between a deletion and its insertion, which comes in another
            # partition. Run again, the batch has both.
            if "CROWN-CHANGE-ABSENT" not in str(error):
                raise
            query = start()


if __name__ == "__main__":
    servers, jars, run, directory, queries, cells = sys.argv[1:]
    main(servers, jars, run, directory, json.loads(queries), int(cells))
