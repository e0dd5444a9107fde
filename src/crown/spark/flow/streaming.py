"""`maintain`: a query over changing DataFrames as a streaming DataFrame of its deltas."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, Protocol, TypedDict, Unpack, overload

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from crown.changes import BATCH, POSITION
from crown.errors import PlanError, SchemaError
from crown.functions import PythonFunctions
from crown.ir.plan import Plan
from crown.ir.tables import CLOCK
from crown.spark import settings
from crown.spark.flow.cell_keys import MOST_CELLS
from crown.spark.flow.choice import chosen_flow
from crown.spark.flow.computed import with_functions
from crown.spark.flow.maintained import MaintainedView, maintained, views_of
from crown.spark.flow.operators import Flow, merge_cells
from crown.spark.flow.realtime import assemble_real_time
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.topology import Topology, ViewsTopology, lay_out, lay_out_views
from crown.spark.flow.views import MaintainedViews, observed_views
from crown.spark.schema import output_schema, table_schema
from crown.spark.sources.clock import clock
from crown.spark.sources.once import load_once

# More cells than this are chosen by the user, never by a default.
_MOST_DEFAULT_CELLS = 64
METRICS = "crown"
_ONE = ""  # the name of a query that has none
_numbers = itertools.count(1)


class MaintainOptions(TypedDict, total=False):
    cells: int | None
    keys: Mapping[str, Sequence[str]] | None
    profiles: Mapping[str, str] | None
    windows: Mapping[str, object] | None
    on_invalid: Literal["raise", "quarantine"]
    rejects: str | None
    batch: bool
    real_time: bool
    functions: PythonFunctions | None
    dialect: str


@overload
def maintain(
    spark: SparkSession, sql: str, tables: Mapping[str, DataFrame], **options: Unpack[MaintainOptions]
) -> DataFrame: ...
@overload
def maintain(
    spark: SparkSession,
    sql: Mapping[str, str],
    tables: Mapping[str, DataFrame],
    *,
    names: Mapping[str, str] | None = None,
    **options: Unpack[MaintainOptions],
) -> MaintainedViews: ...
def maintain(
    spark: SparkSession,
    sql: str | Mapping[str, str],
    tables: Mapping[str, DataFrame],
    *,
    cells: int | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    profiles: Mapping[str, str] | None = None,
    windows: Mapping[str, object] | None = None,
    on_invalid: Literal["raise", "quarantine"] = "raise",
    rejects: str | None = None,
    batch: bool = False,
    real_time: bool = False,
    functions: PythonFunctions | None = None,
    names: Mapping[str, str] | None = None,
    dialect: str = "spark",
) -> DataFrame | MaintainedViews:
    """Return the deltas of `sql` as a stream: the view's columns, `_change_type`, and `_multiplicity` for bags.

    Several queries by name, which may read each other, become one stream: each table is read and routed once, and
    `maintain(...).start({name: sink})` writes each view to its own sink from the same batch (see `MaintainedViews`).

    `tables` are streaming DataFrames of changes (with Delta's `_change_type`, or insert-only without it) and static
    ones, which are loaded once before the first deltas. `keys` names primary keys (such tables take upserts), `windows`
    the windows of tables (as in `crown.View`), `cells` the number of engines (default: the session's shuffle
    partitions).

    `on_invalid` says what happens to invalid changes: `raise` fails the batch, `quarantine` writes them to the
    directory `rejects` (see `crown.spark.rejected`).

    With `batch`, deltas also have `_batch`, the number of the batch, and `_position`, a number that no other delta of
    the batch has. A batch that Spark runs again has the same deltas with the same numbers, so a consumer of a sink
    that may repeat a batch (Kafka) drops what it has seen by the two.

    With `real_time`, the stream is for `trigger(realTime="5 minutes")`: the deltas of each change are emitted as soon
    as it arrives, with `_batch`, `_after`, `_attempt` and `_position`, by which a consumer recognises deltas of a
    failed attempt (see "Real-time mode" in docs/spark.md). Tables must come from Kafka; a deletion that arrives before
    its insertion waits for it until the batch ends.

    `functions` are Python functions that queries may call, by name (see `crown.function`), with columns of one table.

    With several queries, `names` are further ones that the others may read; they are expanded there, as by CREATE VIEW.
    `dialect` is that of all queries.

    In a query, `now()` and CURRENT_DATE are the time of the batch, in whole seconds. The stream then has a batch
    whenever it is triggered and a second has passed, so that rows expire as time passes.

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
    queries = {_ONE: sql} if isinstance(sql, str) else sql
    _check_views(queries, names or {}, alone=isinstance(sql, str))
    computed, tables = with_functions({**(names or {}), **queries}, tables, functions, dialect=dialect)
    schema = table_schema(tables, keys=keys or {}, profiles=profiles or {}, windows=windows or {})
    topology: Topology
    if isinstance(sql, str):
        topology = lay_out(computed[_ONE], schema, cells, dialect=dialect)
    else:
        views, named = ({name: computed[name] for name in group} for group in (queries, names or {}))
        topology = lay_out_views(views, schema, cells, names=named, dialect=dialect)
    settings.require(spark, topology.cell)
    tables = _with_clock(spark, topology, tables)
    if real_time:
        side = Rejects(rejects, topology.fingerprint) if on_invalid == "quarantine" and rejects is not None else None
        deltas = assemble_real_time(spark, topology, used_tables(topology, tables), on_invalid, side)
    else:
        deltas = assemble(spark, topology, tables, on_invalid=on_invalid, rejects=rejects, batch=batch)
    return MaintainedViews(deltas, topology.views) if isinstance(topology, ViewsTopology) else deltas


def _check_views(queries: Mapping[str, str], names: Mapping[str, str], *, alone: bool) -> None:
    if not queries:
        raise PlanError("there is no view to maintain", code="CROWN-ARGUMENT", hint="give queries by name")
    if names and alone:
        raise PlanError(
            "names are for several views", code="CROWN-ARGUMENT", hint="give the query by name: {'view': sql}"
        )
    twice = {name.lower() for name in names} & {name.lower() for name in queries}
    if twice:
        raise SchemaError(
            f"{min(twice)} is the name of a view and in names", code="CROWN-SCHEMA-DUPLICATE", hint="rename one of them"
        )


def _with_clock(spark: SparkSession, topology: Topology, tables: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Return the tables, with that of the time if the query reads it and the user gives none."""
    is_given = any(name.lower() == CLOCK for name in tables)
    reads = any(table.name == CLOCK for table in topology.cell.tables)
    return {**tables, CLOCK: clock(spark)} if reads and not is_given else tables


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
    flow = chosen_flow(spark, side)
    read = tuple(dict.fromkeys(view for frame in tables.values() for view in views_of(frame)))
    inputs = tuple(view.topology.fingerprint for view in read)

    def run(packed: DataFrame, name: str, plan: Plan, cells: int, *, policy: str = on_invalid) -> DataFrame:
        operator = topology.operator(name, plan, cells, policy, side if policy == "quarantine" else None)
        return flow.run_operator(packed, replace(operator, inputs=inputs))

    packed = [
        flow.dispatched(_changes(flow, spark, topology, name, frame, run), topology.cell, name, topology.cells)
        for name, frame in used_tables(topology, tables).items()
    ]
    union = reduce(lambda left, right: left.unionByName(right), packed)
    cells = run(union, "cells", topology.cell, topology.cells)
    shown = output_schema(topology.result, names=topology.names)
    if batch:
        shown = StructType([*shown.fields, *(StructField(name, LongType(), False) for name in (BATCH, POSITION))])

    def deltas(metrics: str) -> DataFrame:
        observed = cells.observe(metrics, *_metrics())
        if (merge := topology.merge) is not None:
            observed = run(flow.repacked(observed, merge), "merge", merge, merge_cells(merge), policy="raise")
        rows = flow.unpacked(observed, topology.result, shown, numbered=batch)
        return observed_views(rows, topology.views, metrics) if isinstance(topology, ViewsTopology) else rows

    # Spark requires a unique name for every metric of a query, and these deltas may be combined
    # with other views.
    view = MaintainedView(spark, topology, read, flow.engine)
    return maintained(deltas(f"{METRICS}-{next(_numbers)}"), view, alone=deltas(METRICS))


class _Run(Protocol):
    """Runs an operator of the query."""

    def __call__(self, packed: DataFrame, name: str, plan: Plan, cells: int) -> DataFrame: ...


def _changes(flow: Flow, spark: SparkSession, topology: Topology, name: str, frame: DataFrame, run: _Run) -> DataFrame:
    """Return the table's changes as a stream, with keys and windows resolved where the cells can't do it."""
    if not frame.isStreaming:
        frame = load_once(spark, frame)
    if name not in topology.resolved:
        return frame
    plan, cells = topology.resolved[name]
    packed = flow.dispatched(frame, plan, name, cells, keyed=True)
    return flow.unpacked(run(packed, f"table-{name}", plan, cells), plan, output_schema(plan))


def _metrics() -> list[Any]:
    """Return what each batch reports in the query's progress under `observedMetrics`."""
    load = F.struct("cell", "updates", "deltas", "rows", "bytes", "seconds", "figures")
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
                hint="give cells=... (explain suggests a number), or set spark.sql.shuffle.partitions to it",
            )
    if not 1 <= cells <= MOST_CELLS:
        raise PlanError(f"cells must be between 1 and {MOST_CELLS}, got {cells}", code="CROWN-PLAN-CELLS")
    return cells


def used_tables(topology: Topology, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the DataFrames that the query reads, by the plan's names."""
    by_lower = {name.lower(): frame for name, frame in tables.items()}
    missing = [table.name for table in topology.cell.tables if table.name.lower() not in by_lower]
    if missing:
        raise SchemaError(f"there is no DataFrame for table {missing[0]!r}", code="CROWN-SPARK-TABLE")
    return {table.name: by_lower[table.name.lower()] for table in topology.cell.tables}
