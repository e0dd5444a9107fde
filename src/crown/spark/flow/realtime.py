"""The operators of a query in real-time mode: each change is applied, and its deltas emitted, as soon as it arrives.

Spark runs no Python in this mode, no stateful operator before a union and none after another. So it requires Spark's
JVM, one union of all tables, one stateful operator, and cells whose outputs are disjoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from crown.changes import AFTER, ATTEMPT, BATCH, CHANGE_TYPE, POSITION
from crown.errors import PlanError
from crown.ir.tables import CLOCK
from crown.plan.cells.together import VIEW
from crown.spark.flow.jvm import JvmFlow
from crown.spark.flow.maintained import MaintainedView, maintained, views_of
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.topology import Topology, ViewsTopology
from crown.spark.schema import output_schema
from crown.spark.sources.native import native


def assemble_real_time(
    spark: SparkSession, topology: Topology, tables: Mapping[str, DataFrame], on_invalid: str, rejects: Rejects | None
) -> DataFrame:
    """The operators of a laid-out query, over the DataFrames of exactly its tables."""
    views = topology.views if isinstance(topology, ViewsTopology) else ()
    what = "the views" if views else "the query"
    for reason, hint in _obstacles(topology, tables):
        raise PlanError(f"{what} can't run in real-time mode", code="CROWN-SPARK-REALTIME", reason=reason, hint=hint)
    flow = JvmFlow.of(spark, rejects)
    packed = [
        flow.dispatched(native(frame), topology.cell, name, topology.cells, real_time=True)
        for name, frame in tables.items()
    ]
    operator = topology.operator("cells", topology.cell, topology.cells, on_invalid, rejects)
    cells = flow.run_real_time(reduce(lambda left, right: left.unionByName(right), packed), operator)
    deltas = flow.unpacked_real_time(cells, topology.cell, _shown(topology), views=len(views))
    return maintained(deltas, MaintainedView(spark, topology, (), flow.engine, real_time=True), alone=deltas)


def _shown(topology: Topology) -> StructType:
    """Columns may be NULL: a batch without deltas has one row for each view, to signal that it ran."""
    fields = output_schema(topology.cell, names=topology.names).fields
    told = (CHANGE_TYPE, VIEW) if isinstance(topology, ViewsTopology) else (CHANGE_TYPE,)
    nullable = [StructField(field.name, field.dataType, field.name not in told) for field in fields]
    return StructType(
        [*nullable, *(StructField(name, LongType(), False) for name in (BATCH, AFTER, ATTEMPT, POSITION))]
    )


def _obstacles(topology: Topology, tables: Mapping[str, DataFrame]) -> Iterator[tuple[str, str]]:
    """Why a query can't run in real-time mode, and what to do."""
    for name, frame in tables.items():
        if name == CLOCK:
            yield "the query reads the time, which Crown tells by batch", "use micro-batches"
        elif not frame.isStreaming:
            yield f"table {name} is static, and Spark has no way to load it there", "send its rows to a topic"
        elif views_of(frame):
            yield (
                f"table {name} is a view, and Spark runs one stateful operator there",
                "write the view to a topic and read that",
            )
    for name in topology.resolved:
        yield (
            f"table {name} has a key or a window, which takes an operator before the cells when there are several",
            "use cells=1, or micro-batches",
        )
    if topology.merge is not None:
        of = f" for {', '.join(topology.meeting)}" if isinstance(topology, ViewsTopology) else ""
        yield (
            f"the outputs of its {topology.cells} cells meet{of}, so that a further operator would have to add them up",
            "use cells=1, or micro-batches",
        )
