"""The DataFrame that `maintain` returns: an ordinary one whose stream is checked against its checkpoint by `start`.

PySpark makes a new DataFrame in every transformation and a new writer in every `writeStream`. The classes here are
subclasses of PySpark's, and keep track of the views that a DataFrame comes from.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from crown.errors import PlanError
from crown.spark import settings
from crown.spark.checkpoint.handover import hand_over
from crown.spark.checkpoint.state import check_checkpoint
from crown.spark.flow.jvm import accept
from crown.spark.flow.operators import EngineName
from crown.spark.flow.topology import Topology
from crown.spark.required import ENGINE

_LOCATION = "checkpointlocation"
_VIEWS = "_crown_views"
_ALONE = "_crown_alone"


@dataclass(frozen=True, eq=False)
class MaintainedView:
    """A view and those whose deltas it reads."""

    spark: SparkSession
    topology: Topology
    inputs: tuple[MaintainedView, ...]
    engine: EngineName
    real_time: bool = False

    def family(self) -> list[MaintainedView]:
        return [self, *(view for child in self.inputs for view in child.family())]


def maintained(frame: DataFrame, view: MaintainedView, *, alone: DataFrame) -> DataFrame:
    """Return the deltas of a view. `alone` are the same, for a stream of this view only."""
    marked = _marked(frame, (view,))
    setattr(marked, _ALONE, alone)
    return marked


def views_of(frame: DataFrame) -> tuple[MaintainedView, ...]:
    """Return the views whose deltas are in a frame, as far as it was made by PySpark's own transformations."""
    found: tuple[MaintainedView, ...] = vars(frame).get(_VIEWS, ())
    return found


def _marked(frame: DataFrame, views: Iterable[MaintainedView]) -> DataFrame:
    marked: Any = frame
    kind: Any = type(frame)
    marked.__class__ = _frame_class(kind)
    setattr(marked, _VIEWS, tuple(views))
    return frame


@functools.cache
def _frame_class(base: Any) -> type:
    def write_stream(frame: Any) -> Any:
        writer: Any = base.writeStream.fget(vars(frame).get(_ALONE, frame))
        kind: Any = type(writer)
        writer.__class__ = _writer_class(kind)
        writer._crown_views = views_of(frame)
        writer._crown_location = None
        if any(view.real_time for view in writer._crown_views):
            # Real-time mode only supports this output mode; for these deltas it makes no
            # difference.
            writer.outputMode("update")
        return writer

    methods = {
        name: _handing_on(base, method)
        for name, method in inspect.getmembers(base, inspect.isfunction)
        if not name.startswith("_")
    }
    return type(
        base.__name__, (base,), {**methods, "writeStream": property(write_stream), "__module__": base.__module__}
    )


def _handing_on(base: Any, method: Any) -> Any:
    """Wrap the method so that the resulting frame records the views of all frames that it was called with."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        result = method(self, *arguments, **options)
        if type(result) is not base:
            return result
        frames = [self, *(value for value in (*arguments, *options.values()) if isinstance(value, base))]
        return _marked(result, dict.fromkeys(view for frame in frames for view in views_of(frame)))

    return call


@functools.cache
def _writer_class(base: Any) -> type:
    class CheckedWriter(base):  # type: ignore[misc]
        """PySpark's writer keeps its options in the JVM, so the checkpoint location is recorded when it is set."""

        _crown_views: tuple[MaintainedView, ...]
        _crown_location: str | None

        def option(self, key: str, value: Any) -> Any:
            self._note({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._note(options)
            return super().options(**options)

        def start(self, *arguments: Any, **options: Any) -> Any:
            self._note(options)
            check_start(self._crown_views, self._crown_location)
            return super().start(*arguments, **options)

        def toTable(self, *arguments: Any, **options: Any) -> Any:
            self._note(options)
            check_start(self._crown_views, self._crown_location)
            return super().toTable(*arguments, **options)

        def trigger(self, **options: Any) -> Any:
            if options.get("realTime") is not None and not all(view.real_time for view in self._crown_views):
                raise PlanError(
                    "the view was not made for real-time mode",
                    code="CROWN-SPARK-REALTIME",
                    hint="maintain(..., real_time=True)",
                )
            return super().trigger(**options)

        def _note(self, options: Mapping[str, Any]) -> None:
            for name, value in options.items():
                if name.lower() == _LOCATION and value is not None:
                    self._crown_location = str(value)

    return CheckedWriter


def check_start(views: tuple[MaintainedView, ...], checkpoint: str | None) -> None:
    """Check what must hold when a stream starts."""
    family = list(dict.fromkeys(member for view in views for member in view.family()))
    for view in family:
        settings.require(view.spark, view.topology.cell)
    engines = {view.engine for view in family}
    if len(engines) > 1:
        raise PlanError(
            "some views of the stream run in Spark's JVM and others in Python workers",
            code="CROWN-SPARK-SETTING",
            hint=f"create all of them with the same value of {ENGINE}",
        )
    if checkpoint is not None:
        spark = family[0].spark
        accepted = check_checkpoint(spark, checkpoint, [view.topology.described() for view in family])
        hand_over(checkpoint, family[0].engine)
        if family[0].engine == "jvm":
            accept(spark, accepted)
