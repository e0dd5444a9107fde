"""A pipeline in a TOML file: sources, a query or several views, sinks, cells, windows and checkpoint.

`reading` parses the file into a `Pipeline` and rejects invalid values (`values`, `sinks`, `viewfiles` have its
parts); `checking` checks its environment (paths, connectors, the checkpoint) and plans the queries; `running`
builds the stream. Only `running` needs Spark.

`description`, `formats`, `filekey`: the options of a file; `claim`, `start`: the owner of a checkpoint and its last
batch; `progress`, `console`: the batches of a run, and their display in the console.
"""

from __future__ import annotations

from crown.spark.pipeline.description import PipelineView, Sink, TableSource
from crown.spark.pipeline.pipeline import Pipeline

__all__ = ["Pipeline", "PipelineView", "Sink", "TableSource"]
