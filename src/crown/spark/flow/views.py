"""Several views as one stream: what `maintain` returns for a mapping of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from crown.changes import AFTER, ATTEMPT, BATCH, CHANGE_TYPE, INSERT, MULTIPLICITY, POSITION
from crown.errors import CrownError, PlanError, StateError
from crown.plan.cells.together import VIEW, Slots
from crown.spark.flow.maintained import MaintainedView, check_start, views_of
from crown.spark.sinks.kafka import Topic
from crown.spark.sinks.materialize import Target, target_of

# The options of `materialize` or of a Kafka topic, or a function of the deltas and the number of the
# batch, as `foreachBatch` takes it.
DeltaSink: TypeAlias = Mapping[str, Any] | Callable[[DataFrame, int], None]

_OBSERVED = "views of "
_REAL_TIME_TRIGGER = {"realTime": "5 minutes"}  # as Spark's own default


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

        A sink has the options of `materialize`, such as `{"parquet": path}`, is a topic, such as
        `{"kafka": servers, "topic": name}` with the `key` and `options` of `to_kafka`, or a function of the deltas and
        the number of the batch. Targets of `materialize` take each batch once, so they are all at the same version
        whenever Spark has committed a batch. A topic or a function may see a batch again after a failure. `trigger`
        has the options of `DataStreamWriter.trigger`.

        Views that are maintained with `real_time` go to topics of the same servers, by default with
        `trigger={"realTime": "5 minutes"}`.
        """
        if not sinks:
            raise PlanError("no view has a sink", code="CROWN-SINK-TARGET", hint='start({"name": {"parquet": path}})')
        if self.running.real_time:
            return self._start_real_time(sinks, checkpoint, trigger or _REAL_TIME_TRIGGER)
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
        if "kafka" in sink:
            topic = Topic.of(sink)
            topic.records(deltas_of(self._deltas, view))  # checks the key
            return lambda deltas, _: topic.write(deltas)
        shown = deltas_of(self._deltas, view)
        target: Target = target_of(shown.schema, checkpoint, **sink)
        try:
            target.check(self._deltas.sparkSession)
        except StateError:
            # If the checkpoint belongs to other views, that is the cause of any problem with the
            # targets.
            check_start(views_of(self._deltas), checkpoint)
            raise
        return target.apply

    def _start_real_time(
        self, sinks: Mapping[str, DeltaSink], checkpoint: str, trigger: Mapping[str, Any]
    ) -> StreamingQuery:
        """Send all views from one query, because Spark has no batches here from which to write several sinks."""
        topics = {name: _real_time_topic(self._find(name), sink) for name, sink in sinks.items()}
        settings = _common_settings(topics)
        rows = self._deltas
        records: list[list[Column]] = [[], [], []]
        for name, topic in topics.items():
            own = F.col(VIEW) == self._views[name].number
            values = (F.lit(topic.destination), *topic.record(columns_of(rows, self._views[name])))
            for cases, value in zip(records, values, strict=True):
                cases.append(F.when(own, value))
        chosen = rows.where(F.col(VIEW).isin([self._views[name].number for name in topics]))
        sent = chosen.select(
            *(F.coalesce(*cases).alias(name) for cases, name in zip(records, ("topic", "key", "value"), strict=True))
        )
        writer = sent.writeStream.format("kafka").options(**settings).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()


def _real_time_topic(view: Slots, sink: DeltaSink) -> Topic:
    if callable(sink) or "kafka" not in sink:
        raise PlanError(
            f"view {view.name} can't go to this sink in real-time mode",
            code="CROWN-SPARK-REALTIME",
            reason="Spark writes such a stream to one sink, and only Kafka's can divide it by view",
            hint='{"kafka": "host:9092", "topic": "name"}, or use micro-batches',
        )
    return Topic.of(sink)


def _common_settings(topics: Mapping[str, Topic]) -> dict[str, Any]:
    """Return the options that all topics have in common."""
    (first, settings), *others = ((name, topic.settings()) for name, topic in topics.items())
    for name, other in others:
        if other != settings:
            raise PlanError(
                f"views {first} and {name} can't go to Kafka with different servers or options",
                code="CROWN-SPARK-REALTIME",
                reason="in real-time mode one sink sends the records of all views",
                hint="give both the same, or maintain them in two streams",
            )
    taken: dict[str, str] = {}
    for name, topic in topics.items():
        where = topic.destination
        if where in taken:
            raise PlanError(
                f"views {taken[where]} and {name} have the same topic {where}",
                code="CROWN-SINK-TARGET",
                reason="a record doesn't say which view it belongs to",
                hint="give each view its own topic",
            )
        taken[where] = name
    return settings


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
    columns = columns_of(rows, view)
    return rows.where(F.col(VIEW) == view.number).select(*(column.alias(name) for name, column in columns.items()))


def columns_of(rows: DataFrame, view: Slots) -> dict[str, Column]:
    """Return the columns of one view, by name, among those of all."""
    own = {column.name: F.col(place) for place, column in zip(view.places, view.columns, strict=True)}
    wanted = [CHANGE_TYPE, *([MULTIPLICITY] if view.bag else []), BATCH, AFTER, ATTEMPT, POSITION]
    return own | {name: F.col(name) for name in wanted if name in rows.columns}
