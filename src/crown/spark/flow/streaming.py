"""`maintain`: a query over changing DataFrames as a streaming DataFrame of its deltas."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from crown.arrow import arrow_type
from crown.changes import BATCH, CHANGE_TYPE, DELETIONS, INSERTIONS, MULTIPLICITY, POSITION
from crown.errors import PlanError, SchemaError
from crown.ir.plan import Plan
from crown.ir.tables import Table
from crown.plan import to_json
from crown.spark import settings
from crown.spark.flow.cells import cell_keys
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.flow.maintained import MaintainedView, maintained, views_of
from crown.spark.flow.netting import Netting
from crown.spark.flow.processor import DELTAS, PACKED, CellProcessor, Stage
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.selection import compares, quoted, selection
from crown.spark.flow.topology import Topology, lay_out
from crown.spark.flow.unpack import NumberingUnpacker, Repacker, Unpacker
from crown.spark.schema import CORRUPT, CORRUPT_REASON, DELETED, output_schema, table_schema
from crown.spark.sources.bykey import by_key
from crown.spark.sources.once import load_once
from crown.spark.sources.parquet import FileDispatcher, file_names

# More cells than this are chosen by the user, never by a default.
_MOST_DEFAULT_CELLS = 64
_CELL_COLUMN = "_cell"
METRICS = "crown"
_numbers = itertools.count(1)


def maintain(
    spark: SparkSession,
    sql: str,
    tables: Mapping[str, DataFrame],
    *,
    cells: int | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    profiles: Mapping[str, str] | None = None,
    windows: Mapping[str, Any] | None = None,
    on_invalid: Literal["raise", "quarantine"] = "raise",
    rejects: str | None = None,
    batch: bool = False,
) -> DataFrame:
    """Return the deltas of `sql` as a stream: the view's columns, `_change_type`, and `_multiplicity` for bags.

    `tables` are streaming DataFrames of changes (with Delta's `_change_type`, or insert-only without it) and static
    ones, which are loaded once before the first deltas. `keys` names primary keys (such tables take upserts), `windows`
    the windows of tables (as in `crown.View`), `cells` the number of engines (default: the session's shuffle
    partitions).

    `on_invalid` says what happens to invalid changes: `raise` fails the batch, `quarantine` writes them to the
    directory `rejects` (see `crown.spark.rejected`).

    With `batch`, deltas also have `_batch`, the number of the batch, and `_position`, a number that no other delta of
    the batch has. A batch that Spark runs again has the same deltas with the same numbers, so a consumer of a sink
    that may repeat a batch (Kafka) drops what it has seen by the two.

    The result composes with any sink and trigger in append mode, and may be a table of another view. A checkpoint
    belongs to one query, schema and number of cells; `writeStream...start()` rejects any other.
    """
    cells = chosen_cells(spark, cells)
    if on_invalid == "quarantine" and rejects is None:
        raise PlanError(
            "on_invalid='quarantine' needs a directory for rejected changes",
            code="CROWN-SPARK-REJECTS",
            hint='give rejects="directory" that all executors can write to',
        )
    settings.advise(spark, cells)
    schema = table_schema(tables, keys=keys or {}, profiles=profiles or {}, windows=windows or {})
    topology = lay_out(sql, schema, cells)
    settings.require(spark, topology.cell)
    return assemble(spark, topology, tables, on_invalid=on_invalid, rejects=rejects, batch=batch)


def assemble(
    spark: SparkSession,
    topology: Topology,
    tables: Mapping[str, DataFrame],
    *,
    on_invalid: str = "raise",
    rejects: str | None = None,
    batch: bool = False,
) -> DataFrame:
    """Return the operators of a laid-out query."""
    side = Rejects(rejects, topology.fingerprint) if on_invalid == "quarantine" and rejects is not None else None
    shown = output_schema(topology.result, names=topology.names)
    packed = [
        dispatched(
            _changes(spark, topology, name, frame, on_invalid, side),
            topology.cell,
            name,
            topology.cells,
            rejects=side,
        )
        for name, frame in used_tables(topology, tables).items()
    ]
    read = tuple(dict.fromkeys(view for frame in tables.values() for view in views_of(frame)))
    inputs = tuple(view.topology.fingerprint for view in read)
    stage = replace(topology.stage("cells", topology.cell, topology.cells, on_invalid, side), inputs=inputs)
    cells = run_stage(reduce(lambda left, right: left.unionByName(right), packed), stage)
    unpacker: Unpacker | NumberingUnpacker = Unpacker(shown)
    if batch:
        shown = StructType([*shown.fields, *(StructField(name, LongType(), False) for name in (BATCH, POSITION))])
        unpacker = NumberingUnpacker(shown)

    def deltas(metrics: str) -> DataFrame:
        observed = cells.observe(metrics, *_metrics())
        if topology.merge is not None:
            observed = _merged(observed, topology, inputs)
        return observed.mapInArrow(unpacker, shown)

    # Spark requires a unique name for every metric of a query, and these deltas may be combined with other views.
    view = MaintainedView(spark, topology, read)
    return maintained(deltas(f"{METRICS}-{next(_numbers)}"), view, alone=deltas(METRICS))


def run_stage(packed: DataFrame, stage: Stage) -> DataFrame:
    return packed.groupBy("cell").transformWithState(CellProcessor(stage), DELTAS, "Append", "None")


def prepared(frame: DataFrame, plan: Plan, name: str) -> DataFrame:
    """Return what the kernel needs of a table's changes: its columns and the kind of change."""
    table = next(table for table in plan.tables if table.name == name)
    frame = by_key(frame, table)
    columns = [F.col(quoted(column.name)).alias(column.name) for column in table.columns]
    # A table of which only the number of rows matters must still have a column for Arrow to count.
    columns = columns or [F.lit(True).alias("_row")]
    if CHANGE_TYPE in frame.columns:
        word = F.col(CHANGE_TYPE)
        goes = F.when(word.isin(*INSERTIONS), False)
        columns.append(goes.when(word.isin(*DELETIONS), True).alias(DELETED))
    columns += [F.col(MULTIPLICITY)] if MULTIPLICITY in frame.columns else []
    checked = CORRUPT in frame.columns
    columns += [F.col(mark) for mark in (CORRUPT, CORRUPT_REASON) if mark in frame.columns]
    chosen = frame.select(*columns)
    wanted = None if table.primary_key or table.window else selection(plan, name)
    if wanted is None:
        return chosen
    return chosen.where(f"({wanted}) OR {CORRUPT} IS NOT NULL" if checked else wanted)


def dispatched(
    changes: DataFrame, plan: Plan, name: str, cells: int, *, keyed: bool = False, rejects: Rejects | None = None
) -> DataFrame:
    """Return a table's changes as packed blobs: routed by the plan, or with `keyed` by the table's primary key."""
    table = next(table for table in plan.tables if table.name == name)
    ordered = bool(table.primary_key or table.window)
    routed = None if keyed or cells == 1 else to_json(plan)
    names = file_names(changes)
    if names is not None and _untouched(changes, plan, table):
        needed = StructType([changes.schema[column.name] for column in table.columns])
        dispatcher = Dispatcher(name, cell_keys(cells), routed, rejects, netting=_netting(table, rejects))
        return names.mapInArrow(FileDispatcher(dispatcher, needed), PACKED)
    rows = prepared(changes, plan, name)
    column = _CELL_COLUMN if keyed and cells > 1 else None
    if column is not None:
        key = (F.col(quoted(name)) for name in table.primary_key)
        rows = rows.withColumn(column, F.pmod(F.hash(*key), F.lit(cells)).cast("int"))
    netting = None if ordered or MULTIPLICITY in rows.columns else _netting(table, rejects)
    dispatcher = Dispatcher(name, cell_keys(cells), routed, rejects, column, ordered, netting=netting)
    return rows.mapInArrow(dispatcher, PACKED)


def _untouched(changes: DataFrame, plan: Plan, table: Table) -> bool:
    """Return whether Spark need not process a table's changes."""
    return not (
        table.primary_key
        or table.window
        or not table.columns
        or MULTIPLICITY in changes.columns
        or compares(plan, table.name)
    )


def _netting(table: Table, rejects: Rejects | None) -> Netting | None:
    """Return what cancels changes of a table early: not where each that is rejected must be found again."""
    required = tuple(column.name for column in table.columns if not column.nullable)
    return Netting(required) if rejects is None else None


def merge_dispatcher(topology: Topology) -> tuple[Dispatcher, int]:
    """Return what sends the cells' outputs to the merge stage, and the number of its cells."""
    merge = topology.merge
    assert merge is not None
    cells = topology.layout.merge_cells
    (table,) = merge.tables
    wakes = None
    if any(getattr(stage, "always", False) for stage in merge.stages):
        wakes = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])
    routed = to_json(merge) if cells > 1 else None
    return Dispatcher(table.name, cell_keys(cells), routed, wakes=wakes), cells


def _changes(
    spark: SparkSession, topology: Topology, name: str, frame: DataFrame, on_invalid: str, side: Rejects | None
) -> DataFrame:
    """Return the table's changes as a stream, with keys and windows resolved where the cells can't do it."""
    if not frame.isStreaming:
        frame = load_once(spark, frame)
    if name not in topology.resolved:
        return frame
    plan, cells = topology.resolved[name]
    packed = dispatched(frame, plan, name, cells, keyed=True, rejects=side)
    deltas = run_stage(packed, topology.stage(f"table-{name}", plan, cells, on_invalid, side))
    return deltas.mapInArrow(Unpacker(output_schema(plan)), output_schema(plan))


def _merged(deltas: DataFrame, topology: Topology, inputs: tuple[str, ...]) -> DataFrame:
    assert topology.merge is not None
    dispatcher, cells = merge_dispatcher(topology)
    packed = deltas.mapInArrow(Repacker(dispatcher), PACKED)
    return run_stage(packed, replace(topology.stage("merge", topology.merge, cells, "raise", None), inputs=inputs))


def _metrics() -> list[Any]:
    """Return what each batch reports in the query's progress under `observedMetrics`."""
    load = F.struct("cell", "updates", "deltas", "rows", "seconds")
    return [
        F.sum("updates").alias("updates"),
        F.sum("deltas").alias("deltas"),
        F.sum("rejected").alias("rejected"),
        F.sum("rows").alias("rows"),
        F.sum("bytes").alias("bytes"),
        F.max("counter_changes_per_update").alias("counter_changes_per_update"),
        F.collect_list(F.when(F.col("updates").isNotNull(), load)).alias("load"),
    ]


def chosen_cells(spark: SparkSession, cells: int | None) -> int:
    if cells is None:
        cells = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        if cells > _MOST_DEFAULT_CELLS:
            raise PlanError(
                "the number of cells is missing",
                code="CROWN-PLAN-CELLS",
                reason=f"the session has {cells} shuffle partitions, which is too many for a default",
                hint="give cells=..., about the number of cores, or set spark.sql.shuffle.partitions to it",
            )
    if cells < 1:
        raise PlanError(f"cells must be at least 1, got {cells}", code="CROWN-PLAN-CELLS")
    return cells


def used_tables(topology: Topology, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the DataFrames that the query reads, by the plan's names."""
    by_lower = {name.lower(): frame for name, frame in tables.items()}
    missing = [table.name for table in topology.cell.tables if table.name.lower() not in by_lower]
    if missing:
        raise SchemaError(f"there is no DataFrame for table {missing[0]!r}", code="CROWN-SPARK-TABLE")
    return {table.name: by_lower[table.name.lower()] for table in topology.cell.tables}
