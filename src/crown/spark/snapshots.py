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
from crown.ir.columns import stage_columns
from crown.ir.expression import Call, Column, Expression
from crown.ir.plan import Plan
from crown.plan import from_json
from crown.spark.flow.chunks import Chunk
from crown.spark.flow.identity import tables_of
from crown.spark.flow.meaning import same
from crown.spark.flow.selection import to_spark_sql
from crown.spark.flow.state import StoredStage, last_batch, stored_stages
from crown.spark.flow.unpack import conform
from crown.spark.host.engines import rebuild
from crown.spark.schema import output_schema


def snapshot(spark: SparkSession, checkpoint: str, *, batch: int | None = None, sql: str | None = None) -> DataFrame:
    """The view as of the last committed batch (or `batch`, while the state store still has it), as a batch DataFrame.

    A query's ORDER BY without LIMIT is the order of this DataFrame. Of a stream with several views, it is the one that
    reads the others; `sql` names another.
    """
    stage = _result_stage(spark, checkpoint, batch, sql)
    plan = from_json(stage.plan)
    schema = output_schema(plan, names=stage.names, deltas=False)
    reader = CellReader(stage.plan, schema, dict(stage.ranges))
    rows = stage.read("chunks").select(
        F.col("key.cell").alias("cell"),
        F.col("user_map_key.index").alias("index"),
        "user_map_value.version",
        "user_map_value.snapshot",
        "user_map_value.checksum",
        "user_map_value.data",
    )
    return _ordered(rows.mapInArrow(reader, schema), plan, stage.names)


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


def _result_stage(spark: SparkSession, checkpoint: str, batch: int | None, sql: str | None) -> StoredStage:
    """Return the stage whose rows are the result."""
    found = last_batch(checkpoint) if batch is None else batch
    stages = [] if found is None else stored_stages(spark, checkpoint, found)
    views: dict[str, list[StoredStage]] = {}
    for stage in stages:
        # The parts of a single view may still be told apart by the version that wrote each.
        views.setdefault(stage.view if _several(stages) else "", []).append(stage)
    if sql is None:
        read = {view for stage in stages for view in stage.inputs} if _several(stages) else set()
        chosen = [own for view, own in views.items() if view not in read]
    else:
        chosen = [own for own in views.values() if _is_view(own, sql)]
    if not chosen:
        raise StateError(
            f"there is no {'view' if sql is None else 'such view'} in the checkpoint {checkpoint}",
            code="CROWN-STATE-NONE",
            reason="no batch with changes is committed yet, or the checkpoint belongs to another query",
        )
    results = [stage for own in chosen for stage in _results(own)]
    if len(results) > 1:
        raise StateError(
            f"there are {len(views)} views in the checkpoint {checkpoint}",
            code="CROWN-STATE-VIEWS",
            hint="name one with sql=...; they are:\n" + "\n".join(from_json(own[0].plan).sql for own in chosen),
        )
    return results[0]


def _several(stages: list[StoredStage]) -> bool:
    names = [stage.stage for stage in stages]
    return len(set(names)) < len(names)


def _results(stages: list[StoredStage]) -> list[StoredStage]:
    """Return a view's last stages: one, unless the stream holds the same view twice."""
    return [stage for stage in stages if stage.stage == "merge"] or [s for s in stages if s.stage == "cells"]


def _is_view(stages: list[StoredStage], sql: str) -> bool:
    tables = tables_of(stage.plan for stage in stages if stage.stage != "merge")
    return same(from_json(stages[0].plan).sql, sql, tables)


def _ordered(rows: DataFrame, plan: Plan, shown: tuple[str, ...]) -> DataFrame:
    """By the query's ORDER BY, where all of it can be said in Spark SQL."""
    # The plan orders by the last stage's own columns; the user's names for them are in the same order.
    last = stage_columns(plan)[plan.stages[-1].id]
    names = {own.name: name for own, name in zip(last, shown, strict=True)}
    terms = [
        getattr(
            F.expr(text), f"{'desc' if order.descending else 'asc'}_nulls_{'first' if order.nulls_first else 'last'}"
        )()
        for order in plan.order
        if (text := to_spark_sql(_renamed(order.expression, names))) is not None
    ]
    return rows.sort(*terms) if terms and len(terms) == len(plan.order) else rows


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    match expression:
        case Column(name, type_):
            return Column(names.get(name, name), type_)
        case Call(function, arguments, type_):
            return Call(function, tuple(_renamed(argument, names) for argument in arguments), type_)
        case _:
            return expression
