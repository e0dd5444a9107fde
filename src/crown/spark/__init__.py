"""Crown on Apache Spark: views kept up to date by Structured Streaming.

    deltas = maintain(spark, sql, {"knows": knows_stream, "person": person_frame}, cells=8)   # a streaming DataFrame
    deltas.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(path)
    snapshot(spark, checkpoint)                                                               # the whole view

The life of a change: `sources` reads it, and `flow.streaming` prepares it in Spark (columns, selections). It is sent to
its cells in packed blobs, a stateful operator has the cell's engine apply it and writes it to the state store, and the
deltas are unpacked. `flow.jvm` does this with the kernel inside Spark's executors (the Java sources are in `jvm`);
`flow.python` with Python workers (`flow.dispatch`, `flow.processor`, `flow.unpack`) and the engines in a `host`.
`flow.topology` says which operators a query needs; `snapshots`, `sinks` and `pipeline` build on these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crown.spark.flow.batch import run_batch
    from crown.spark.flow.rejects import rejected
    from crown.spark.flow.streaming import maintain
    from crown.spark.pipeline import Pipeline
    from crown.spark.settings import CrownSettingsWarning, configure, session
    from crown.spark.sinks.kafka import to_kafka
    from crown.spark.sinks.materialize import materialize
    from crown.spark.sinks.parquet import read_materialized
    from crown.spark.snapshots import snapshot
    from crown.spark.sources.changes import delta_feed, files
    from crown.spark.sources.debezium import debezium
    from crown.spark.sources.kafka import kafka

__all__ = [
    "CrownSettingsWarning",
    "Pipeline",
    "configure",
    "debezium",
    "delta_feed",
    "files",
    "kafka",
    "maintain",
    "materialize",
    "read_materialized",
    "rejected",
    "run_batch",
    "session",
    "snapshot",
    "to_kafka",
]

# The engine host is part of this package but does not need PySpark, so imports are lazy.
_MODULES = {
    "flow.batch": ("run_batch",),
    "pipeline": ("Pipeline",),
    "flow.rejects": ("rejected",),
    "settings": ("CrownSettingsWarning", "configure", "session"),
    "sinks.parquet": ("read_materialized",),
    "sinks.materialize": ("materialize",),
    "sinks.kafka": ("to_kafka",),
    "snapshots": ("snapshot",),
    "sources.changes": ("delta_feed", "files"),
    "sources.debezium": ("debezium",),
    "sources.kafka": ("kafka",),
    "flow.streaming": ("maintain",),
}
_HOME = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
