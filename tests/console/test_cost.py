"""What the console does: nothing without a page, and with one a bounded amount of work, whatever the views do.

Calls are counted, not timed; `python -m benchmarks.console_overhead` measures.
"""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import crown
from crown.console import Observer
from crown.console.pace import Pace

SQL = """
CREATE TABLE r (k INT, x INT);
CREATE TABLE s (k INT, y INT);
CREATE MATERIALIZED VIEW pairs AS SELECT r.x, s.y FROM r JOIN s ON r.k = s.k;
CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(x) AS x FROM r GROUP BY k;
CREATE MATERIALIZED VIEW large AS SELECT * FROM sums WHERE x > 10
"""


class Counted:
    """An engine that counts how often it is measured."""

    def __init__(self, engine: Any) -> None:
        self.calls: Counter[str] = Counter()
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if name not in ("stats", "hot_keys", "rejected", "rows"):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return found(*arguments, **options)

        return call


def counted_view() -> tuple[crown.View, Counted]:
    schema = "CREATE TABLE r (k INT, x INT); CREATE TABLE s (k INT, y INT)"
    view = crown.View("SELECT r.x, s.y FROM r JOIN s ON r.k = s.k", schema)
    engine = Counted(view._engine)
    view._engine = engine  # type: ignore[assignment]
    return view, engine


def counted_database() -> tuple[crown.Database, Counted]:
    db = crown.Database(SQL)
    engine = Counted(db._engine)
    db._engine = engine  # type: ignore[assignment]
    db._refresh()
    return db, engine


def change(target: crown.View | crown.Database, batches: int) -> None:
    for number in range(batches):
        target.insert("r", [(number % 7, number)])


@contextmanager
def page(url: str) -> Iterator[Iterator[bytes]]:
    """The frames that a page gets, from the second one on."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=30)
    connection.request("GET", f"/events?{parts.query}")
    frames = (line for line in connection.getresponse() if line.startswith(b"data: "))
    next(frames)
    yield frames
    connection.close()


@pytest.mark.parametrize("make", [counted_view, counted_database])
def test_without_a_page_batches_cause_no_work(make: Any) -> None:
    target, engine = make()
    with target.console():
        change(target, 100)
    assert engine.calls == {}


@pytest.mark.parametrize("make", [counted_view, counted_database])
def test_with_a_page_the_work_depends_on_the_frames_and_not_on_batches_or_views(make: Any) -> None:
    target, engine = make()
    with target.console() as console, page(console.url) as frames:
        change(target, 300)
        next(frames)
        made = console._hub.pace.times
        assert made < 10
        assert engine.calls["stats"] == made
        assert engine.calls["hot_keys"] == 1
        assert engine.calls["rows"] == engine.calls["rejected"] == 0


def test_observers_leave_with_the_last_page() -> None:
    view, _ = counted_view()
    with view.console() as console:
        with page(console.url):
            assert len(view._observers) == 1
        deadline = time.monotonic() + 30
        while view._observers and time.monotonic() < deadline:
            time.sleep(0.05)
        assert view._observers == []


def test_of_many_deltas_few_are_stored() -> None:
    observer = Observer()
    delta = pa.table({"x": list(range(100)), "_change_type": ["insert"] * 100})
    observer.pace.due = float("inf")
    for _ in range(1000):
        observer(delta)
    assert observer.rows == 100_000
    assert observer.pace.times == len(observer.deltas) == 0
    observer.pace.due = 0.0
    observer(delta)
    (stored,) = observer.deltas
    assert stored["count"] == 100 and len(stored["table"].rows) < 10


@pytest.mark.parametrize(("seconds", "pause"), [(0.0, 0.5), (0.004, 0.5), (0.02, 2.0), (3.0, 300.0)])
def test_work_that_takes_long_is_done_less_often(monkeypatch: pytest.MonkeyPatch, seconds: float, pause: float) -> None:
    clock = {"now": 100.0, "worked": 7.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(time, "thread_time", lambda: clock["worked"])
    pace = Pace(0.5, share=0.01)
    with pace.work():
        clock["now"] += 40  # waiting for a lock is not work
        clock["worked"] += seconds
    assert pace.due == pytest.approx(100 + pause)
    assert pace.times == 1 and pace.seconds == pytest.approx(seconds)


def test_a_frame_that_is_not_due_is_not_sent_again() -> None:
    view, engine = counted_view()
    with view.console() as console, page(console.url):
        console._hub.pace.due = float("inf")
        parts = urlsplit(console.url)
        connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=30)
        connection.request("GET", f"/events?{parts.query}")
        answer = connection.getresponse()
        lines = [answer.readline() for _ in range(4)]
        connection.close()
        assert lines[0].startswith(b"data: "), "a second page starts with the latest frame"
        assert lines[2] == b":\n"
        assert engine.calls["stats"] == 1
