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
from crown.spark.filesystem import names_in
from crown.spark.flow.chunks import Chunk
from crown.spark.flow.selection import to_spark_sql
from crown.spark.flow.unpack import conform
from crown.spark.host.engines import rebuild
from crown.spark.schema import output_schema


def snapshot(spark: SparkSession, checkpoint: str, *, batch: int | None = None) -> DataFrame:
    """The view as of the last committed batch (or `batch`, while the state store still has it), as a batch DataFrame.

    A query's ORDER BY without LIMIT is the order of this DataFrame.
    """
    state = _State.of(spark, checkpoint, batch)
    plan = from_json(state.plan)
    schema = output_schema(plan, deltas=False)
    reader = CellReader(state.plan, schema, state.ranges())
    rows = state.read("chunks").select(
        F.col("key.cell").alias("cell"),
        F.col("user_map_key.index").alias("index"),
        "user_map_value.version",
        "user_map_value.snapshot",
        "user_map_value.checksum",
        "user_map_value.data",
    )
    return _ordered(rows.mapInArrow(reader, schema), plan)


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


@dataclass(frozen=True)
class _State:
    """The state of the stage whose rows are the result, at one batch."""

    spark: SparkSession
    checkpoint: str
    operator: int
    batch: int
    plan: str

    @staticmethod
    def of(spark: SparkSession, checkpoint: str, batch: int | None) -> _State:
        metadata = spark.read.format("state-metadata").load(checkpoint)
        found: dict[str, _State] = {}
        if batch is None:
            batch = max((int(name) for name in names_in(f"{checkpoint}/commits")), default=-1)
        for row in metadata.select("operatorId").distinct().collect() if batch >= 0 else ():
            state = _State(spark, checkpoint, row.operatorId, batch, "")
            stored = state.read("meta").select("value.stage", "value.plan").first()
            if stored is not None:
                found[stored.stage] = _State(spark, checkpoint, state.operator, state.batch, stored.plan)
        result = found.get("merge") or found.get("cells")
        if result is None:
            raise StateError(
                f"there is no view in the checkpoint {checkpoint}",
                code="CROWN-STATE-NONE",
                reason="no batch with changes was committed yet, or the checkpoint is another query's",
            )
        return result

    def read(self, variable: str) -> DataFrame:
        reader = self.spark.read.format("statestore").option("operatorId", self.operator).option("batchId", self.batch)
        return reader.option("stateVarName", variable).load(self.checkpoint)

    def ranges(self) -> dict[int, tuple[int, int]]:
        """Which chunks each cell has."""
        meta = self.read("meta").select("key.cell", "value.first_chunk", "value.next_chunk")
        return {row.cell: (row.first_chunk, row.next_chunk) for row in meta.collect()}


def _ordered(rows: DataFrame, plan: Plan) -> DataFrame:
    """By the query's ORDER BY, where all of it can be said in Spark SQL."""
    # The plan orders by the last stage's own columns; the user's names for them are in the same order.
    last = stage_columns(plan)[plan.stages[-1].id]
    names = {own.name: shown.name for own, shown in zip(last, plan.columns, strict=True)}
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
