"""Views of this process as a data source of the console."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from crown.changes import CHANGE_TYPE, MULTIPLICITY
from crown.console.nodes import hot_keys, node_frames
from crown.console.overview import tables_overview, view_overview
from crown.console.pace import SHARE, Pace
from crown.console.source import CellFrame, Frame, HotKey, NodeFrame, TextTable, ViewFrame, shown
from crown.errors import CrownError
from crown.ir.plan import Plan
from crown.plan.explain.report import Report
from crown.wording import counted

_DELTAS = 40  # that are kept
_DELTA_ROWS = 8  # of each
_DELTA_SECONDS = 0.2  # between two that are kept, of all views
_HOT_SECONDS = 5.0
_SEARCHED = 100_000
_REJECTED = 50
_HOT_KEYS = 3  # of each node

Measured: TypeAlias = Mapping[str, Any]
Hot: TypeAlias = list[list[dict[str, Any]]]  # by cell


class ViewFacts(Protocol):
    """What the console needs of a view."""

    @property
    def plan(self) -> Plan: ...
    @property
    def report(self) -> Report | None: ...
    @property
    def quarantines(self) -> bool: ...
    @property
    def more(self) -> Mapping[str, Any]:
        """Facts for the overview beyond the plan: `reads`, if these are not its tables, and `shared`."""
        ...

    def stats(self, measured: Measured) -> Measured:
        """Return the view's part of the statistics."""
        ...

    def hot_keys(self, measured: Hot) -> Hot:
        """Return the view's part of the hot keys."""
        ...

    def page(self, offset: int, limit: int) -> pa.Table: ...
    def sorted(self) -> pa.Table: ...
    def lookup(self, **values: object) -> pa.Table: ...
    def rejected(self) -> pa.Table: ...
    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with each delta from now on; return a function that ends this."""
        ...


class Observer:
    """Observes each delta of a view, counts its rows, and stores the first rows of a few.

    It is called for every batch, so it does no more than that. `views` observers together store a few deltas per
    second, and take a small share of the time for it.
    """

    def __init__(self, views: int = 1) -> None:
        self.rows = 0
        self.deltas: deque[dict[str, Any]] = deque(maxlen=_DELTAS)
        self.pace = Pace(_DELTA_SECONDS * views, SHARE / views)

    def __call__(self, delta: pa.Table) -> None:
        count = delta.num_rows
        if not count:
            return
        self.rows += count
        if time.monotonic() >= self.pace.due:
            with self.pace.work():
                shown_rows = as_table(delta.slice(0, _DELTA_ROWS))
                self.deltas.appendleft({"time": time.time(), "count": count, "table": shown_rows})


class EmbeddedSource:
    """Views by name. `budget` is what their state may take together, in bytes.

    `stats` and `hot_keys` measure all views at once, because they may share an engine.
    """

    def __init__(
        self,
        views: Mapping[str, ViewFacts],
        *,
        stats: Callable[[], Measured],
        hot_keys: Callable[[int], Hot],
        title: str,
        budget: float | None = None,
    ) -> None:
        self._views = dict(views)
        self._stats = stats
        self._measure_hot_keys = hot_keys
        self._title = title
        self._budget = budget
        self.observers: dict[str, Observer] = {}
        self._stops: list[Callable[[], None]] = []
        self._hot: dict[str, list[HotKey]] = {}
        self._hot_since = 0.0
        self._lock = threading.Lock()

    def overview(self) -> Mapping[str, Any]:
        views = [
            view_overview(name, view.plan, view.report, quarantines=view.quarantines, **view.more)
            for name, view in self._views.items()
        ]
        tables = tables_overview([view.plan for view in self._views.values()])
        return {"title": self._title, "kind": "embedded", "tables": tables, "views": views, "budget": self._budget}

    def frame(self) -> Frame:
        measured = self._stats()
        stats = {name: view.stats(measured) for name, view in self._views.items()}
        nodes = {name: node_frames(found["stages"]) for name, found in stats.items()}
        self._find_hot_keys(nodes)
        return Frame({name: self._view_frame(name, stats[name], nodes[name]) for name in self._views})

    def watch(self, connected: bool) -> None:
        with self._lock:
            for stop in self._stops:
                stop()
            self.observers = {name: Observer(len(self._views)) for name in self._views} if connected else {}
            self._stops = [self._views[name].observe(observer) for name, observer in self.observers.items()]

    def rows(self, view: str, *, offset: int, limit: int, search: str) -> Mapping[str, Any]:
        facts, plan = self._views[view], self._views[view].plan
        try:
            if search:
                return _found(facts, offset, limit, search)
            ordered = plan.order and (self._count(facts) or _SEARCHED + 1) <= _SEARCHED
            table = facts.sorted().slice(offset, limit + 1) if ordered else facts.page(offset, limit + 1)
        except CrownError as error:  # a result that is not defined yet, such as 0/0 over empty tables
            return {"table": None, "more": False, "note": str(error)}
        note = "Too large to be sorted here: not in the query's order." if plan.order and not ordered else ""
        return {"table": as_table(table.slice(0, limit)), "more": table.num_rows > limit, "note": note}

    def _count(self, facts: ViewFacts) -> int | None:
        rows: int | None = facts.stats(self._stats())["result_rows"]
        return rows

    def _view_frame(self, name: str, stats: Measured, nodes: Mapping[str, NodeFrame]) -> ViewFrame:
        facts = self._views[name]
        observer = self.observers.get(name)
        rejects = int(stats["rejects"])
        return ViewFrame(
            rows=stats["result_rows"],
            bytes=stats["bytes"],
            batches=stats["batches"],
            changes=stats["changes"],
            updates=stats["updates"],
            counter_changes=stats["counter_changes"],
            rejects=rejects,
            deltas=None if observer is None else observer.rows,
            nodes=nodes,
            hot_keys=self._hot.get(name, ()),
            cells=_cells(stats),
            recent=[] if observer is None else list(observer.deltas),
            rejected=as_table(facts.rejected().slice(0, _REJECTED)) if rejects else None,
        )

    def _find_hot_keys(self, nodes: Mapping[str, Mapping[str, NodeFrame]]) -> None:
        """Find them from time to time, and compare them with the nodes of that time."""
        now = time.monotonic()
        if not self._hot or now - self._hot_since > _HOT_SECONDS:
            found, self._hot_since = self._measure_hot_keys(_HOT_KEYS), now
            views = self._views.items()
            self._hot = {name: hot_keys(view.hot_keys(found), view.plan, nodes[name]) for name, view in views}


def _cells(stats: Mapping[str, Any]) -> list[CellFrame]:
    engines: Mapping[str, Any] = stats.get("engines", {})
    return [
        CellFrame(name, engine["updates"], sum(stage["rows"] for stage in engine["stages"]), engine["bytes"])
        for name, engine in engines.items()
        if name.startswith("cell-")
    ]


def _found(facts: ViewFacts, offset: int, limit: int, search: str) -> Mapping[str, Any]:
    matches = _looked_up(facts, search)
    if matches is not None:
        note = f"{counted(matches.num_rows, 'row')} of the whole view"
    else:
        table = facts.page(0, _SEARCHED)
        matches = matching(table, search)
        note = f"{matches.num_rows:,} of {table.num_rows:,} rows match"
        if table.num_rows == _SEARCHED:
            note += "; the rows after these were not searched: look up a key by column = value"
    return {
        "table": as_table(matches.slice(offset, limit)),
        "more": matches.num_rows > offset + limit,
        "note": note,
    }


def _looked_up(facts: ViewFacts, search: str) -> pa.Table | None:
    """Return the rows that match `column = value`; None if the text does not have this form."""
    name, equals, text = (part.strip() for part in search.partition("="))
    schema = facts.page(0, 1).schema
    if not equals or schema.names.count(name) != 1:
        return None
    try:
        return facts.lookup(**{name: pa.scalar(text.strip("'\"")).cast(schema.field(name).type).as_py()})
    except pa.ArrowException:  # not a value of the column's type
        return None


def matching(table: pa.Table, search: str) -> pa.Table:
    """Return the rows in which a column, as text, contains what is searched for; exact matches first."""
    wanted = search.strip().lower()
    contains, exact = pa.array([False] * table.num_rows), pa.array([False] * table.num_rows)
    for name in table.column_names:
        if name == MULTIPLICITY:
            continue
        text = pc.utf8_lower(_text(table[name]))
        contains = pc.or_(contains, pc.fill_null(pc.match_substring(text, wanted), False))
        exact = pc.or_(exact, pc.fill_null(pc.equal(text, wanted), False))
    return pa.concat_tables([table.filter(exact), table.filter(pc.and_not(contains, exact))])


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:  # binary that is not text
        return pa.chunked_array([pa.array([shown(value) for value in column.to_pylist()], pa.string())])


def as_table(table: pa.Table) -> TextTable:
    """Return Arrow data as text; multiplicities and words of change keep their columns."""
    columns = [column.to_pylist() for column in table.columns]
    numeric = [
        pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type) for f in table.schema
    ]
    rows = [[shown(value) for value in row] for row in zip(*columns, strict=True)]
    order = sorted(range(len(columns)), key=lambda place: table.column_names[place] != CHANGE_TYPE)
    return TextTable(
        [table.column_names[place] for place in order],
        [numeric[place] for place in order],
        [[row[place] for place in order] for row in rows],
    )
