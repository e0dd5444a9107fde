"""A pipeline in a TOML file: sources, query, sink, cells, windows and checkpoint.

`reading` turns the file into a `Pipeline` and refuses what it can't mean; `checking` looks at what is around it (paths,
connectors, the checkpoint) and plans the query; `running` builds the stream. Only `running` needs Spark.
"""

from __future__ import annotations

from crown.spark.pipeline.description import Sink, TableSource
from crown.spark.pipeline.pipeline import Pipeline

__all__ = ["Pipeline", "Sink", "TableSource"]
