"""A pipeline in a TOML file: sources, a query or several views, sinks, cells, windows and checkpoint.

`reading` turns the file into a `Pipeline` and refuses what it can't mean (`values`, `sinks`, `viewfiles` have its
parts); `checking` looks at what is around it (paths, connectors, the checkpoint) and plans the queries; `running`
builds the stream. Only `running` needs Spark.

`description`, `formats`, `filekey`: what a file may say; `claim`, `start`: whose a checkpoint is, and where it stands;
`progress`, `console`: the batches of a run, and how the console sees them.
"""

from __future__ import annotations

from crown.spark.pipeline.description import PipelineView, Sink, TableSource
from crown.spark.pipeline.pipeline import Pipeline

__all__ = ["Pipeline", "PipelineView", "Sink", "TableSource"]
