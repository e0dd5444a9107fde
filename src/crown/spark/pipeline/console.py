"""A running pipeline as a source of facts for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crown.console.embedded import as_table, matching
from crown.console.overview import tables_overview, view_overview
from crown.console.source import Frame, Table, ViewFrame, shown
from crown.plan.explain.cells import table_shares
from crown.spark.filesystem import names_in, read_file
from crown.spark.pipeline.checking import Check
from crown.spark.pipeline.description import PipelineDescription
from crown.spark.pipeline.progress import Batches
from crown.spark.pipeline.start import Start
from crown.spark.sinks.parquet import current_parts

_MOST_ROWS = 1_000_000  # of parts that are read to show a table
_REJECTED_FILES = 20
_REJECTED_ROWS = 50
_REJECTED = ("batch", "table", "partition", "position", "reason", "row")


class PipelineSource:
    """Give it the query's `batches` once it runs, and say why it `ended`."""

    def __init__(self, pipeline: PipelineDescription, checked: Check, start: Start, *, budget: float | None) -> None:
        self._pipeline = pipeline
        self._checked = checked
        self._start = start
        self._budget = budget
        self.batches: Batches | None = None
        self.ended = ""

    def overview(self) -> Mapping[str, Any]:
        pipeline, explanation = self._pipeline, self._checked.explanation
        views, tables = [], []
        if explanation is not None:
            shares = table_shares(explanation.plan, pipeline.cells)
            views.append(
                view_overview(
                    pipeline.title,
                    explanation.plan,
                    explanation.report,
                    live=False,
                    quarantines=pipeline.on_invalid == "quarantine",
                    readable=self._is_readable(),
                    cells=[{"table": share.table, "copies": f"{share.copies:.3g}"} for share in shares],
                )
            )
            tables = tables_overview([explanation.plan])
        return {
            "title": pipeline.title,
            "kind": "spark",
            "tables": tables,
            "views": views,
            "budget": self._budget,
            "recovery": {"text": str(self._start), "facts": self._start.facts},
        }

    def frame(self) -> Frame:
        batches = self.batches
        if batches is None:
            return Frame({self._pipeline.title: _EMPTY}, self.ended)
        history, totals = batches.read(), batches.totals
        last = history[-1] if history else None
        frame = ViewFrame(
            rows=None,
            bytes=0 if last is None else last.bytes,
            batches=totals.batches,
            changes=totals.updates,
            updates=totals.updates,
            counter_changes=0,
            rejects=totals.rejected,
            deltas=totals.deltas,
            cells=batches.cells,
            rejected=self._rejected(str(batches.query.id)) if totals.rejected else None,
            history=history,
            status="" if self.ended else _status(batches),
            effort=None if last is None else last.effort,
        )
        return Frame({self._pipeline.title: frame}, self.ended)

    def watch(self, connected: bool) -> None:
        """Spark reports its batches whether anyone looks or not."""

    def rows(self, view: str, *, offset: int, limit: int, search: str) -> Mapping[str, Any]:
        sink = self._pipeline.sink
        try:
            table = _sink_table(sink.path or "")
        except (OSError, pa.ArrowException):
            return {"table": None, "more": False, "note": "the table is being rewritten; refresh"}
        if isinstance(table, str):
            return {"table": None, "more": False, "note": table}
        note = ""
        if search:
            table = matching(table, search)
            note = f"{table.num_rows:,} rows match"
        return {"table": as_table(table.slice(offset, limit)), "more": table.num_rows > offset + limit, "note": note}

    def _is_readable(self) -> bool:
        sink = self._pipeline.sink
        return sink.format == "materialized" and "://" not in (sink.path or "")

    def _rejected(self, query: str) -> Table | None:
        """The rejected changes of the last batches that had some, newest first."""
        path = self._pipeline.rejects
        if path is None:
            return None
        names = [name for name in names_in(path) if name[12:22] == f"-{query[:8]}-"]
        rows: list[list[str | None]] = []
        for name in reversed(names[-_REJECTED_FILES:]):
            lines = (read_file(path, name) or b"").splitlines()
            found = (json.loads(line) for line in lines[: _REJECTED_ROWS - len(rows)])
            rows += [[shown(row.get(column)) for column in _REJECTED] for row in found]
        return Table(_REJECTED, [True, False, True, True, False, False], rows)


_EMPTY = ViewFrame(None, 0, 0, 0, 0, 0, 0, deltas=0, status="starting Spark")


def _status(batches: Batches) -> str:
    message = str(batches.query.status["message"])
    return "live" if message.startswith(("Processing", "Waiting", "Getting", "No new")) else message[:60]


def _sink_table(path: str) -> pa.Table | str:
    """The rows of a materialized table, or why they are not shown."""
    found = current_parts(path)
    if found is None:
        return "the first batch has not been written yet"
    names, weight, parts, rows = found
    if rows > _MOST_ROWS:
        return f"the table has more than {_MOST_ROWS:,} rows to read; use crown.spark.read_materialized"
    signed = pa.concat_tables([pq.read_table(f"{path}/{part}") for part in parts])
    net = signed.group_by(names).aggregate([(weight, "sum")])
    net = net.filter(pc.greater(net[f"{weight}_sum"], 0))
    copies = net[f"{weight}_sum"]
    shown_columns = net.select(names)
    if net.num_rows and pc.max(copies).as_py() > 1:
        shown_columns = shown_columns.append_column("_multiplicity", copies)
    return shown_columns
