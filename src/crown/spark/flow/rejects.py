"""The side output of rejected changes: one small file per batch and cell, which a retried batch overwrites."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from crown.spark.filesystem import names_in, read_file, write_at_once

SCHEMA = StructType(
    [
        StructField("batch", LongType()),
        StructField("cell", StringType()),
        StructField("table", StringType()),
        StructField("partition", LongType()),
        StructField("position", LongType()),
        StructField("reason", StringType()),
        StructField("row", StringType()),
    ]
)

# A change's position is its source partition and its row number there, in one number.
PARTITION_SHIFT = 40


@dataclass(frozen=True)
class Rejects:
    """Where rejected changes go: a directory that every executor can write to (any file system that Arrow knows)."""

    path: str
    view: str = ""  # a stream may hold several, which may share the directory

    def write(self, batch: int, origin: str, rejected: pa.Table) -> None:
        """Write one batch's rejects of one origin. The name is that of the stream, the view, the batch and the origin,
        so a retry replaces the file and nothing else does.
        """
        context = TaskContext.get()
        query = (context.getLocalProperty("sql.streaming.queryId") or "") if context is not None else ""
        lines = [
            json.dumps(
                {
                    "batch": batch,
                    "cell": origin,
                    "table": row["table"],
                    "partition": row["position"] >> PARTITION_SHIFT,
                    "position": row["position"] & ((1 << PARTITION_SHIFT) - 1),
                    "reason": row["reason"],
                    "row": row["row"],
                }
            )
            for row in rejected.to_pylist()
        ]
        name = f"{_prefix(batch, query)}{self.view[:8]}-{origin}.json"
        write_at_once(self.path, name, "\n".join(lines).encode() + b"\n")


def rejected(spark: SparkSession, path: str) -> DataFrame:
    """Return the rejected changes so far: batch, cell, table, partition and position in the source, reason, row."""
    return spark.read.schema(SCHEMA).json(path)


def count_rejected(path: str, batch: int, query: str) -> int:
    """Count the changes that a batch of a query rejected: malformed records, and changes that a cell rejected."""
    mine = [name for name in names_in(path) if name.startswith(_prefix(batch, query))]
    return sum((read_file(path, name) or b"").count(b"\n") for name in mine)


def _prefix(batch: int, query: str) -> str:
    return f"{batch:012d}-{query[:8]}-"
