"""The data that the console shows: facts about a project with tables and views, provided by its runtime.

A source returns an overview once per page, a frame of figures about once a second, and pages of rows on demand. Frames
hold totals; `Rates` turns the totals of two frames into changes per second.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PAGE_ROWS = 20


@dataclass(frozen=True)
class NodeFrame:
    """A node of a tree: what it holds, and the totals of what it has done."""

    rows: int
    semi_join_rows: int
    keys: int
    bytes: int
    updates: int
    moves: int
    counter_changes: int


@dataclass(frozen=True)
class NodeRates:
    """The recent rates of a node per second; `work` is its share of all changed counters."""

    moves: float
    updates: float
    work: float


@dataclass(frozen=True)
class HotKey:
    """A key that many rows of a node share. `share` is their part of its rows, `average` what a key has on average,
    and `parents` how many rows above a change of the key may reach.
    """

    node: str
    key: str
    rows: int
    share: float
    average: float
    parents: int


@dataclass(frozen=True)
class CellFrame:
    """One engine of several. Totals, or on Spark the figures of the last batch."""

    name: str
    updates: int
    rows: int
    bytes: int | None = None
    seconds: float | None = None
    deltas: int | None = None


@dataclass(frozen=True)
class ViewChange:
    """What a batch did to one of several views. `rows` is how many it then has, None if it is unknown."""

    deltas: int
    rows: int | None


@dataclass(frozen=True)
class BatchFrame:
    """One batch of a pipeline; `views` by name, if it has several."""

    number: int
    updates: int
    deltas: int
    seconds: float
    lag: str
    bytes: int
    rejected: int
    effort: float
    time: str = ""
    views: Mapping[str, ViewChange] = field(default_factory=dict)


@dataclass(frozen=True)
class TextTable:
    """Rows as text, ready to be shown."""

    columns: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[str | None]]


@dataclass(frozen=True)
class ViewFrame:
    """A view at one moment. `rows` is None where counting them takes long."""

    rows: int | None
    bytes: int
    batches: int
    changes: int
    updates: int
    counter_changes: int
    rejects: int
    deltas: int | None = None
    nodes: Mapping[str, NodeFrame] = field(default_factory=dict)
    hot_keys: Sequence[HotKey] = ()
    cells: Sequence[CellFrame] = ()
    recent: Sequence[Mapping[str, Any]] = ()  # the last deltas, newest first
    rejected: TextTable | None = None
    history: Sequence[BatchFrame] = ()  # of a pipeline, oldest first
    status: str = ""
    effort: float | None = None  # counter changes per update, where only the quotient is known
    node_rates: Mapping[str, NodeRates] | None = None  # where frames say less than the source knows
    note: str = ""  # what to know about the figures of the nodes


@dataclass(frozen=True)
class Frame:
    """All views at one moment; `ended` says why there will be no more."""

    views: Mapping[str, ViewFrame]
    ended: str = ""


class ConsoleSource(Protocol):
    """Facts about a project."""

    def overview(self) -> Mapping[str, Any]:
        """Return what doesn't change: `title`, `kind`, `tables`, and `views` as `overview.view_overview` makes them."""
        ...

    def frame(self) -> Frame:
        """Return the figures of now. Called about once a second while a browser is connected."""
        ...

    def rows(self, view: str, *, offset: int, limit: int, search: str) -> Mapping[str, Any]:
        """Return rows of a view: a `table`, `more` and a `note`."""
        ...

    def watch(self, connected: bool) -> None:
        """Start or stop observing: the first browser has connected, or the last one has disconnected."""
        ...


class Rates:
    """What happened between one frame and the next, per second."""

    def __init__(self) -> None:
        self._before: tuple[float, Frame] | None = None

    def between(self, time: float, frame: Frame) -> dict[str, Any]:
        """Return the rates of each view since the last call; empty at the first."""
        before, self._before = self._before, (time, frame)
        if before is None or time <= before[0]:
            return {}
        seconds = time - before[0]
        known = before[1].views
        return {name: _rates(known[name], now, seconds) for name, now in frame.views.items() if name in known}


def _rates(before: ViewFrame, now: ViewFrame, seconds: float) -> dict[str, Any]:
    updates = max(0, now.updates - before.updates)
    effort = (now.counter_changes - before.counter_changes) / updates if updates else None
    deltas = None if now.deltas is None or before.deltas is None else max(0, now.deltas - before.deltas) / seconds
    return {
        "changes": max(0, now.changes - before.changes) / seconds,
        "updates": updates / seconds,
        "batches": max(0, now.batches - before.batches) / seconds,
        "deltas": deltas,
        "effort": effort,
        "nodes": node_rates(before.nodes, now.nodes, seconds) if now.node_rates is None else now.node_rates,
    }


def node_rates(before: Mapping[str, NodeFrame], now: Mapping[str, NodeFrame], seconds: float) -> dict[str, NodeRates]:
    """Return what nodes did between two moments."""
    work = {mark: _since(before.get(mark), node, "counter_changes") for mark, node in now.items()}
    total = sum(work.values())
    return {
        mark: NodeRates(
            moves=_since(before.get(mark), node, "moves") / seconds,
            updates=_since(before.get(mark), node, "updates") / seconds,
            work=work[mark] / total if total else 0.0,
        )
        for mark, node in now.items()
    }


def _since(before: NodeFrame | None, now: NodeFrame, total: str) -> int:
    return 0 if before is None else max(0, getattr(now, total) - getattr(before, total))


def shown(value: Any) -> str | None:
    """Return a value as text.

    >>> shown(None), shown(b"\\x01"), shown(True), shown(1.5)
    (None, '0x01', 'true', '1.5')
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"0x{value[:32].hex()}" + ("…" if len(value) > 32 else "")
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case str() if len(value) > 400:
            return value[:400] + "…"
    return str(value)
