"""The batches of a running query, from Spark's progress reports."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from crown.console.source import BatchFrame, CellFrame, ViewChange
from crown.errors import CrownError
from crown.spark.flow.rejects import count_rejected
from crown.spark.flow.views import view_changes
from crown.spark.pipeline.description import PipelineDescription, Sink
from crown.spark.pipeline.figures import NodeFigures
from crown.spark.pipeline.resume import ResumePoint
from crown.spark.sinks.parquet import rows_before

_KEPT = 200


@dataclass(frozen=True)
class Totals:
    """What a run has done so far."""

    batches: int = 0
    updates: int = 0
    deltas: int = 0
    rejected: int = 0


class Batches:
    """Collects the batches that had changes. Threads may share it; each batch is read once."""

    def __init__(
        self,
        query: StreamingQuery,
        rejects: str | None,
        rows: Mapping[str, int | None] | None = None,
        *,
        figures: NodeFigures,
    ) -> None:
        """`rows` are how many each of several views has at the start, if that is known."""
        self.query = query
        self.figures = figures
        self._views = {name: ViewChange(0, count) for name, count in (rows or {}).items()}
        self._rejects = rejects
        self._lock = threading.Lock()
        self._frames: dict[int, BatchFrame] = {}
        self._cells: dict[int, CellFrame] = {}
        self._totals = Totals()
        self._last = -1
        self._next = 0  # the batch that has not been reported yet

    def read(self) -> list[BatchFrame]:
        """Return the last batches, oldest first."""
        with self._lock:
            for progress in self._unread():
                if progress.numInputRows and progress.batchId > self._last:
                    self._add(progress)
            return list(self._frames.values())

    def _unread(self) -> list[Any]:
        """Each report takes a separate call to Spark, so all are read only if more than the last one is new."""
        last: Any = self.query.lastProgress
        if last is None or last.batchId < self._next:
            return []
        is_only = last.batchId == self._next
        # A batch without rows is reported again under the same number when it gets some.
        self._next = last.batchId + (1 if last.numInputRows else 0)
        return [last] if is_only else list(self.query.recentProgress)

    @property
    def totals(self) -> Totals:
        return self._totals

    @property
    def views(self) -> Mapping[str, ViewChange]:
        """What the run has done to each of several views."""
        return dict(self._views)

    @property
    def cells(self) -> tuple[CellFrame, ...]:
        """The cells in the last batch; one that had no changes holds what it held."""
        return tuple(self._cells[number] for number in sorted(self._cells))

    def _add(self, progress: Any) -> None:
        rejected = 0 if self._rejects is None else count_rejected(self._rejects, progress.batchId, str(self.query.id))
        values = observed(progress)
        loads = values.get("load") or ()
        idle = {number: replace(cell, updates=0, seconds=0.0, deltas=0) for number, cell in self._cells.items()}
        self._cells = idle | {load["cell"]: _cell(load) for load in loads}
        frame = batch_frame(progress, values, rejected)
        bytes_ = sum(cell.bytes or 0 for cell in self._cells.values())
        frame = replace(frame, bytes=bytes_, views=self._changed(progress))
        self.figures.add(loads, frame.seconds)
        self._last = frame.number
        self._frames[frame.number] = frame
        if len(self._frames) > _KEPT:
            self._frames.pop(next(iter(self._frames)))
        before = self._totals
        self._totals = Totals(
            before.batches + 1, before.updates + frame.updates, before.deltas + frame.deltas, before.rejected + rejected
        )

    def _changed(self, progress: Any) -> dict[str, ViewChange]:
        """Add what a batch did to the views; return it."""
        changes = view_changes(progress.observedMetrics, self._views)
        for name, (deltas, added) in changes.items():
            total = self._views[name]
            rows = None if total.rows is None else total.rows + added
            self._views[name] = ViewChange(total.deltas + deltas, rows)
        return {name: ViewChange(deltas, self._views[name].rows) for name, (deltas, _) in changes.items()}


def rows_at_start(pipeline: PipelineDescription, start: ResumePoint) -> dict[str, int | None]:
    """Return how many rows each of several views has before the next batch, None where its sink can't tell."""
    if pipeline.alone:
        return {}
    following = 0 if start.committed is None else start.committed + 1
    return {name: _rows_before(sink, following) for name, sink in pipeline.written.items()}


def _rows_before(sink: Sink, batch: int) -> int | None:
    if batch == 0:
        return 0
    if sink.format != "materialized" or sink.path is None:
        return None
    try:
        return rows_before(sink.path, batch)
    except (OSError, pa.ArrowException, CrownError):
        return None


def observed(progress: Any) -> Mapping[str, Any]:
    """Return what the cells said of a batch."""
    found = next((row for name, row in progress.observedMetrics.items() if name.split("-")[0] == "crown"), None)
    return {} if found is None else found.asDict()


def batch_frame(progress: Any, values: Mapping[str, Any], rejected: int) -> BatchFrame:
    seconds = max(progress.durationMs.get("triggerExecution", 0) / 1000, 1e-3)
    return BatchFrame(
        number=progress.batchId,
        updates=values.get("updates") or 0,
        deltas=values.get("deltas") or 0,
        seconds=seconds,
        lag=_lag(progress, seconds),
        bytes=values.get("bytes") or 0,
        rejected=rejected,
        effort=values.get("counter_changes_per_update") or 0.0,
        time=str(progress.timestamp)[11:19],
    )


def _cell(load: Any) -> CellFrame:
    return CellFrame(
        f"cell {load['cell']}", load["updates"], load["rows"], load["bytes"], load["seconds"], load["deltas"]
    )


def _lag(progress: Any, seconds: float) -> str:
    """Return the age of the newest deltas when they came out, and what the sources know to be waiting."""
    waiting = [
        f"{metrics[name]} {unit}"
        for source in progress.sources
        for metrics in [source.metrics or {}]
        for name, unit in (("numFilesOutstanding", "files"), ("maxOffsetsBehindLatest", "records"))
        if metrics.get(name) not in (None, "0")
    ]
    return ", ".join([f"{seconds:.1f} s", *waiting])
