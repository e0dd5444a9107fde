"""One view, several users: threads, iterators, streams that are half read, forks, Ctrl-C."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars
import pyarrow as pa
import pytest

import crown

JOIN = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
SCHEMA = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c STRING)"
STRINGS = "CREATE TABLE t (id BIGINT, a STRING, b STRING)"
THREADS = [1, 3]
MOST = 2**63 - 1


def together(*tasks: Callable[[], Any]) -> list[Any]:
    """Run tasks at the same time; the first error is raised."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [run.result() for run in [pool.submit(task) for task in tasks]]


@pytest.mark.parametrize("threads", THREADS)
def test_strings_stay_with_their_rows_when_threads_insert_together(threads: int) -> None:
    view = crown.View("SELECT id, a, b FROM t", STRINGS, threads=threads)

    def work(worker: int) -> None:
        for step in range(60):
            ids = [worker * 1_000_000 + step * 10 + i for i in range(5)]
            view.insert("t", [(i, f"a{i}", f"b{i}") for i in ids])
            assert (ids[0], f"a{ids[0]}", f"b{ids[0]}") in view
            assert (ids[0], f"b{ids[0]}", f"a{ids[0]}") not in view
            view.delete("t", [(i, f"a{i}", f"b{i}") for i in ids[:3]])

    together(*[lambda w=w: work(w) for w in range(4)])
    assert len(view) == 4 * 60 * 2
    assert all(row == (row[0], f"a{row[0]}", f"b{row[0]}") for row in view)


@pytest.mark.parametrize("threads", THREADS)
def test_readers_see_whole_batches_while_another_thread_applies(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    view.insert("s", [(b, str(b)) for b in range(10)])
    done = threading.Event()

    def write() -> None:
        try:
            for a in range(200):
                view.insert("r", [(a, b) for b in range(10)])
                if a % 3 == 0:
                    view.delete("r", [(a, b) for b in range(10)])
        finally:
            done.set()

    def read() -> int:
        reads = 0
        while not done.is_set() or not reads:
            for rows in (list(view), [tuple(row.values()) for row in view.to_arrow().to_pylist()]):
                assert all(count == 10 for count in Counter(a for a, _ in rows).values())
            assert len(view) % 10 == 0 and view.sample(3).num_rows in (0, 3)
            reads += 1
        return reads

    together(write, read, read)


@pytest.mark.parametrize("threads", THREADS)
def test_a_refused_batch_takes_only_itself_back(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    view.insert("s", [(b, str(b)) for b in range(10)])

    def good(worker: int) -> None:
        for step in range(100):
            view.insert("r", [(worker * 1000 + step, b) for b in range(10)])

    def bad() -> None:
        for _ in range(100):
            with pytest.raises(crown.InvalidChange):
                view.apply(
                    {
                        "r": [{"a": -1, "b": b, "_change_type": "insert"} for b in range(10)]
                        + [{"a": -7, "b": 1, "_change_type": "delete"}]
                    }
                )

    together(lambda: good(1), lambda: good(2), bad, bad)
    assert Counter(view) == Counter((w * 1000 + step, str(b)) for w in (1, 2) for step in range(100) for b in range(10))


@pytest.mark.parametrize("threads", THREADS)
def test_data_that_reads_the_view_itself_does_not_wait_for_ever(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    view.insert("s", [(1, "one")])
    view.insert("r", [(1, 1)])

    def rows() -> Iterator[tuple[Any, ...]]:
        for a, _ in view:
            yield a + 10, 1

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            view.insert("r", [(99, 1)])
            return pa.table({"a": [len(view)], "b": [1]}).__arrow_c_stream__()

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(2):
            yield pa.RecordBatch.from_pydict({"a": [len(view)], "b": [1]})

    view.insert("r", rows())
    view.apply({"r": Stream()})
    view.apply({"r": pa.RecordBatchReader.from_batches(pa.schema([("a", "int64"), ("b", "int64")]), batches())})
    assert sorted(a for a, _ in view) == [1, 3, 4, 4, 11, 99]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    "sql", ["SELECT id, UPPER(a) AS a, b FROM t", "SELECT id, a, b FROM t", "SELECT DISTINCT id, a, b FROM t"]
)
def test_an_iterator_shows_the_view_as_it_was_when_it_began(sql: str, threads: int) -> None:
    view = crown.View(sql, STRINGS, threads=threads)
    rows = [(i, f"a{i}", f"b{i}") for i in range(600)]
    view.insert("t", rows)
    before = Counter(view)
    for taken in (0, 1, 255, 256, 257, 599, 600):
        iterator = iter(view)
        shown = [next(iterator) for _ in range(taken)]
        view.delete("t", rows[taken // 2 :])
        view.insert("t", [(-i, f"new{i}", f"other{i}") for i in range(700)])
        view.to_arrow()
        assert ("nothing", "such", "here") not in view
        shown += list(iterator)
        assert Counter(shown) == before
        assert next(iterator, None) is None
        view.delete("t", [(-i, f"new{i}", f"other{i}") for i in range(700)])
        view.insert("t", rows[taken // 2 :])


def test_an_iterator_with_too_many_rows_left_fails_at_the_next_one() -> None:
    view = crown.View("SELECT r.a, s.b AS k FROM r CROSS JOIN s", "CREATE TABLE r (a INT); CREATE TABLE s (b INT)")
    view.apply({"r": [(i,) for i in range(1100)], "s": [(i,) for i in range(1000)]})
    iterator = iter(view)
    next(iterator)
    view.insert("r", [(-1,)])
    for _ in range(2):
        with pytest.raises(crown.InvalidChange) as caught:
            next(iterator)
        assert caught.value.code == "CROWN-ITERATION" and "to_arrow" in str(caught.value)


def test_iterators_that_are_gone_cost_nothing_and_shared_ones_give_each_row_once() -> None:
    view = crown.View("SELECT id, a, b FROM t", STRINGS)
    view.insert("t", [(i, str(i), "x") for i in range(5000)])
    iterator = iter(view)

    def take() -> list[Any]:
        return list(iterator)

    taken = together(take, take, take)
    assert sorted(row[0] for rows in taken for row in rows) == list(range(5000))
    for _ in range(100):
        next(iter(view))
    view.insert("t", [(-1, "y", "y")])


def half_read(view: crown.View) -> Any:
    """A stream of many blocks of which one is read."""
    view.insert("s", [(1, str(i)) for i in range(700)])
    reader = view.apply({"r": [(i, 1) for i in range(700)]}, stream=True)
    return reader, reader.read_next_batch().num_rows


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("use", ["same thread", "another thread"])
def test_a_view_can_be_used_while_a_stream_is_half_read(threads: int, use: str) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    reader, read = half_read(view)

    def others() -> None:
        assert len(view) == 490_000
        assert view.delete("r", [(0, 1)]).num_rows == 700
        assert len(view) == 489_300

    if use == "same thread":
        others()
    else:
        together(others)
    rest = reader.read_all()
    assert read + rest.num_rows == 490_000 and set(rest["_change_type"].unique().to_pylist()) == {"insert"}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("end", ["drop", "close", "with"])
def test_a_stream_that_is_dropped_half_read_applies_its_batch_in_full(threads: int, end: str) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    reader, _ = half_read(view)
    if end == "close":
        reader.close()
    elif end == "with":
        with reader:
            pass
    del reader
    gc.collect()
    assert len(view) == 490_000
    view.delete("r", [(i, 1) for i in range(700)])
    assert len(view) == 0


def overflowing() -> tuple[crown.View, list[Any]]:
    """A batch whose sum is found too large only after many rows of its delta are out."""
    view = crown.View(
        "SELECT r.k, SUM(r.v) AS total FROM r JOIN s ON r.k = s.k GROUP BY r.k",
        "CREATE TABLE r (k BIGINT, v BIGINT); CREATE TABLE s (k BIGINT)",
    )
    view.insert("s", [(k,) for k in range(200_000)])
    return view, [(k, 1) for k in range(199_999)] + [(199_999, MOST), (199_999, MOST)]


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "read_all": lambda reader: reader.read_all(),
    "read_pandas": lambda reader: reader.read_pandas(),
    "iteration": lambda reader: list(reader),
    "read_next_batch": lambda reader: [reader.read_next_batch() for _ in range(10**6)],
    "pyarrow.table": lambda reader: pa.table(reader),
    "from_stream": lambda reader: pa.RecordBatchReader.from_stream(reader).read_all(),
    "polars": lambda reader: polars.DataFrame(reader),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_stream_fails_as_apply_does(consumer: str) -> None:
    view, rows = overflowing()
    with pytest.raises(crown.CrownError) as plain:
        view.apply({"r": rows})
    with pytest.raises(crown.CrownError) as streamed:
        CONSUMERS[consumer](view.apply({"r": rows}, stream=True))
    assert (type(streamed.value), str(streamed.value)) == (type(plain.value), str(plain.value))
    assert len(view) == 0
    view.insert("r", [(5, 5)])
    assert list(view) == [(5, 5)]


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "read_next_batch"])
def test_a_stream_is_read_in_every_way(consumer: str) -> None:
    view = crown.View(JOIN, SCHEMA)
    view.insert("s", [(1, "one")])
    reader = view.apply({"r": [(i, 1) for i in range(10)]}, stream=True)
    assert reader.schema.names == ["a", "c", "_change_type", "_multiplicity"]
    rows = CONSUMERS[consumer](reader)
    assert sum(len(batch) for batch in rows) == 10 if isinstance(rows, list) else len(rows) == 10


@pytest.mark.parametrize("threads", THREADS)
def test_looking_for_rows_leaves_nothing_behind(threads: int) -> None:
    view = crown.View("SELECT id, UPPER(a) AS a, b FROM t", STRINGS, threads=threads)
    view.insert("t", [(1, "x", "y")])

    def strings() -> list[int]:
        stats = view.stats()
        return [part["interner"]["values"] for part in stats.get("engines", {"one": stats}).values()]

    assert (1, "X", "y") in view and view.multiplicity((1, "X", "y")) == 1
    before, size = strings(), view.stats()["bytes"]
    for i in range(2000):
        assert (i, f"{i}" * 20, f"new {i}") not in view
    len(view), list(view), view.sample(3), view.to_arrow()
    assert strings() == before and view.stats()["bytes"] < size + 1000


FORK = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import crown
threads = {threads}
view = crown.View({join!r}, {schema!r}, threads=threads)
view.insert("s", [(i, str(i)) for i in range(100)])
view.insert("r", [(i, i) for i in range(100)])

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except crown.CrownError as error:
            os._exit(7 if error.code == "CROWN-FORKED" else 8)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def use():
    view.insert("r", [(1000 + i, i) for i in range(100)])
    assert len(view) == 200 and len(list(view)) == 200 and view.sample(4).num_rows == 4
    assert view.apply({{"r": [(i, 1) for i in range(100)]}}, stream=True).read_all().num_rows == 100

print(in_child(use))
use()

# A fork while the view is in use: its stream has no reader.
view.insert("s", [(7000, str(i)) for i in range(700)])
reader = view.apply({{"r": [(i, 7000) for i in range(700)]}}, stream=True)
def read():
    reader.read_all()
def drop():
    global reader
    del reader
print(in_child(use) if threads == 1 else 7, in_child(read) if threads == 1 else 7, in_child(drop))
reader.read_all()
print(len(view))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("threads", THREADS)
def test_after_a_fork_the_child_works_or_is_told_but_never_hangs(threads: int) -> None:
    script = FORK.format(threads=threads, join=JOIN, schema=SCHEMA)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["0", "7", "7", "0", str(300 + 490_000)], run.stderr


INTERRUPT = """
import faulthandler, os, random, signal, sys, threading, time
import crown
faulthandler.dump_traceback_later(100, exit=True)
rng = random.Random({seed})
threads = {threads}
view = crown.View(
    "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c" if rng.random() < 0.5 else {join!r},
    {schema!r}, threads=threads, windows={{"r": {{"interval": 10**9, "column": "a"}}}} if rng.random() < 0.3 else None)
view.insert("s", [(b, str(b)) for b in range(20)])
seen = 0
stop = threading.Event()
def interrupt():
    while not stop.is_set():
        time.sleep(rng.uniform(0, 0.004))
        os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)

def whole():
    rows = [row[:2] for row in view]
    groups = {{}}
    for a, c in rows:
        groups.setdefault(a, set()).add(c)
    broken = [a for a, cs in groups.items() if len(cs) != 20]
    assert not broken and len(rows) == 20 * len(groups), broken
    return set(groups)

def attempt(number):
    rows = [(number, b) for b in range(20)]
    how = number % 5
    if how == 0:
        view.insert("r", rows)
    elif how == 1:
        view.apply({{"r": rows}}, per_update=True)
    elif how == 2:
        view.apply({{"r": rows}}, stream=True).read_all()
    elif how == 3:
        view.insert("r", [dict(a=a, b=b) for a, b in rows])
    else:
        view.insert("r", rows)
        view.delete("r", rows)

interrupts, numbers = 0, iter(range(10**9))
begun = time.monotonic()
try:
    thread.start()
    while time.monotonic() - begun < {seconds}:
        try:
            for number in numbers:
                attempt(number)
                if time.monotonic() - begun >= {seconds}:
                    break
        except KeyboardInterrupt:
            interrupts += 1
except KeyboardInterrupt:
    interrupts += 1
while True:
    try:
        stop.set()
        thread.join()
        break
    except KeyboardInterrupt:
        pass
while True:
    try:
        time.sleep(0.01)
        break
    except KeyboardInterrupt:
        pass
groups = whole()
for number in sorted(groups):
    view.delete("r", [(number, b) for b in range(20)])
assert len(view) == 0
view.insert("r", [(1 + max(groups, default=0), b) for b in range(20)])
assert len(view) == 20
print("interrupts", interrupts, "batches", len(groups))
"""


def interrupted(seed: int, threads: int, seconds: float) -> None:
    script = textwrap.dedent(INTERRUPT).format(seed=seed, threads=threads, join=JOIN, schema=SCHEMA, seconds=seconds)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, (seed, threads, run.stdout, run.stderr)
    words = run.stdout.split()
    assert int(words[1]) > 0, "nothing was interrupted"


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ctrl_c_leaves_each_batch_whole_or_out(threads: int, rng: Any) -> None:
    interrupted(rng.randrange(2**32), threads, 1)


@pytest.mark.slow
@pytest.mark.parametrize("round", range(20))
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_ctrl_c_many_times(threads: int, round: int, rng: Any) -> None:
    interrupted(rng.randrange(2**32), threads, 5)
