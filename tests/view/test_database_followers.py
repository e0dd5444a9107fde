"""Who follows a database: callbacks, iterators and handles, with writes in between, drops and Ctrl-C."""

from __future__ import annotations

import gc
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest

import crown

COUNT = "CREATE TABLE r (x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM r"


def shown(delta: pa.Table) -> list[tuple[str, int]]:
    return [(row["_change_type"], row["n"]) for row in delta.to_pylist()]


def test_a_callback_that_writes_does_not_change_the_order() -> None:
    db, seen = crown.Database(COUNT), []
    db.on_change("v", lambda _: db.insert("r", [(9,)]) if list(db["v"]) == [(1,)] else None)
    db.on_change("v", lambda delta: seen.append(shown(delta)))
    db.insert("r", [(1,)])
    assert seen == [[("insert", 1)], [("delete", 1), ("insert", 2)]]


def test_whoever_comes_later_gets_no_earlier_batch() -> None:
    db = crown.Database(COUNT)
    followed: list[crown.view.database.subscribers.DeltaIterator] = []
    db.on_change("v", lambda _: followed.append(db.changes("v")) if not followed else None)
    db.insert("r", [(1,)])
    db.insert("r", [(2,)])
    (changes,) = followed
    delta = changes.get(timeout=10)
    assert delta is not None
    assert shown(delta) == [("delete", 1), ("insert", 2)]


def test_a_callback_that_raises_keeps_nothing_from_the_others() -> None:
    db, seen = crown.Database(COUNT), []

    def fail(delta: pa.Table) -> None:
        raise KeyboardInterrupt

    db.on_change("v", fail)
    db.on_change("v", lambda delta: seen.append(shown(delta)))
    with pytest.raises(KeyboardInterrupt):
        db.insert("r", [(1,)])
    assert seen == [[("insert", 1)]]


def test_a_callback_that_was_ended_is_not_called_again() -> None:
    db, seen = crown.Database(COUNT), []
    ends: list[Callable[[], None]] = []
    db.on_change("v", lambda _: ends[0]())  # while the delta for the next one waits
    ends.append(db.on_change("v", lambda delta: seen.append(shown(delta))))
    db.insert("r", [(1,)])
    assert seen == []


def test_a_callback_must_be_a_function() -> None:
    db = crown.Database(COUNT)
    with pytest.raises(crown.CrownError, match="not a function"):
        db.on_change("v", None)  # type: ignore[arg-type]


def test_a_handle_ends_with_its_view() -> None:
    db = crown.Database(COUNT, keep="all")
    db.insert("r", [(1,)])
    handle = db["v"]
    db.execute("DROP VIEW v; CREATE MATERIALIZED VIEW v AS SELECT x, x + 1 AS y FROM r ORDER BY y")
    for read in (lambda: list(handle), lambda: len(handle), lambda: handle.lookup(n=1), lambda: (1,) in handle):
        with pytest.raises(crown.CrownError, match="was dropped"):
            read()
    assert "was dropped" in repr(handle)
    assert list(db["v"]) == [(1, 2)]


def test_names_of_with_are_no_views() -> None:
    db = crown.Database(f"{COUNT}; CREATE MATERIALIZED VIEW w AS WITH v AS (SELECT 5 AS z) SELECT * FROM v")
    db.drop("v")
    assert list(db["w"]) == [(5,)]
    db = crown.Database(f"{COUNT}; CREATE MATERIALIZED VIEW w AS WITH v AS (SELECT n FROM v) SELECT * FROM v")
    with pytest.raises(crown.CrownError, match="w"):
        db.drop("v")


def _note(told: list[int], delta: pa.Table) -> None:
    told.extend(delta["x"].to_pylist())


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler of Ctrl-C, whatever ran before."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_views_and_followers_whole(rng: random.Random) -> None:
    """Interrupts at random times in changes, additions and drops: what is read, told and added later agrees."""
    for round_ in range(20):
        db = crown.Database("CREATE TABLE r (x BIGINT); CREATE MATERIALIZED VIEW w AS SELECT x FROM r", keep="all")
        told: list[int] = []
        db.on_change("w", partial(_note, told))
        timer = threading.Timer(rng.uniform(0, 0.01), signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()  # which may itself be interrupted
            for number in range(1000):
                db.insert("r", [(number,)])
                if number % 20 == 0:
                    db.execute("CREATE MATERIALIZED VIEW z AS SELECT COUNT(*) AS n FROM r")
                    db.drop("z")
                if not timer.is_alive():
                    time.sleep(0.001)  # where the interrupt comes at the latest
        except KeyboardInterrupt:
            pass
        timer.join()
        if "z" in db:
            db.drop("z")
        db.execute("CREATE MATERIALIZED VIEW z AS SELECT COUNT(*) AS n FROM r")
        rows = sorted(x for (x,) in db["w"])
        assert list(db["z"]) == [(len(rows),)], f"round {round_}"
        db.insert("r", [(5000,)])
        assert sorted(told) == [*rows, 5000], f"round {round_}"
        db.replace("r", [(7,)])
        assert (list(db["w"]), list(db["z"])) == ([(7,)], [(1,)]), f"round {round_}"


def test_an_iterator_that_nobody_holds_gathers_nothing() -> None:
    db = crown.Database(COUNT)
    abandoned, held = db.changes("v"), db["v"].changes()
    gone = weakref.ref(abandoned)
    db.insert("r", [(1,)])
    del abandoned
    gc.collect()
    assert gone() is None
    db.insert("r", [(2,)])
    assert [shown(delta) for delta in (held.get(timeout=10), held.get(timeout=10)) if delta is not None] == [
        [("insert", 1)],
        [("delete", 1), ("insert", 2)],
    ]
    held.close()
    held.close()
    assert held.get(timeout=10) is None
    db.insert("r", [(3,)])


def test_an_iterator_in_a_thread_goes_on_until_its_view_is_dropped() -> None:
    db, started = crown.Database(COUNT), threading.Event()
    seen: list[list[tuple[str, int]]] = []

    def follow() -> None:
        changes = db.changes("v")
        started.set()
        seen.extend(shown(delta) for delta in changes)

    thread = threading.Thread(target=follow)
    thread.start()
    started.wait(10)
    gc.collect()
    db.insert("r", [(1,)])
    db.drop("v")
    thread.join(10)
    assert seen == [[("insert", 1)]]


def test_without_deltas_there_is_nothing_to_follow() -> None:
    db = crown.Database(COUNT, deltas=False)
    for follow in (lambda: db.on_change("v", print), lambda: db.changes("v"), lambda: db["v"].changes()):
        with pytest.raises(crown.CrownError, match="no deltas of view v to follow") as caught:
            follow()
        assert caught.value.code == "CROWN-ARGUMENT"
        assert "deltas=False" in str(caught.value)
