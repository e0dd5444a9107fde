"""Views that are added to many rows: how far they are, and Ctrl-C in the middle."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError
from crown.view import progress

SCHEMA = """CREATE TABLE knows (p1 BIGINT, p2 BIGINT); CREATE TABLE person (id BIGINT PRIMARY KEY, name STRING);
    CREATE MATERIALIZED VIEW people AS SELECT name FROM person"""
NEW = """CREATE MATERIALIZED VIEW reach AS SELECT p.name, COUNT(*) AS n FROM person p
    JOIN knows a ON a.p1 = p.id JOIN knows b ON b.p1 = a.p2 GROUP BY p.name"""

# More than two of the blocks in which rows are read.
KNOWS = pa.table({"p1": [number % 500 for number in range(140_000)], "p2": [n % 491 for n in range(140_000)]})


@pytest.fixture(params=[1, 2, 3])
def db(request: pytest.FixtureRequest) -> crown.Database:
    database = crown.Database(SCHEMA, keep="all", threads=int(request.param))
    database.insert("person", [(number, f"person {number}") for number in range(500)])
    database.insert("knows", KNOWS)
    return database


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Reports(list[tuple[int, int]]):
    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))


def facts(db: crown.Database) -> dict[str, Any]:
    stats = db.stats()
    shown = {name: sorted(db[name]) for name in db}
    return {"views": db.views, "shown": shown, "rows": [(t["name"], t["stored_rows"]) for t in stats["tables"]]}


def test_rows_are_reported_until_all_are_read(db: crown.Database) -> None:
    reports = Reports()
    db.execute(NEW, progress=reports)
    assert reports == sorted(reports)
    assert all(0 <= done <= total for done, total in reports)
    assert reports[-1][0] == reports[-1][1] >= 140_500
    assert len(reports) > 3
    assert db["reach"].count() == 500
    db.execute("CREATE MATERIALIZED VIEW more AS SELECT * FROM reach WHERE n > 7", progress=reports)
    assert reports[-1][0] == reports[-1][1]


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize("after", [0, 1, 3])
def test_ctrl_c_in_the_middle_leaves_everything_as_it_was(db: crown.Database, after: int) -> None:
    before, calls = facts(db), Reports()

    def interrupt(done: int, total: int) -> None:
        calls(done, total)
        if len(calls) == after + 1:
            signal.raise_signal(signal.SIGINT)

    stored = db.stats()["bytes"]
    with pytest.raises(KeyboardInterrupt):
        db.execute(NEW, progress=interrupt)
    assert len(calls) == after + 1
    assert facts(db) == before
    assert db.stats()["bytes"] < 1.5 * stored
    db.insert("knows", [(1, 2)])
    db.execute(NEW)
    other = crown.Database(f"{SCHEMA};{NEW}", keep="all")
    other.insert("person", [(number, f"person {number}") for number in range(500)])
    other.insert("knows", KNOWS)
    other.insert("knows", [(1, 2)])
    assert sorted(db["reach"]) == sorted(other["reach"])


def test_what_a_report_raises_ends_the_statement_alone(db: crown.Database) -> None:
    before = facts(db)

    def fail(done: int, total: int) -> None:
        raise RuntimeError(f"no at {done}")

    with pytest.raises(RuntimeError, match="no at"):
        db.execute(NEW, progress=fail)
    with pytest.raises(CrownError) as caught:
        db.execute(NEW, progress=lambda done, total: db.insert("knows", [(1, 1)]))
    assert caught.value.code == "CROWN-FUNCTION-REENTRANT"
    assert facts(db) == before
    db.execute(NEW)
    assert db["reach"].count() == 500


def test_a_report_must_be_a_function() -> None:
    db = crown.Database(SCHEMA)
    with pytest.raises(CrownError, match="progress must be a function, True or False, not 3") as caught:
        db.execute(NEW, progress=3)  # type: ignore[arg-type]
    assert caught.value.code == "CROWN-ARGUMENT"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "asked", "seen"),
    [
        (Terminal(), None, True),
        (Terminal(), False, False),
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
    ],
)
def test_a_bar_is_shown_where_somebody_looks(
    stream: io.StringIO, asked: bool | None, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = crown.Database(SCHEMA, keep="all")
    db.insert("knows", pa.table({"p1": list(range(70_000)), "p2": [1] * 70_000}))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_REDRAWN", 0.0)
    db.execute("CREATE MATERIALIZED VIEW pairs AS SELECT p1 FROM knows WHERE p2 = 1", progress=asked)
    text = stream.getvalue()
    assert ("70,000 of 70,000 rows" in text) == seen
    assert ("pairs [" in text) == seen
    # The line is gone in the end.
    assert not text or text.rsplit("\r", 2)[1].strip() == ""


def test_short_work_has_no_bar() -> None:
    stream, now = Terminal(), 0.0
    bar = progress.Bar("v", stream, clock=lambda: now)
    bar.show(1, 10)
    bar.clear()
    assert stream.getvalue() == ""
    now = 1.5
    bar.show(5, 10)
    assert "50%  5 of 10 rows" in stream.getvalue()
    now = 1.55
    bar.show(6, 10)  # too soon after the last
    assert "6 of 10" not in stream.getvalue()
