"""Many views over one state, through the door that users take."""

from __future__ import annotations

import datetime
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError, InvalidChange, SchemaError, SqlError, StateError
from tests.view.tags import ROWS, SCHEMA, VIEWS, rows


def test_a_batch_changes_all_views_at_once(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    deltas = db.apply(ROWS)
    assert set(deltas) == {"by_tag", "top_tags", "total"}
    assert sorted(rows(deltas["by_tag"])) == [("bags", 2, "insert"), ("joins", 2, "insert"), ("trees", 1, "insert")]
    assert sorted(db["by_tag"]) == [("bags", 2), ("joins", 2), ("trees", 1)]
    assert sorted(db["top_tags"]) == [("bags", 2), ("joins", 2)]
    assert list(db["total"]) == [(5,)]
    deltas = db.delete("message_tag", [(10, 1), (11, 1)])
    assert rows(deltas["by_tag"]) == [("joins", 2, "delete")]
    assert sorted(db["top_tags"]) == [("bags", 2), ("trees", 1)]
    assert db["by_tag"].to_arrow().num_rows == len(db["by_tag"]) == 2


def test_a_refused_batch_changes_no_view(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    db.apply(ROWS)
    before = {name: sorted(db[name]) for name in db}
    with pytest.raises(InvalidChange, match="not in the table"):
        db.apply([("message_tag", [(20, 1)]), ("message_tag", [{"message": 99, "tag": 9, "_change_type": "delete"}])])
    assert {name: sorted(db[name]) for name in db} == before


def test_views_are_named_as_sql_does_and_unknown_ones_refused() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    assert db["BY_TAG"] is db["by_tag"]
    assert "by_tag" in db
    assert list(db) == list(db.views) == ["by_tag", "top_tags", "total"]
    with pytest.raises(CrownError, match=r"there is no view tagged[\s\S]*tagged is a name for a query") as caught:
        db["tagged"]
    assert caught.value.code == "CROWN-VIEW-UNKNOWN"
    with pytest.raises(CrownError, match="Tag is a table"):
        db.drop("Tag")
    with pytest.raises(InvalidChange, match=r"there is no table r[\s\S]*create it first"):
        crown.Database().insert("r", [(1,)])
    with pytest.raises(SchemaError, match="already a table or view"):
        db.execute("CREATE MATERIALIZED VIEW Total AS SELECT COUNT(*) AS n FROM tag")
    with pytest.raises(SqlError, match="no table nowhere"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM nowhere")
    with pytest.raises(SchemaError, match="not supported"):
        db.execute("INSERT INTO tag VALUES (1, 'a')")
    db.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS total AS SELECT COUNT(*) AS n FROM tag")
    assert len(db.views) == 3


def test_a_sample_takes_a_dict() -> None:
    db = crown.Database("CREATE TABLE r (x INT); CREATE MATERIALIZED VIEW v AS SELECT x FROM r")
    with pytest.raises(CrownError, match="where must be a dict of values by column, not 3"):
        db["v"].sample(1, where=3)  # type: ignore[arg-type]


def test_replace_propagates_only_the_difference(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads, keep="all")
    db.apply(ROWS)
    deltas = db.replace("tag", [(1, "joins"), (2, "forests"), (4, "new")])
    assert sorted(rows(deltas["by_tag"])) == [
        ("bags", 2, "delete"),
        ("forests", 1, "insert"),
        ("trees", 1, "delete"),
    ]
    deltas = db.replace("message_tag", pa.table({"message": [10, 10], "tag": [1, 1]}))
    assert list(db["by_tag"]) == [("joins", 2)]
    assert rows(deltas["total"]) == [(5, "delete"), (2, "insert")]
    with pytest.raises(InvalidChange, match="already has a _change_type column"):
        db.replace("message_tag", [{"message": 10, "tag": 1, "_change_type": "delete"}])
    assert list(db["by_tag"]) == [("joins", 2)]


def test_a_database_is_saved_and_loaded(threads: int, tmp_path: Path) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads, keep="all")
    db.apply(ROWS)
    db.save(tmp_path / "db.crown")
    again = crown.Database.load(tmp_path / "db.crown")
    for one in (db, again):
        one.apply({"message_tag": [(20, 2), (21, 2)]})
        one.execute("CREATE MATERIALIZED VIEW names AS SELECT DISTINCT name FROM tagged")
        assert {name: sorted(one[name]) for name in one} == {
            "by_tag": [("bags", 2), ("joins", 2), ("trees", 3)],
            "top_tags": sorted(db["top_tags"]),
            "total": [(7,)],
            "names": [("bags",), ("joins",), ("trees",)],
        }
    assert str(again.explain()) == str(db.explain())


def test_the_first_delta_after_loading_shows_what_none_has_shown(tmp_path: Path) -> None:
    db = crown.Database(SCHEMA + VIEWS)
    db.save(tmp_path / "db.crown")
    again = crown.Database.load(tmp_path / "db.crown")
    assert rows(again.insert("tag", [(1, "a")])["total"]) == [(0, "insert")]


@pytest.mark.parametrize("content", [b"", b"PK", b"not a database"])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db.crown").write_bytes(content)
    with pytest.raises(StateError):
        crown.Database.load(tmp_path / "db.crown")
    view = crown.View("SELECT name FROM tag", schema=SCHEMA)
    view.save(tmp_path / "view.crown")
    with pytest.raises(StateError, match=r"open a view with View\.load"):
        crown.Database.load(tmp_path / "view.crown")


def test_callbacks_and_iterators_get_the_deltas_in_order() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    seen: list[list[tuple[Any, ...]]] = []
    stop = db.on_change("total", lambda delta: seen.append(rows(delta)))
    changes = db.changes("total")
    db.insert("message_tag", [(1, 1)])
    db.insert("tag", [(1, "a")])  # changes by_tag only
    db.insert("message_tag", [(2, 1)])
    assert seen == [[(1, "insert")], [(1, "delete"), (2, "insert")]]
    assert [rows(next(changes)), rows(next(changes))] == seen
    assert changes.get(timeout=0) is None
    stop()
    db.insert("message_tag", [(3, 1)])
    assert len(seen) == 2
    changes.close()
    assert [rows(delta) for delta in changes] == [[(2, "delete"), (3, "insert")]]
    waiting = db.changes("top_tags")
    db.drop("top_tags")
    assert list(waiting) == []


def test_a_callback_that_raises_does_not_stop_the_others() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    seen: list[int] = []

    def fail(delta: pa.Table) -> None:
        raise RuntimeError("of the callback")

    db.on_change("total", fail)
    db.on_change("total", lambda delta: seen.append(delta.num_rows))
    with pytest.raises(RuntimeError, match="of the callback"):
        db.insert("message_tag", [(1, 1)])
    assert seen == [1]
    assert list(db["total"]) == [(1,)]


def test_a_callback_may_use_the_database() -> None:
    db = crown.Database(SCHEMA + VIEWS)

    def tag_it(delta: pa.Table) -> None:
        if db["by_tag"].count() == 0:
            db.insert("tag", [(1, "a")])

    db.on_change("total", tag_it)
    db.insert("message_tag", [(1, 1)])
    assert list(db["by_tag"]) == [("a", 1)]


def test_updates_come_in_pairs(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    db.apply(ROWS)
    delta = db.apply({"message_tag": [(20, 2)], "tag": [(3, "sacks")]}, updates=True)["by_tag"]
    assert rows(delta) == [
        ("bags", 2, "delete"),
        ("trees", 1, "update_preimage"),
        ("trees", 2, "update_postimage"),
        ("sacks", 2, "insert"),
    ]


def test_a_window_belongs_to_the_table() -> None:
    db = crown.Database(
        """CREATE TABLE s (k INT, v INT) WINDOW (ROWS 2);
           CREATE MATERIALIZED VIEW a AS SELECT k, COUNT(*) AS n FROM s GROUP BY k"""
    )
    db.insert("s", [(1, 1), (1, 2), (2, 3)])
    assert sorted(db["a"]) == [(1, 1), (2, 1)]
    db.execute("CREATE MATERIALIZED VIEW b AS SELECT k FROM s")
    assert sorted(db["b"]) == [(1,), (2,)]
    db.insert("s", [(3, 4)])
    assert sorted(db["b"]) == [(2,), (3,)]
    with pytest.raises(SchemaError, match="gives table s a window"):
        db.execute("CREATE MATERIALIZED VIEW c AS SELECT k FROM s WINDOW (ROWS 5)")


def test_more_views_than_a_mask_has_bits(threads: int) -> None:
    db = crown.Database(SCHEMA, threads=threads)
    for number in range(40):
        db.execute(
            f"CREATE MATERIALIZED VIEW v{number} AS SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1 "
            f"WHERE a.since > {number} AND b.since > {number}"
        )
    db.insert("knows", [(n, n + 1, n) for n in range(40)])
    for number in range(40):
        assert len(db[f"v{number}"]) == max(0, 38 - number), number


def test_threads_share_a_database() -> None:
    db = crown.Database(SCHEMA + VIEWS + "CREATE MATERIALIZED VIEW pairs AS SELECT p1, p2 FROM knows;", keep="all")
    errors: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        try:
            for step in range(40):
                db.apply({"knows": [(number, step, 0)], "message_tag": [(number, step)]})
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        try:
            while not done.is_set():
                table = db["pairs"].to_arrow()
                assert table.num_rows == len(Counter(zip(*(c.to_pylist() for c in table.columns), strict=True)))
                db["total"].count()
        except BaseException as error:
            errors.append(error)

    def plan() -> None:
        try:
            for step in range(10):
                db.execute(f"CREATE MATERIALIZED VIEW extra{step} AS SELECT p1, COUNT(*) AS n FROM knows GROUP BY p1")
                db.drop(f"extra{step}")
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    workers = [threading.Thread(target=write, args=(number,)) for number in range(3)] + [threading.Thread(target=plan)]
    for thread in (reader, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    reader.join()
    assert errors == []
    assert len(db["pairs"]) == 120
    assert list(db["total"]) == [(120,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sql": 5}, "sql must be a string"),
        ({"keep": "some"}, "keep must be 'read' or 'all'"),
        ({"threads": 0}, "threads must be a number"),
        ({"on_invalid": "ignore"}, "on_invalid must be"),
        ({"deltas": 1}, "deltas must be True or False"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CrownError, match=message) as caught:
        crown.Database(**arguments)
    assert caught.value.code == "CROWN-ARGUMENT"


def test_the_repr_shows_views_and_rows() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    db.apply(ROWS)
    assert "by_tag: 3 rows" in repr(db)
    assert "3 rows" in repr(db["by_tag"])
    assert "GROUP BY" in repr(db["by_tag"])
    assert "<td>joins</td>" in db["by_tag"]._repr_html_()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP VIEW total, large",
        "DROP VIEW total CASCADE",
        "DROP TABLE r",
        "CREATE MATERIALIZED VIEW v WITH NO DATA AS SELECT k FROM r",
        "CREATE OR REPLACE MATERIALIZED VIEW total AS SELECT k FROM r",
    ],
)
def test_what_a_statement_asks_for_is_done_or_refused(statement: str) -> None:
    db = crown.Database("""
        CREATE TABLE r (k INT, x INT);
        CREATE MATERIALIZED VIEW total AS SELECT k, SUM(x) AS x FROM r GROUP BY k;
        CREATE MATERIALIZED VIEW large AS SELECT k FROM r WHERE x > 10;
    """)
    with pytest.raises(crown.CrownError, match="CROWN-SCHEMA"):
        db.execute(statement)
    assert db.views == ("total", "large")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_view_reads_two_others(threads: int) -> None:
    """The stages of all views that are read are known before new ones get their names."""
    db = crown.Database(
        """
        CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d INT);
        CREATE MATERIALIZED VIEW joined AS SELECT DISTINCT s.b FROM s JOIN t ON s.b = t.c;
        CREATE MATERIALIZED VIEW twice AS SELECT DISTINCT b AS x, b AS y FROM s;
        CREATE MATERIALIZED VIEW both AS SELECT twice.x, joined.b FROM twice LEFT JOIN joined ON twice.y = joined.b;
        """,
        threads=threads,
    )
    deltas = db.apply({"s": [(None, 1), (1, 1), (2, 1)], "t": [(2, 0)]})
    assert Counter(db["both"]) == Counter([(None, None), (1, None), (2, 2)])
    assert deltas["both"].num_rows == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_views_call_python_functions(threads: int, tmp_path: Path) -> None:
    @crown.function
    def twice(x: int) -> int:
        return 2 * x

    db = crown.Database(
        """CREATE TABLE r (k INT, x INT);
           CREATE MATERIALIZED VIEW v AS SELECT k, twice(x) AS y FROM r""",
        keep="all",
        threads=threads,
        functions={"twice": twice},
    )
    db.insert("r", [(1, 5), (2, 7)])
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(twice(x) + y) AS s FROM r JOIN v ON v.k = r.k")
    assert sorted(db["v"]) == [(1, 10), (2, 14)] and list(db["w"]) == [(48,)]
    db.save(tmp_path / "db")
    with pytest.raises(StateError, match="CROWN-FUNCTION-MISSING"):
        crown.Database.load(tmp_path / "db")
    loaded = crown.Database.load(tmp_path / "db", functions={"twice": twice})
    loaded.insert("r", [(3, 1)])
    assert list(loaded["w"]) == [(52,)]


CASTS = """CREATE TABLE sale (id BIGINT PRIMARY KEY, day DATE, price DECIMAL(10, 2), at TIMESTAMP);
    CREATE MATERIALIZED VIEW days AS SELECT day, SUM(price) AS total, COUNT(at) AS n FROM sale GROUP BY day"""


def test_tuples_are_taken_as_a_view_takes_them(threads: int) -> None:
    """The short way for tuples, and the way back to the long one where values must be cast."""
    schema, sql = CASTS.split(";")
    view = crown.View(sql.split(" AS ", 1)[1], schema, threads=threads)
    db = crown.Database(CASTS, threads=threads)
    day = datetime.date(2026, 1, 2)
    for given in (
        [(1, day, Decimal("1.50"), None)],
        [(2, "2026-01-02", 2.25, "2026-01-02 10:00:00"), (3, day, 1, None)],
        [(1, day, Decimal("7.00"), None)],  # an upsert
        [],
    ):
        assert db.insert("sale", given)["days"].equals(view.insert("sale", given))
    assert db.delete("sale", [(2,)])["days"].equals(view.delete("sale", [(2,)]))
    for bad in ([(1, day)], [("x", day, 1, None)], [(None, day, 1, None)]):
        messages = []
        for target in (db, view):
            with pytest.raises(InvalidChange) as caught:
                target.insert("sale", bad)
            messages.append((caught.value.code, caught.value.message))
        assert messages[0] == messages[1]
    assert sorted(db["days"]) == sorted(view)


def test_quarantined_tuples_are_listed() -> None:
    db = crown.Database(SCHEMA + VIEWS, on_invalid="quarantine")
    db.apply(ROWS)
    deltas = db.delete("message_tag", [(10, 1), (99, 9)])
    assert rows(deltas["total"]) == [(5, "delete"), (4, "insert")]
    assert db.rejected()["row"].to_pylist() == ['{"message":99,"tag":9}']
