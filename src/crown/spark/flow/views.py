"""Several views as one stream: what `maintain` returns for a mapping of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from crown.changes import BATCH, CHANGE_TYPE, INSERT, MULTIPLICITY, POSITION
from crown.errors import CrownError, PlanError, StateError
from crown.plan.cells.together import VIEW, Slots
from crown.spark.flow.maintained import MaintainedView, check_start, views_of
from crown.spark.sinks.materialize import Target, target_of

# The options of `materialize`, or a function of the deltas and the number of the batch, as
# `foreachBatch` takes it.
DeltaSink: TypeAlias = Mapping[str, str | bool] | Callable[[DataFrame, int], None]

_OBSERVED = "views of "


class MaintainedViews:
    """Views that one stream maintains. `views[name]` are the deltas of one of them, as a streaming DataFrame.

    `start` writes each view to its own sink, from the same batch.
    """

    def __init__(self, deltas: DataFrame, views: tuple[Slots, ...]) -> None:
        self._deltas = deltas
        self._views = {view.name: view for view in views}

    @property
    def running(self) -> MaintainedView:
        """What the stream runs."""
        (view,) = views_of(self._deltas)
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, name: str) -> DataFrame:
        """Return the deltas of one view. A stream that is started from it maintains all views, and writes this one."""
        return deltas_of(self._deltas, self._find(name))

    def _find(self, name: str) -> Slots:
        found = self._views.get(name)
        if found is None:
            raise CrownError(
                f"there is no view {name}", code="CROWN-VIEW-UNKNOWN", hint=f"the views are: {', '.join(self._views)}"
            )
        return found

    def start(
        self, sinks: Mapping[str, DeltaSink], *, checkpoint: str, trigger: Mapping[str, Any] | None = None
    ) -> StreamingQuery:
        """Start the stream, and write each view that is named to its own sink, from the same batch.

        A sink has the options of `materialize`, such as `{"parquet": path}`, or is a function of the deltas and the
        number of the batch. Targets of `materialize` take each batch once, so they are all at the same version
        whenever Spark has committed a batch. A function may see a batch again after a failure. `trigger` has the
        options of `DataStreamWriter.trigger`.
        """
        if not sinks:
            raise PlanError("no view has a sink", code="CROWN-SINK-TARGET", hint='start({"name": {"parquet": path}})')
        writes = {name: self._write(self._find(name), sink, checkpoint) for name, sink in sinks.items()}
        partial = any(callable(sink) for sink in sinks.values())

        def write(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                if partial:
                    # A function may read only some of its deltas, or none; Spark's stages must
                    # still run to completion.
                    batch.write.format("noop").mode("overwrite").save()
                for name, apply in writes.items():
                    apply(deltas_of(batch, self._views[name]), number)
            finally:
                batch.unpersist()

        writer = self._deltas.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        return writer.outputMode("append").trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    def _write(self, view: Slots, sink: DeltaSink, checkpoint: str) -> Callable[[DataFrame, int], None]:
        if callable(sink):
            return sink
        shown = deltas_of(self._deltas, view)
        target: Target = target_of(shown.schema, checkpoint, **sink)  # type: ignore[arg-type]
        try:
            target.check(self._deltas.sparkSession)
        except StateError:
            # If the checkpoint belongs to other views, that is the cause of any problem with the
            # targets.
            check_start(views_of(self._deltas), checkpoint)
            raise
        return target.apply


def observed_views(rows: DataFrame, views: tuple[Slots, ...], metrics: str) -> DataFrame:
    """Return the rows of all views, whose numbers each batch then reports (see `view_changes`)."""
    counts = []
    for view in views:
        own = F.col(VIEW) == view.number
        copies = F.col(MULTIPLICITY)
        added = F.sum(F.when(own, F.when(F.col(CHANGE_TYPE) == INSERT, copies).otherwise(-copies)))
        counts += [F.count_if(own).alias(f"deltas of {view.name}"), added.alias(f"rows of {view.name}")]
    return rows.observe(f"{_OBSERVED}{metrics}", *counts)


def view_changes(metrics: Mapping[str, Any], views: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return each view's number of deltas and net change in rows, from the batch's report."""
    found = next((row for name, row in metrics.items() if name.startswith(_OBSERVED)), None)
    if found is None:
        return {}
    return {name: (found[f"deltas of {name}"] or 0, found[f"rows of {name}"] or 0) for name in views}


def deltas_of(rows: DataFrame, view: Slots) -> DataFrame:
    """Return the rows of one view, with its own columns, from those of all."""
    own = [F.col(place).alias(column.name) for place, column in zip(view.places, view.columns, strict=True)]
    more = [F.col(name) for name in (CHANGE_TYPE, BATCH, POSITION) if name in rows.columns]
    if view.bag and MULTIPLICITY in rows.columns:
        more.insert(min(1, len(more)), F.col(MULTIPLICITY))
    return rows.where(F.col(VIEW) == view.number).select(*own, *more)
