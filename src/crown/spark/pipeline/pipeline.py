"""`Pipeline`: a pipeline's description, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from crown.spark.pipeline.checking import Check, check
from crown.spark.pipeline.description import PipelineDescription
from crown.spark.pipeline.reading import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Pipeline(PipelineDescription):
    @staticmethod
    def read(path: Path) -> Pipeline:
        """Read a pipeline; relative paths in it are relative to its file."""
        described = read(path)
        return Pipeline(**{field.name: getattr(described, field.name) for field in fields(described)})

    def check(self) -> Check:
        """Check all that can be checked without Spark, and plan the query. Nothing is written."""
        return check(self)

    def session(self) -> SparkSession:
        """Return a session with the recommended settings, then the file's own."""
        from crown.spark.pipeline.running import session

        return session(self)

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Check the pipeline, build the query and start it."""
        from crown.spark.pipeline.running import start

        return start(self, spark).query
