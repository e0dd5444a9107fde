"""Random use of one view by several threads: apply, read, iterate, sample, save and load, with interruptions.

Each thread owns some keys and keeps a book of what it has inserted; a batch that was interrupted may be in or out, but
only as a whole. At the end the view is what DuckDB says of the books, the deltas add up to it, and every row has the
strings it was inserted with.
"""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import crown
from tests.conftest import SEED

SCHEMA = "CREATE TABLE r (k BIGINT, x STRING, v BIGINT); CREATE TABLE s (k BIGINT, y STRING)"
KEYED = SCHEMA.replace("k BIGINT, x", "k BIGINT PRIMARY KEY, x")
QUERIES = [
    "SELECT r.k, r.x, r.v, s.y FROM r JOIN s ON r.k = s.k",
    "SELECT DISTINCT r.x, s.y FROM r JOIN s ON r.k = s.k",
    "SELECT r.x, COUNT(*) AS n, SUM(r.v) AS total FROM r JOIN s ON r.k = s.k GROUP BY r.x",
    "SELECT UPPER(r.x) AS big, s.y, r.v FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT r.k, r.x FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k) UNION ALL SELECT s.k, s.y FROM s",
    "SELECT r.x, r.v FROM r JOIN s ON r.k = s.k ORDER BY r.v, r.x",
]


class Interrupted(BaseException):
    """What Ctrl-C is to the main thread, for any thread."""


def interrupt(thread: threading.Thread) -> None:
    ident = thread.ident
    if ident is not None and thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Interrupted))


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """A delta or result as a signed multiset."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        sign = -1 if row.pop("_change_type", "insert") == "delete" else 1
        row.pop("_update", None)
        rows[tuple(row.values())[: len(row) - ("_multiplicity" in row)]] += sign * row.get("_multiplicity", 1)
    return rows


class User:
    """A thread with keys of its own. `book` has its rows; `doubt` the batch whose fate an interruption has hidden."""

    def __init__(self, number: int, view: crown.View, rng: random.Random, folder: Path) -> None:
        self.number, self.view, self.rng, self.folder = number, view, rng, folder
        self.book: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": []}
        self.doubt: tuple[str, str, list[tuple[Any, ...]], list[tuple[Any, ...]]] | None = None
        self.next_key = number * 1_000_000
        self.deltas: Counter[tuple[Any, ...]] = Counter()

    def settle(self, applied: bool) -> None:
        """Note what became of the last batch. May be interrupted and repeated."""
        assert self.doubt is not None
        word, table, rows, before = self.doubt
        if applied:
            gone = set(rows) if word == "delete" else set()
            self.book[table] = [row for row in before if row not in gone] + (rows if word == "insert" else [])
        else:
            self.book[table] = before
        self.doubt = None

    def change(self) -> None:
        rng, view = self.rng, self.view
        table = rng.choice("rs")
        if self.book[table] and rng.random() < 0.4:
            word, rows = "delete", rng.sample(self.book[table], rng.randint(1, min(4, len(self.book[table]))))
        else:
            word, rows = "insert", []
            for _ in range(rng.randint(1, 5)):
                self.next_key += 1
                rows.append(self.row(table, self.next_key))
            rows = list(dict.fromkeys(rows))
        self.doubt = (word, table, rows, list(self.book[table]))
        way = rng.randrange(5)
        if way == 0:
            delta = view.insert(table, rows) if word == "insert" else view.delete(table, rows)
        elif way == 1:
            delta = getattr(view, word)(table, [dict(zip(self.columns(table), row, strict=True)) for row in rows])
        else:
            columns = zip(*rows, strict=True)
            data = dict(zip(self.columns(table), map(list, columns), strict=True)) | {
                "_change_type": [word] * len(rows)
            }
            delta = view.apply({table: pa.table(data)}, per_update=way == 2, stream=way == 3)
            delta = delta.read_all() if way == 3 else delta
        self.deltas.update(rows_of(delta))
        self.settle(applied=True)

    def row(self, table: str, key: int) -> tuple[Any, ...]:
        """A row that is not there yet. Its strings tell its key; keys meet those of the same thread only."""
        if table == "r":
            return key, f"x{key}", key % 7
        alone = sorted({row[0] for row in self.book["r"]} - {row[0] for row in self.book["s"]})
        key = self.rng.choice(alone) if alone else key
        return key, f"y{key}"

    @staticmethod
    def columns(table: str) -> tuple[str, ...]:
        return ("k", "x", "v") if table == "r" else ("k", "y")

    def refused(self) -> None:
        """A batch whose last change does not fit: it must leave no trace."""
        good = self.row("r", -self.number - 1)
        absent = {"k": -99, "x": "nobody", "v": 1, "_change_type": "delete"}
        rows = [dict(zip(("k", "x", "v"), good, strict=True)) | {"_change_type": "insert"}, absent]
        try:
            self.view.apply({"r": rows}, per_update=self.rng.random() < 0.5)
        except crown.InvalidChange:
            return
        raise AssertionError("a deletion of nothing was taken")

    def read(self) -> None:
        view, rng = self.view, self.rng
        way = rng.randrange(6)
        if way == 0:
            check_strings(list(view))
        elif way == 1:
            iterator = iter(view)
            check_strings([row for row, _ in zip(iterator, range(rng.randint(0, 300)), strict=False)])
        elif way == 2:
            check_strings([tuple(row.values()) for row in view.sample(rng.randint(0, 9)).to_pylist()])
        elif way == 3:
            check_strings([tuple(row.values()) for row in view.to_arrow().to_pylist()])
        elif way == 4:
            assert (f"x{rng.random()}",) * len(view.schema) not in view
        else:
            len(view), view.stats()

    def save(self) -> None:
        path = self.folder / f"view-{self.number}"
        self.view.save(path)
        loaded = crown.View.load(path)
        check_strings(list(loaded))
        assert len(loaded) == len(list(loaded))

    def work(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            draw = self.rng.random()
            if draw < 0.55:
                self.change()
            elif draw < 0.65:
                self.refused()
            elif draw < 0.97:
                self.read()
            else:
                self.save()


def check_strings(rows: list[tuple[Any, ...]]) -> None:
    """All strings of a row were inserted with the same key."""
    for row in rows:
        keys = {value.lower()[1:] for value in row if isinstance(value, str)}
        assert len(keys) <= 1, row


def judged(sql: str, books: list[User]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA.replace("STRING", "VARCHAR"))
        for table in "rs":
            for user in books:
                if user.book[table]:
                    marks = ", ".join("?" * len(user.book[table][0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", user.book[table])
        return Counter(tuple(row) for row in connection.execute(sql).fetchall())


def clear_doubt(user: User) -> None:
    """Find out whether an interrupted batch is in, and note it.

    Deleting and inserting the same rows changes nothing, and is refused unless all of them are there.
    """
    if user.doubt is None:
        return
    word, table, rows, _ = user.doubt
    named = [dict(zip(user.columns(table), row, strict=True)) for row in rows]
    changes = [row | {"_change_type": change} for change in ("delete", "insert") for row in named]
    try:
        user.view.apply({table: changes})
        there = True
    except crown.InvalidChange:
        there = False
    user.settle(applied=there == (word == "insert"))


def run_case(seed: str, seconds: float, folder: Path) -> None:
    rng = random.Random(seed)
    sql, keyed, threads = rng.choice(QUERIES), rng.random() < 0.3, rng.randint(1, 4)
    view = crown.View(sql, KEYED if keyed else SCHEMA, threads=threads)
    interrupts = rng.random() < 0.5
    users = [User(n, view, random.Random(f"{seed}:{n}"), folder) for n in range(1, rng.randint(3, 5))]
    about = f"seed {seed!r}: {sql}; keyed={keyed}, threads={threads}, users={len(users)}, interrupts={interrupts}"
    try:
        warm_up(folder)
        play(users, rng, seconds, interrupts)
        for user in users:
            clear_doubt(user)
        expected = judged(sql, users)
        assert Counter(view) == expected and len(view) == sum(expected.values())
        if not interrupts:
            deltas: Counter[tuple[Any, ...]] = Counter()
            for user in users:
                for row, count in user.deltas.items():
                    deltas[row] += count
            assert {row: n for row, n in deltas.items() if n} == dict(expected)
    except BaseException as error:
        error.add_note(about)
        raise


def warm_up(folder: Path) -> None:
    """Import all that will be needed: an import that is broken off leaves Python's own lock of it taken for ever."""
    import pandas  # noqa: F401

    user = User(9, crown.View(QUERIES[0], SCHEMA, threads=2), random.Random(0), folder)
    for _ in range(50):
        user.change()
        user.refused()
        user.read()
    user.save()


def play(users: list[User], rng: random.Random, seconds: float, interrupts: bool) -> None:
    """All users at once. An interrupted one finds out what became of its batch, and goes on."""
    end = time.monotonic() + seconds

    def one(user: User) -> None:
        while time.monotonic() < end:
            try:
                clear_doubt(user)
                user.work(end - time.monotonic())
            except Interrupted:
                continue

    failures: list[BaseException] = []

    def caught(user: User) -> None:
        for _ in range(100):
            try:
                one(user)
                return
            except Interrupted:
                continue
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=caught, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    while interrupts and time.monotonic() < end - 0.05:
        time.sleep(rng.uniform(0.001, 0.03))
        interrupt(rng.choice(threads))
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("case", range(6))
def test_threads_share_a_view(case: int, tmp_path: Path) -> None:
    run_case(f"{SEED}:{case}", 1, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("case", range(200))
def test_threads_share_a_view_for_long(case: int, tmp_path: Path) -> None:
    run_case(f"{SEED}:slow:{case}", 5, tmp_path)
