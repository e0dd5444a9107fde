"""`snapshot`: the full current result of a maintained query, read from its checkpoint, each cell in parallel.

The state store holds everything an engine is built from, so nothing but the checkpoint is needed: not the query, not
the stream, which may be running or not. The read is of one committed batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from crown.errors import StateError
from crown.ir.plan import OrderBy
from crown.ir.serial import decode
from crown.plan import from_json
from crown.plan.cells.together import Slots
from crown.spark.checkpoint.identity import tables_of
from crown.spark.checkpoint.meaning import same
from crown.spark.checkpoint.state import StoredOperator, last_batch, stored_operators
from crown.spark.flow.chunks import Chunk
from crown.spark.flow.plan_views import shown_order
from crown.spark.flow.selection import exact_spark_sql
from crown.spark.flow.unpack import conform
from crown.spark.flow.views import deltas_of
from crown.spark.host.engines import rebuild
from crown.spark.schema import output_schema


def snapshot(
    spark: SparkSession,
    checkpoint: str,
    *,
    batch: int | None = None,
    sql: str | None = None,
    view: str | None = None,
) -> DataFrame:
    """The view as of the last committed batch (or `batch`, while the state store still has it), as a batch DataFrame.

    A query's ORDER BY without LIMIT is the order of this DataFrame. Of a stream with several views, it is the one that
    reads the others; `sql` names another. Of views that were maintained together by name, `view` names one.
    """
    operator = _result_operator(spark, checkpoint, batch, sql)
    plan = from_json(operator.plan)
    schema = output_schema(plan, names=operator.names, deltas=False)
    reader = CellReader(operator.plan, schema, dict(operator.ranges))
    rows = operator.read("chunks").select(
        F.col("key.cell").alias("cell"),
        F.col("user_map_key.index").alias("index"),
        "user_map_value.version",
        "user_map_value.snapshot",
        "user_map_value.checksum",
        "user_map_value.data",
    )
    slots = _slots(operator, checkpoint, view)
    found = rows.mapInArrow(reader, schema)
    if slots is None:
        return _ordered(found, shown_order(plan, operator.names))
    return _ordered(deltas_of(found, slots), slots.order)


@dataclass(frozen=True)
class CellReader:
    """For `mapInArrow` over a state partition: rebuild the cells that are in it and enumerate them."""

    plan: str
    schema: StructType
    ranges: dict[int, tuple[int, int]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        cells: dict[int, dict[int, Chunk]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                chunk = Chunk(row["version"], row["snapshot"], row["checksum"], row["data"])
                cells.setdefault(row["cell"], {})[row["index"]] = chunk
        for cell, chunks in cells.items():
            first, following = self.ranges[cell]
            missing = [index for index in range(first, following) if index not in chunks]
            if missing:
                raise StateError(f"cell {cell}: state chunk {missing[0]} is missing", code="CROWN-STATE-CORRUPT")
            ordered = (chunks[index] for index in range(first, following))
            engine = rebuild(self.plan, ordered, "quarantine", deltas=False)
            for rows in pa.RecordBatchReader.from_stream(engine.rows()):
                yield conform(rows, schema)


def _result_operator(spark: SparkSession, checkpoint: str, batch: int | None, sql: str | None) -> StoredOperator:
    """Return the operator whose rows are the result."""
    found = last_batch(checkpoint) if batch is None else batch
    operators = [] if found is None else stored_operators(spark, checkpoint, found)
    views: dict[str, list[StoredOperator]] = {}
    for operator in operators:
        # The parts of a single view may still be told apart by the version that wrote each.
        views.setdefault(operator.view if _several(operators) else "", []).append(operator)
    if sql is None:
        read = {view for operator in operators for view in operator.inputs} if _several(operators) else set()
        chosen = [own for view, own in views.items() if view not in read]
    else:
        chosen = [own for own in views.values() if _is_view(own, sql)]
    if not chosen:
        raise StateError(
            f"there is no {'view' if sql is None else 'such view'} in the checkpoint {checkpoint}",
            code="CROWN-STATE-NONE",
            reason="no batch with changes is committed yet, or the checkpoint belongs to another query",
        )
    results = [operator for own in chosen for operator in _results(own)]
    if len(results) > 1:
        raise StateError(
            f"there are {len(views)} views in the checkpoint {checkpoint}",
            code="CROWN-STATE-VIEWS",
            hint="name one with sql=...; they are:\n" + "\n".join(from_json(own[0].plan).sql for own in chosen),
        )
    return results[0]


def _slots(operator: StoredOperator, checkpoint: str, view: str | None) -> Slots | None:
    """Return where the rows of the named view are; None for a query that is alone."""
    views = {one["name"]: one for one in operator.identity.get("views", ())}
    if view in views:
        slots = decode(Slots, views[view])
        assert isinstance(slots, Slots)
        return slots
    if view is None and not views:
        return None
    missing = "there are several views" if view is None else f"there is no view {view}"
    raise StateError(
        f"{missing} in the checkpoint {checkpoint}",
        code="CROWN-STATE-VIEWS",
        hint=f"name one with view=...; they are: {', '.join(views)}" if views else "it holds one query: leave view out",
    )


def _several(operators: list[StoredOperator]) -> bool:
    names = [operator.name for operator in operators]
    return len(set(names)) < len(names)


def _results(operators: list[StoredOperator]) -> list[StoredOperator]:
    """Return a view's last operators: one, unless the stream holds the same view twice."""
    return [one for one in operators if one.name == "merge"] or [one for one in operators if one.name == "cells"]


def _is_view(operators: list[StoredOperator], sql: str) -> bool:
    tables = tables_of(operator.plan for operator in operators if operator.name != "merge")
    return same(from_json(operators[0].plan).sql, sql, tables)


def _ordered(rows: DataFrame, order: tuple[OrderBy, ...]) -> DataFrame:
    """By the query's ORDER BY, where all of it can be said in Spark SQL."""
    terms = [
        getattr(F.expr(text), f"{'desc' if one.descending else 'asc'}_nulls_{'first' if one.nulls_first else 'last'}")()
        for one in order
        if (text := exact_spark_sql(one.expression)) is not None
    ]
    return rows.sort(*terms) if terms and len(terms) == len(order) else rows
