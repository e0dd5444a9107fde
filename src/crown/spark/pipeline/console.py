"""A running pipeline as a source of facts for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crown.console.embedded import as_table, matching
from crown.console.overview import tables_overview, view_overview
from crown.console.source import Frame, TextTable, ViewChange, ViewFrame, shown
from crown.plan import Explanation
from crown.plan.explain.cells import table_shares
from crown.spark.filesystem import names_in, read_file
from crown.spark.pipeline.checking import Check
from crown.spark.pipeline.description import PipelineDescription, Sink
from crown.spark.pipeline.figures import NodeFigures
from crown.spark.pipeline.progress import Batches
from crown.spark.pipeline.resume import ResumePoint
from crown.spark.sinks.parquet import current_parts
from crown.sql.statements import names_of
from crown.wording import counted

_MOST_ROWS = 1_000_000  # of parts that are read to show a table
_REJECTED_FILES = 20
_REJECTED_ROWS = 50
_REJECTED = ("batch", "table", "partition", "position", "reason", "row")


class PipelineSource:
    """Let it `follow` the query's batches once it runs, and say why it `ended`."""

    def __init__(
        self, pipeline: PipelineDescription, checked: Check, start: ResumePoint, *, budget: float | None
    ) -> None:
        self._pipeline = pipeline
        self._checked = checked
        self._start = start
        self._budget = budget
        self._plans = {view.name: view.explanation.plan for view in checked.views if view.explanation}
        self._batches: Batches | None = None
        self._watched = False
        self.ended = ""

    def follow(self, batches: Batches) -> None:
        """Show these batches from now on."""
        self._batches = batches
        if self._watched:
            batches.figures.watch(True)

    def overview(self) -> Mapping[str, Any]:
        pipeline, checked = self._pipeline, self._checked
        return {
            "title": pipeline.title,
            "kind": "spark",
            "tables": [] if checked.plan is None else tables_overview([checked.plan]),
            "views": [self._view(view.name, view.explanation) for view in checked.views if view.explanation],
            "budget": self._budget,
            "recovery": {"text": str(self._start), "facts": self._start.facts},
        }

    def _view(self, name: str, explanation: Explanation) -> dict[str, Any]:
        pipeline = self._pipeline
        shares = table_shares(explanation.plan, pipeline.cells)
        found = view_overview(
            name,
            explanation.plan,
            explanation.report,
            quarantines=pipeline.on_invalid == "quarantine",
            readable=_is_readable(pipeline.written[name]),
            cells=[{"table": share.table, "copies": f"{share.copies:.3g}"} for share in shares],
        )
        return found if pipeline.alone else {**found, "reads": self._reads(name), "sql": pipeline.maintained[name]}

    def _reads(self, name: str) -> list[str]:
        """The tables and written views that a view reads, through names that are not written too."""
        pipeline = self._pipeline
        shown = {n.lower(): n for n in (*pipeline.written, *(table.name for table in pipeline.tables))}
        texts = {view.name.lower(): view.query for view in pipeline.views}
        found: dict[str, None] = {}
        waiting = [name.lower()]
        for one in waiting:
            for read in sorted(names_of(texts[one], dialect=pipeline.dialect)):
                if read.lower() in shown:
                    found[shown[read.lower()]] = None
                elif read.lower() in texts and read.lower() not in waiting:
                    waiting.append(read.lower())
        return list(found)

    def frame(self) -> Frame:
        batches = self._batches
        if batches is None:
            return Frame(dict.fromkeys(self._pipeline.written, _EMPTY), self.ended)
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
            note=batches.figures.note,
        )
        frames = dict.fromkeys(self._pipeline.written, frame)
        if not self._pipeline.alone:
            frames = {name: _of_view(frame, name, changed) for name, changed in batches.views.items()}
        return Frame({name: self._with_nodes(name, one, batches.figures) for name, one in frames.items()}, self.ended)

    def _with_nodes(self, name: str, frame: ViewFrame, figures: NodeFigures) -> ViewFrame:
        plan = self._plans.get(name)
        if plan is None:
            return frame
        nodes, rates, hot = figures.of_view(name, plan)
        # Names break ties between trees of the same cost, and the stream uses its own names.
        note = frame.note if nodes or frame.note else "without figures: the stream runs another tree of the same cost"
        return replace(frame, nodes=nodes, node_rates=rates, hot_keys=hot, note=note)

    def watch(self, connected: bool) -> None:
        """Spark always reports its batches; cells report details of theirs only while a browser is connected."""
        self._watched = connected
        if self._batches is not None and not self.ended:
            self._batches.figures.watch(connected)

    def rows(self, view: str, *, offset: int, limit: int, search: str) -> Mapping[str, Any]:
        sink = self._pipeline.written[view]
        try:
            table = _sink_table(sink.path or "")
        except (OSError, pa.ArrowException):
            return {"table": None, "more": False, "note": "the table is being rewritten; refresh"}
        if isinstance(table, str):
            return {"table": None, "more": False, "note": table}
        note = ""
        if search:
            table = matching(table, search)
            note = f"{counted(table.num_rows, 'row')} {'matches' if table.num_rows == 1 else 'match'}"
        return {"table": as_table(table.slice(offset, limit)), "more": table.num_rows > offset + limit, "note": note}

    def _rejected(self, query: str) -> TextTable | None:
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
        return TextTable(_REJECTED, [True, False, True, True, False, False], rows)


_EMPTY = ViewFrame(None, 0, 0, 0, 0, 0, 0, deltas=0, status="starting Spark")


def _of_view(frame: ViewFrame, name: str, changed: ViewChange) -> ViewFrame:
    """Return the statistics of one view from those of all."""
    own = [replace(batch, deltas=batch.views[name].deltas) for batch in frame.history if name in batch.views]
    return replace(frame, rows=changed.rows, deltas=changed.deltas, history=own)


def _is_readable(sink: Sink) -> bool:
    return sink.format == "materialized" and "://" not in (sink.path or "")


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
    signed = _with_texts(pa.concat_tables([pq.read_table(f"{path}/{part}") for part in parts]))
    net = signed.group_by(names).aggregate([(weight, "sum")])
    net = net.filter(pc.greater(net[f"{weight}_sum"], 0))
    copies = net[f"{weight}_sum"]
    shown_columns = net.select(names)
    if net.num_rows and pc.max(copies).as_py() > 1:
        shown_columns = shown_columns.append_column("_multiplicity", copies)
    return shown_columns


def _with_texts(table: pa.Table) -> pa.Table:
    """The table with nested columns as the text that is shown of them: Arrow does not group by nested values."""
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else str(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table
