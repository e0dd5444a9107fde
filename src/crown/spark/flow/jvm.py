"""The operators inside the executors' JVM: they call the kernel through JNI, without Python workers.

The Java part is `jvm/crown/spark`, which this module assembles through py4j; so it needs a session of this process, not
one of Spark Connect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructType

from crown import types
from crown.changes import MULTIPLICITY, POSITION
from crown.errors import PlanError
from crown.ir.plan import Plan
from crown.plan import to_json
from crown.spark.checkpoint.identity import operator_fingerprint
from crown.spark.checkpoint.state import Accepted
from crown.spark.flow.cell_keys import cell_keys
from crown.spark.flow.operators import EngineName, cell_of_key, merge_cells, prepared, wakes
from crown.spark.flow.processor import Operator
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.selection import quoted
from crown.spark.required import ENGINE, MEMORY, bytes_of
from crown.spark.schema import CORRUPT, CORRUPT_REASON, DELETED, spark_type
from crown.spark.settings import JAR


def possible(spark: SparkSession) -> bool:
    """Whether this installation has the jar, and the session a JVM that can load it."""
    return JAR.exists() and getattr(spark, "_jvm", None) is not None


@dataclass(frozen=True)
class JvmFlow:
    """`rejects` is where changes that don't fit go; without it they are an error."""

    engine: ClassVar[EngineName] = "jvm"
    spark: SparkSession
    flow: Any  # crown.spark.Flow
    rejects: Rejects | None = None

    @staticmethod
    def of(spark: SparkSession, rejects: Rejects | None = None) -> JvmFlow:
        return JvmFlow(spark, _flow(spark), rejects)

    def dispatched(
        self, changes: DataFrame, plan: Plan, name: str, cells: int, *, keyed: bool = False, real_time: bool = False
    ) -> DataFrame:
        """With `real_time`, each change is sent as soon as it arrives."""
        table = next(table for table in plan.tables if table.name == name)
        ordered = bool(table.primary_key or table.window)
        rows = prepared(changes, plan, name)
        fields = [(column.name, column.type) for column in table.columns] or [("_row", types.BOOLEAN)]
        columns = [_column(field, type_) for field, type_ in fields]
        if MULTIPLICITY in rows.columns:
            fields.append((MULTIPLICITY, types.INT64))
            columns.append(F.col(MULTIPLICITY).cast(LongType()))
        marks = {"deleted": DELETED, "corrupt": CORRUPT, "reason": CORRUPT_REASON}
        extras = {mark: F.col(column) for mark, column in marks.items() if column in rows.columns}
        if keyed and cells > 1:
            extras["cell"] = cell_of_key(table, cells)
        nets = not ordered and not real_time and MULTIPLICITY not in rows.columns and self.rejects is None
        spec = _Spec(
            table=name,
            plan=None if keyed or cells == 1 else to_json(plan),
            cells=cells,
            ordered=ordered,
            netting=[column.name for column in table.columns if not column.nullable] if nets else None,
            columns=fields if self.rejects is None else [*fields, (POSITION, "int64")],
        )
        numbered = [column.alias(f"c{place}") for place, column in enumerate([*columns, *extras.values()])]
        packed = self.flow.dispatch(
            rows.select(*numbered)._jdf,
            name,
            list(cell_keys(cells)),
            spec.json(),
            [field for field, _ in fields],
            list(extras),
            self._rejects(self.rejects),
            real_time,
        )
        return DataFrame(packed, self.spark)

    def run_operator(self, packed: DataFrame, operator: Operator) -> DataFrame:
        return DataFrame(self.flow.run(packed._jdf, self._described(operator)), self.spark)

    def run_real_time(self, packed: DataFrame, operator: Operator) -> DataFrame:
        """The same for real-time mode, where each change is applied as soon as it arrives."""
        return DataFrame(self.flow.runRealTime(packed._jdf, self._described(operator)), self.spark)

    def _described(self, operator: Operator) -> Any:
        tables = json.loads(operator.plan)["tables"]
        return self.flow.operator(
            operator.name,
            operator.identity.view,
            operator.plan,
            operator.fingerprint,
            operator.sql,
            json.dumps(operator.identity.to_json()),
            json.dumps(operator.inputs),
            json.dumps(operator.names),
            list(operator.table_order),
            list(operator.keys),
            [table["name"] for table in tables if table.get("primary_key") or table.get("window")],
            self._rejects(operator.rejects),
            bytes_of(MEMORY, self.spark.conf.get(MEMORY, None)),
        )

    def repacked(self, deltas: DataFrame, merge: Plan) -> DataFrame:
        (table,) = merge.tables
        cells = merge_cells(merge)
        spec = _Spec(
            table=table.name,
            plan=to_json(merge) if cells > 1 else None,
            cells=cells,
            wakes=wakes(merge),
            columns=[(column.name, column.type) for column in table.columns],
        )
        return DataFrame(self.flow.repack(deltas._jdf, table.name, list(cell_keys(cells)), spec.json()), self.spark)

    def unpacked(self, deltas: DataFrame, plan: Plan, schema: StructType, *, numbered: bool = False) -> DataFrame:
        return DataFrame(self.flow.unpack(deltas._jdf, _delta_types(plan), numbered, schema.json()), self.spark)

    def unpacked_real_time(self, deltas: DataFrame, plan: Plan, schema: StructType, *, views: int = 0) -> DataFrame:
        """Deltas that end with the batch, the one before, the attempt and the position in it.

        With `views`, their first column is the number of the view, of so many.
        """
        types_ = ["view", *_delta_types(plan)[1:]] if views else _delta_types(plan)
        return DataFrame(self.flow.unpackRealTime(deltas._jdf, types_, views, schema.json()), self.spark)

    def alive(self) -> tuple[int, int, int]:
        """Return an executor's number of cached engines, open native handles and bytes of the kernel."""
        engines, handles, bytes_ = self.flow.alive(self.spark._jsparkSession)
        return engines, handles, bytes_

    def _rejects(self, rejects: Rejects | None) -> Any:
        return None if rejects is None else self.flow.rejects(rejects.path, rejects.view)


def accept(spark: SparkSession, accepted: Iterable[Accepted]) -> None:
    """Let cells continue from state that the driver has verified and whose fingerprint they would otherwise reject."""
    for one in accepted:
        _flow(spark).accept(operator_fingerprint(one.view, one.operator.name), list(one.operator.fingerprints))


def watch(spark: SparkSession, view: str, operator: str, watched: bool) -> None:
    """Start or stop reports on the nodes of their trees by the cells of a view's operator, from the next batch on."""
    _flow(spark).watch(operator_fingerprint(view, operator), watched)


@dataclass(frozen=True)
class _Spec:
    """The description of a native dispatcher's work; see `crates/crown-jvm/src/dispatch.rs`."""

    table: str
    plan: str | None
    cells: int
    columns: Sequence[tuple[str, str]]
    ordered: bool = False
    wakes: bool = False
    netting: Sequence[str] | None = None

    def json(self) -> str:
        return json.dumps(vars(self))


def _delta_types(plan: Plan) -> list[str]:
    return [*(column.type for column in plan.columns), "change", *(["int64"] if plan.bag else [])]


def _column(name: str, type_: types.DataType) -> Column:
    """A column as Java takes it."""
    return _plain(F.col(quoted(name)).cast(BooleanType() if name == "_row" else spark_type(type_)), type_)


def _plain(value: Column, type_: types.DataType) -> Column:
    """A value with dates and timestamps, whose classes depend on settings, as days and microseconds."""
    if type_ == types.DATE:
        return F.unix_date(value)
    if type_ == types.TIMESTAMP:
        return F.unix_micros(value)
    if not _has_classes(type_):
        return value
    if (element := type_.element) is not None:
        return F.transform(value, lambda one: _plain(one, element))
    if (entry := type_.entry) is not None:
        key, item = entry
        # From entries, whose keys stay different ones.
        pairs = F.transform(
            F.map_entries(value), lambda one: F.struct(_plain(one["key"], key), _plain(one["value"], item))
        )
        return F.map_from_entries(pairs)
    fields = (_plain(value.getField(name), field).alias(name) for name, field in type_.fields)
    return F.when(value.isNotNull(), F.struct(*fields))


def _has_classes(type_: types.DataType) -> bool:
    parts = (type_.element, *(type_.entry or ()), *(field for _, field in type_.fields))
    return type_ in (types.DATE, types.TIMESTAMP) or any(_has_classes(part) for part in parts if part is not None)


def _flow(spark: SparkSession) -> Any:
    """Java's `crown.spark.Flow`, from the session's class path or added to it now."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None or not JAR.exists():
        raise PlanError(
            "cells can't run in Spark's JVM here",
            code="CROWN-JVM-UNAVAILABLE",
            reason="the session is Spark Connect's" if jvm is None else f"there is no {JAR.name} in this installation",
            hint=f'spark.conf.unset("{ENGINE}")'
            if jvm is None
            else f'install a JDK and run make setup, or spark.conf.set("{ENGINE}", "python")',
        )
    found = jvm.crown.spark.Flow
    if type(found).__name__ == "JavaClass":
        return found()
    try:
        spark.sql(f"ADD JAR '{JAR}'")
        loader = spark._jsparkSession.artifactManager().classloader()
        return loader.loadClass("crown.spark.Flow").getConstructor(None).newInstance(None)
    except Exception as error:  # py4j's error, or whatever error a platform rejects a jar with
        raise PlanError(
            "Crown's jar can't be added to the session",
            code="CROWN-JVM-JAR",
            reason=str(error).strip().splitlines()[0],
            hint=f"start the session with spark.jars={JAR}, as crown.spark.configure does, or "
            f'spark.conf.set("{ENGINE}", "python")',
        ) from error
