"""Views that are added while other threads read and change the database."""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError
from tests.support.judge import Change, Judge, multiset

TABLES = """CREATE TABLE knows (p1 BIGINT, p2 BIGINT); CREATE TABLE person (id BIGINT PRIMARY KEY, name STRING);
    CREATE TABLE visit (person BIGINT, place STRING) WINDOW (ROWS 300)"""
PEOPLE = "SELECT name FROM person"
PAIRS = "SELECT p1, p2 FROM knows"
NEW = {
    "a join with strings": """SELECT p.name, COUNT(*) AS n FROM person p JOIN knows a ON a.p1 = p.id
        JOIN knows b ON b.p1 = a.p2 GROUP BY p.name""",
    "computed strings": """SELECT CONCAT(p.name, '-', v.place) AS both FROM person p JOIN visit v ON v.person = p.id
        WHERE UPPER(p.name) <> 'PERSON 3'""",
    "an outer join and a limit": """SELECT p.id, p.name, k.p2 FROM person p LEFT JOIN knows k ON k.p1 = p.id
        ORDER BY p.id DESC, k.p2 LIMIT 40""",
    "a part of it over another view": """SELECT c.name, v.n FROM people c
        JOIN (SELECT person, COUNT(*) AS n FROM visit GROUP BY person) v ON CONCAT('person ', v.person) = c.name""",
    "a set": "SELECT name FROM person UNION SELECT place FROM visit",
    "recursion": """WITH RECURSIVE r AS (SELECT p1, p2 FROM knows WHERE p1 < 2
        UNION SELECT r.p1, k.p2 FROM r JOIN knows k ON k.p1 = r.p2) SELECT p1, COUNT(*) AS n FROM r GROUP BY p1""",
    "a subquery": "SELECT p.name FROM person p WHERE NOT EXISTS (SELECT 1 FROM knows k WHERE k.p2 = p.id)",
    "no group": "SELECT COUNT(*) AS n, MAX(place) AS last FROM visit WHERE person > 2",
}
ROWS = 30


def judged(sql: str) -> Judge:
    return Judge(sql.replace("FROM people", f"FROM ({PEOPLE})"), TABLES.replace(" WINDOW (ROWS 300)", ""))


class Pause:
    """A report that waits in the middle of a build until others have done something."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.failed: list[BaseException] = []
        self.done = 0

    def __call__(self, done: int, total: int) -> None:
        if self.done == 0:
            self.done = 1
            thread = threading.Thread(target=self._run)
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "the others wait for the build"
            if self.failed:
                raise self.failed[0]

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failed.append(error)


def opened() -> crown.Database:
    return crown.Database(
        f"{TABLES}; CREATE MATERIALIZED VIEW people AS {PEOPLE}; CREATE MATERIALIZED VIEW pairs AS {PAIRS}", keep="all"
    )


@pytest.fixture
def db() -> crown.Database:
    return opened()


def first() -> list[Change]:
    people = [Change("person", (number, f"person {number % 20}"), 1) for number in range(ROWS)]
    knows = [Change("knows", (number % 7, number % ROWS), 1) for number in range(3 * ROWS)]
    visits = [Change("visit", (number % ROWS, f"place {number % 5}"), 1) for number in range(2 * ROWS)]
    return [*people, *knows, *visits]


def meanwhile() -> Iterator[list[Change]]:
    """Batches with values that are new, values that go, and values that go and come back."""

    def plus(table: str, *row: object) -> Change:
        return Change(table, row, 1)

    def minus(table: str, *row: object) -> Change:
        return Change(table, row, -1)

    yield [plus("person", 100, "new"), plus("knows", 100, 1), plus("visit", 100, "place 100")]
    yield [minus("person", 0, "person 0"), minus("knows", 0, 0)]
    yield [minus("person", 100, "new"), plus("person", 101, "newer"), plus("visit", 2, "new")]
    yield [plus("person", 0, "person 0"), plus("knows", 5, 101), plus("knows", 101, 5)]


def undone(batch: list[Change]) -> list[Change]:
    return [Change(change.table, change.row, -change.weight) for change in reversed(batch)]


def apply(db: crown.Database, judges: list[Judge], batch: list[Change]) -> None:
    for change in batch:
        (db.insert if change.weight > 0 else db.delete)(change.table, [change.row])
    for judge in judges:
        judge.apply(batch)


@pytest.mark.parametrize("name", NEW)
def test_others_read_and_write_while_a_view_is_built(db: crown.Database, name: str, tmp_path: Path) -> None:
    new, people = judged(NEW[name]), judged(PEOPLE)
    apply(db, [new, people], first())

    def others() -> None:
        before = db["people"].count()
        assert "added" not in db
        for batch in meanwhile():
            apply(db, [new, people], batch)
            people.check_result(db["people"].to_arrow())
            db.stats()
            db.explain()
            db.save(tmp_path / "during.crown")
        assert db["people"].count() != before

    pause = Pause(others)
    db.execute(f"CREATE MATERIALIZED VIEW added AS {NEW[name]}", progress=pause)
    assert pause.done
    new.check_result(db["added"].to_arrow())
    assert db["added"].count() == len(new.rows())
    for batch in reversed(list(meanwhile())):
        apply(db, [new, people], undone(batch))
        new.check_result(db["added"].to_arrow())
        people.check_result(db["people"].to_arrow())
    during = crown.Database.load(tmp_path / "during.crown")
    assert during.views == ("people", "pairs")
    db.save(tmp_path / "after.crown")
    after = crown.Database.load(tmp_path / "after.crown")
    new.check_result(after["added"].to_arrow())
    db.drop("added")
    # No value is left behind. (A window keeps those of deleted rows until their time comes.)
    other = opened()
    for batch in (first(), *meanwhile(), *map(undone, reversed(list(meanwhile())))):
        apply(other, [], batch)
    assert db.stats()["interner"]["values"] == other.stats()["interner"]["values"]


def test_a_view_that_fails_on_what_came_meanwhile_is_not_added(db: crown.Database) -> None:
    apply(db, [], first())
    before = db.stats()["bytes"]
    pause = Pause(lambda: db.insert("knows", [(3, 0), (0, -5)]))
    with pytest.raises(CrownError) as caught:
        db.execute("CREATE MATERIALIZED VIEW added AS SELECT p1, 7 / (p2 + 5) AS x FROM knows", progress=pause)
    assert caught.value.code == "CROWN-DIVIDE-BY-ZERO"
    assert db.views == ("people", "pairs")
    assert (3, 0) in db["pairs"]
    assert (0, -5) in db["pairs"]
    db.delete("knows", [(0, -5)])
    db.execute("CREATE MATERIALIZED VIEW added AS SELECT p1, 7 / (p2 + 5) AS x FROM knows")
    assert db["added"].count() == db["pairs"].count()
    db.drop("added")
    assert db.stats()["bytes"] < 1.5 * before


def test_a_refused_batch_is_not_taken_into_the_new_view(db: crown.Database) -> None:
    apply(db, [], first())

    def others() -> None:
        with pytest.raises(CrownError):
            db.apply({"knows": [(77, 77)], "person": [(1, 2, 3)]})
        with pytest.raises(CrownError):
            db.delete("knows", [(1000, 1000)])
        db.insert("knows", [(78, 78)])

    db.execute("CREATE MATERIALIZED VIEW added AS SELECT p1 FROM knows WHERE p1 > 70", progress=Pause(others))
    assert list(db["added"]) == [(78,)]


def test_a_view_is_refused_if_rows_that_it_needs_came_meanwhile_and_are_not_kept() -> None:
    db = crown.Database(
        f"""{TABLES}; CREATE MATERIALIZED VIEW people AS {PEOPLE};
        CREATE MATERIALIZED VIEW places AS SELECT person, place FROM visit;
        CREATE MATERIALIZED VIEW few AS SELECT p1 FROM knows WHERE p1 > 5"""
    )
    apply(db, [], [change for change in first() if change.table != "knows"])
    # The count is built while others go on, and the join in the end: it reads another view, too.
    sql = """CREATE MATERIALIZED VIEW added AS SELECT c.name, v.n FROM people c
        JOIN knows k ON CONCAT('person ', k.p1) = c.name
        JOIN (SELECT person, COUNT(*) AS n FROM visit WHERE place <> 'x' GROUP BY person) v ON v.person = k.p1"""
    with pytest.raises(CrownError) as caught:
        db.execute(sql, progress=Pause(lambda: db.insert("knows", [(1, 1), (7, 1)])))
    assert caught.value.code == "CROWN-ROWS-NOT-KEPT"
    assert db.views == ("people", "places", "few")
    assert list(db["few"]) == [(7,)]
    values = db.stats()["interner"]["values"]
    db.insert("person", [(1, "another")])
    db.insert("person", [(1, "person 1")])
    assert db.stats()["interner"]["values"] == values  # (nothing waits for a build any more)


def test_statements_wait_for_each_other(db: crown.Database) -> None:
    apply(db, [], first())
    other = threading.Thread(target=db.execute, args=("CREATE MATERIALIZED VIEW b AS SELECT p2 FROM knows",))

    def start(done: int, total: int) -> None:
        if not other.is_alive():
            other.start()
            assert "b" not in db

    db.execute("CREATE MATERIALIZED VIEW a AS SELECT p1 FROM knows WHERE p1 > 1", progress=start)
    other.join(60)
    assert db.views == ("people", "pairs", "a", "b")
    assert sorted(db["b"]) == sorted((p2,) for _, p2 in db["pairs"])


def test_threads_read_and_write_during_a_long_build() -> None:
    """Nobody pauses here: several views over many rows, with writers and readers all the time."""
    db = crown.Database(f"{TABLES}; CREATE MATERIALIZED VIEW pairs AS {PAIRS}", keep="all")
    count = 100_000
    db.insert("knows", pa.table({"p1": [n % 1000 for n in range(count)], "p2": [n % 997 for n in range(count)]}))
    db.insert("person", [(number, f"person {number}") for number in range(1000)])
    failed: list[BaseException] = []
    stop = threading.Event()
    steps = [0, 0]

    def write(number: int) -> None:
        while not stop.is_set():
            step = steps[number]
            rows = [(number, 10 * step + place) for place in range(10)]
            db.insert("knows", rows)
            old, more = 2 * (step % 250) + number, 2 * (1000 + step % 50) + number
            db.insert("person", [(more, f"more {step}")])
            if step % 3 == 2:
                db.delete("knows", rows[:5])
                db.delete("person", [(old,), (more,)])
                db.insert("person", [(old, f"back {step % 7}")])
            steps[number] += 1

    def read() -> None:
        while not stop.is_set():
            assert db["pairs"].count() >= count
            for name in db.views:
                with contextlib.suppress(CrownError):  # dropped by now
                    db[name].head(3)

    def guarded(work: Callable[..., object], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(write, number)) for number in range(2)]
    threads.append(threading.Thread(target=guarded, args=(read,)))
    for thread in threads:
        thread.start()
    subquery = "a subquery"
    added = {name: NEW[name] for name in ("a join with strings", "recursion", subquery)}
    added["over it"] = "SELECT COUNT(*) AS n, MAX(name) AS last FROM `a join with strings` WHERE n > 2"
    try:
        for name, query in added.items():
            db.execute(f"CREATE MATERIALIZED VIEW `{name}` AS {query}", progress=False)
        db.drop(subquery)
        db.execute(f"CREATE MATERIALIZED VIEW `{subquery}` AS {NEW[subquery]}", progress=False)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed
    assert all(steps)
    db.execute("CREATE MATERIALIZED VIEW persons AS SELECT id, name FROM person")
    with duckdb.connect() as connection:
        connection.register("knows", db["pairs"].to_arrow())
        connection.register("person", db["persons"].to_arrow())
        for name, query in added.items():
            connection.sql(f'CREATE VIEW "{name}" AS {query.replace("`", chr(34))}')
            expected = connection.sql(f'FROM "{name}"').fetchall()
            assert multiset(db[name]) == multiset(expected), name


def test_time_functions_and_quarantine_go_on_during_a_build() -> None:
    """The clock and a time window move, a Python function is called, and an invalid change is set aside."""

    @crown.function
    def twice(x: int) -> int:
        return 2 * x

    db = crown.Database(
        """CREATE TABLE visit (id BIGINT, at TIMESTAMP) WINDOW (RANGE INTERVAL 1 DAY ON at); CREATE TABLE r (x BIGINT);
        CREATE MATERIALIZED VIEW past AS SELECT id FROM visit WHERE at <= now();
        CREATE MATERIALIZED VIEW every AS SELECT x FROM r""",
        keep="all",
        deltas=False,
        on_invalid="quarantine",
        functions={"twice": twice},
    )
    day, hour = datetime.datetime(2026, 1, 1), datetime.timedelta(hours=1)
    db.advance(day + 10 * hour)
    db.insert("visit", [(number, day + number * hour) for number in range(30)])
    db.insert("r", [(number,) for number in range(10)])

    def move() -> None:
        db.advance(day + 20 * hour)
        db.advance("visit", day + 36 * hour)

    def change() -> None:
        db.delete("r", [(77,), (3,)])
        db.insert("r", [(50,)])

    db.execute("CREATE MATERIALIZED VIEW ids AS SELECT id + 1000 AS id FROM visit WHERE id < 25", progress=Pause(move))
    assert sorted(db["past"]) == [(number,) for number in range(12, 21)]
    assert sorted(db["ids"]) == [(number,) for number in range(1012, 1025)]
    db.execute(
        "CREATE MATERIALIZED VIEW large AS SELECT twice(x) AS y FROM r WHERE twice(x) > 4", progress=Pause(change)
    )
    assert sorted(db["large"]) == [(2 * x,) for x in (4, 5, 6, 7, 8, 9, 50)]
    assert db.rejected().num_rows == 1
