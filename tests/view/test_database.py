"""Many views over one state, through the door that users take."""

from __future__ import annotations

import datetime
import re
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError, InvalidChange, PlanError, SchemaError, SqlError, StateError

SCHEMA = """
    CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
    CREATE TABLE message_tag (message BIGINT, tag BIGINT);
    CREATE TABLE knows (p1 BIGINT, p2 BIGINT, since INT);
"""
VIEWS = """
    CREATE VIEW tagged AS SELECT t.name, m.message FROM tag t JOIN message_tag m ON m.tag = t.id;
    CREATE MATERIALIZED VIEW by_tag AS SELECT name, COUNT(*) AS reach FROM tagged GROUP BY name;
    CREATE MATERIALIZED VIEW top_tags AS SELECT * FROM by_tag ORDER BY reach DESC LIMIT 2;
    CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM message_tag;
"""
ROWS: dict[str, list[tuple[object, ...]]] = {
    "tag": [(1, "joins"), (2, "trees"), (3, "bags")],
    "message_tag": [(10, 1), (11, 1), (12, 2), (13, 3), (14, 3)],
}


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def rows(delta: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in delta.to_pylist()]


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


def test_a_view_may_be_added_to_rows_that_are_there(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads, keep="all")
    db.apply(ROWS)
    db.insert("knows", [(1, 2, 2020), (2, 3, 2021), (3, 4, 2022)])
    db.execute("CREATE MATERIALIZED VIEW hops AS SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1")
    assert sorted(db["hops"]) == [(1, 3), (2, 4)]
    db.execute("CREATE MATERIALIZED VIEW few AS SELECT name FROM by_tag WHERE reach < 2")
    assert list(db["few"]) == [("trees",)]
    deltas = db.apply({"knows": [(4, 5, 2023)], "message_tag": [(15, 2)]})
    assert rows(deltas["hops"]) == [(3, 5, "insert", 1)]
    assert rows(deltas["few"]) == [("trees", "delete", 1)]


def test_rows_that_were_not_kept_are_said_so() -> None:
    db = crown.Database(SCHEMA + "CREATE MATERIALIZED VIEW a AS SELECT p1, COUNT(*) AS n FROM knows GROUP BY p1")
    db.insert("knows", [(1, 2, 2020)])
    with pytest.raises(PlanError, match="not stored with column p2") as caught:
        db.execute("CREATE MATERIALIZED VIEW b AS SELECT p2 FROM knows")
    assert caught.value.code == "CROWN-ROWS-NOT-KEPT"
    assert "can't be added" in str(db.explain("SELECT p2 FROM knows"))
    # Tables that never had a row are free.
    db.execute("CREATE MATERIALIZED VIEW c AS SELECT name FROM tag")
    db.insert("tag", [(1, "a")])
    assert list(db["c"]) == [("a",)]
    # So is what a view before it has.
    db.execute("CREATE MATERIALIZED VIEW d AS SELECT n, COUNT(*) AS m FROM a GROUP BY n")
    assert list(db["d"]) == [(1, 1)]


@pytest.mark.parametrize("change", ["apply", "insert", "replace"])
def test_rows_of_a_table_that_no_view_read_are_not_taken_for_none(threads: int, change: str) -> None:
    db = crown.Database(SCHEMA, threads=threads)
    match change:
        case "apply":
            db.apply({"tag": [(1, "a")]})
        case "insert":
            db.insert("tag", [(1, "a")])
        case "replace":
            db.replace("tag", [(1, "a")])
    with pytest.raises(PlanError, match="not stored at all") as caught:
        db.execute("CREATE MATERIALIZED VIEW c AS SELECT name FROM tag")
    assert caught.value.code == "CROWN-ROWS-NOT-KEPT"


def test_a_view_that_fails_on_the_rows_leaves_all_as_it_was(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads, keep="all")
    db.apply(ROWS)
    db.insert("knows", [(number, 0, number) for number in range(40)])
    before = db.stats()["bytes"]
    with pytest.raises(CrownError) as caught:
        db.execute("CREATE MATERIALIZED VIEW bad AS SELECT p1 DIV p2 AS q FROM knows")
    assert caught.value.code == "CROWN-DIVIDE-BY-ZERO"
    assert "bad" not in db
    db.insert("message_tag", [(16, 2)])
    assert sorted(db["by_tag"]) == [("bags", 2), ("joins", 2), ("trees", 2)]
    assert db.stats()["bytes"] < 2 * before


def test_drop_is_refused_while_a_view_reads_it_and_frees_the_rest(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    db.apply({"tag": [(n, f"name of tag {n}") for n in range(500)], "message_tag": [(n, n % 500) for n in range(3000)]})
    with pytest.raises(SchemaError, match="by_tag is read by top_tags") as caught:
        db.drop("by_tag")
    assert caught.value.code == "CROWN-VIEW-USED"
    full = db.stats()["bytes"]
    db.drop("top_tags")
    db.drop("by_tag")
    assert db.views == ("total",)
    assert db.stats()["bytes"] < full
    assert list(db["total"]) == [(3000,)]
    db.delete("message_tag", [(n, n % 500) for n in range(3000)])
    db.delete("tag", [(n,) for n in range(500)])
    assert db.stats()["bytes"] < full / 3
    if threads == 1:
        assert db.stats()["interner"]["values"] == 0
    with pytest.raises(CrownError, match="there is no view by_tag"):
        db.drop("by_tag")
    db.execute("DROP MATERIALIZED VIEW IF EXISTS by_tag")
    db.execute("DROP VIEW tagged")


def test_drop_is_refused_for_a_name_that_a_view_was_written_with() -> None:
    db = crown.Database(
        """CREATE TABLE r (x INT); CREATE VIEW big AS SELECT x FROM r WHERE x > 5;
        CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM Big"""
    )
    with pytest.raises(SchemaError, match="view big is read by v"):
        db.drop("big")
    db.drop("v")
    db.drop("big")


def test_a_sample_takes_a_dict() -> None:
    db = crown.Database("CREATE TABLE r (x INT); CREATE MATERIALIZED VIEW v AS SELECT x FROM r")
    with pytest.raises(CrownError, match="where must be a dict of values by column, not 3"):
        db["v"].sample(1, where=3)  # type: ignore[arg-type]


def test_a_dropped_view_can_no_longer_be_read() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    view = db["total"]
    db.drop("total")
    with pytest.raises(CrownError) as caught:
        view.count()
    assert caught.value.code == "CROWN-VIEW-UNKNOWN"


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
    with pytest.raises(StateError):
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


def test_equal_stages_are_kept_once() -> None:
    db = crown.Database(
        SCHEMA
        + """
        CREATE MATERIALIZED VIEW a AS SELECT x.p1, COUNT(*) AS n FROM knows x JOIN knows y ON x.p2 = y.p1 GROUP BY x.p1;
        CREATE MATERIALIZED VIEW b AS SELECT k.p1 AS who, COUNT(*) + 1 AS m
            FROM knows k JOIN knows l ON k.p2 = l.p1 GROUP BY k.p1;
        CREATE MATERIALIZED VIEW c AS SELECT MAX(n) AS most FROM a;
        """
    )
    trees = [stage for stage in db.stats()["stages"] if stage["kind"] == "tree"]
    assert ["a", "b", "c"] in [stage["shared_by"] for stage in trees]
    assert "share" in str(db.explain("SELECT q.p1, COUNT(*) FROM knows q JOIN knows r ON q.p2 = r.p1 GROUP BY q.p1"))
    db.insert("knows", [(1, 2, 0), (2, 3, 0), (2, 4, 0)])
    assert (list(db["a"]), list(db["b"]), list(db["c"])) == ([(1, 2)], [(1, 3)], [(2,)])
    db.drop("b")
    db.insert("knows", [(2, 5, 0)])
    assert (list(db["a"]), list(db["c"])) == ([(1, 3)], [(3,)])


def test_three_views_over_the_same_tables_take_little_more_than_one() -> None:
    views = {
        "v1": "SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1",
        "v2": "SELECT x.p1 AS source, y.p2 AS target FROM knows x JOIN knows y ON x.p2 = y.p1",
        "v3": "SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1 ORDER BY p1",
    }
    changes = {"knows": [(n % 300, n % 301, n) for n in range(6000)]}
    schema = SCHEMA + "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};" for name, sql in views.items())
    db = crown.Database(schema)
    db.apply(changes)
    alone = []
    for name in views:
        one = crown.Database(SCHEMA + f"CREATE MATERIALIZED VIEW {name} AS {views[name]}")
        one.apply(changes)
        alone.append(one.stats()["bytes"])
    print(db.stats()["bytes"], alone)
    assert db.stats()["bytes"] <= 1.5 * max(alone)


def test_stats_say_who_shares_what(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    db.apply(ROWS)
    stats = db.stats()
    assert set(stats["views"]) == {"by_tag", "top_tags", "total"}
    if threads == 1:
        assert "top_tags" in stats["views"]["by_tag"]["shared_with"]
    for view in stats["views"].values():
        assert 0 <= view["own_bytes"] <= view["bytes"] <= stats["bytes"]
        assert view["stages"]
    for stage in stats["stages"]:
        assert all(node["rows"] >= 0 for node in stage["nodes"])


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


def test_views_with_one_tree_take_the_state_of_one() -> None:
    """Different columns, names, orders and limits over one join; another tree has rows of its own."""
    join = "FROM tag t JOIN message_tag m ON m.tag = t.id JOIN knows k ON k.p1 = m.message"
    queries = [
        f"SELECT t.name, m.message, k.p2 {join}",
        f"SELECT t.name AS n, m.message + 1 AS next, k.p2 AS person {join}",
        f"SELECT t.name, m.message, k.p2 {join} ORDER BY 1, 2, 3",
    ]
    tags, rows = [(n, f"name of tag {n}") for n in range(50)], [(n % 700, n % 50) for n in range(2000)]
    known = [(n % 700, n, n) for n in range(2000)]

    def state(*chosen: str) -> int:
        views = "".join(f"CREATE MATERIALIZED VIEW v{n} AS {sql};" for n, sql in enumerate(chosen))
        db = crown.Database(SCHEMA + views)
        for table, data in (("tag", tags), ("message_tag", rows), ("knows", known)):
            db.insert(table, data)
        return db.stats()["bytes"]

    alone = [state(sql) for sql in queries]
    assert state(*queries) <= 1.5 * max(alone)
    other = f"SELECT t.name, COUNT(*) AS n {join} GROUP BY t.name"
    assert max(alone) < state(*queries, other) < sum(alone) + state(other)


@pytest.mark.parametrize("keep", ["read", "all"])
@pytest.mark.parametrize("reload", [False, True])
def test_the_rows_of_a_table_go_with_the_last_view_that_reads_it(
    threads: int, keep: Any, reload: bool, tmp_path: Path
) -> None:
    schema = """CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
        CREATE TABLE seen (id BIGINT, name STRING) WINDOW (ROWS 1000);
        CREATE TABLE knows (p1 BIGINT, p2 BIGINT)"""
    db = crown.Database(schema, threads=threads, keep=keep)
    db.execute("CREATE MATERIALIZED VIEW a AS SELECT COUNT(*) AS n FROM knows")
    first = "CREATE MATERIALIZED VIEW b AS SELECT t.name, s.name AS seen FROM tag t JOIN seen s ON s.id = t.id"
    db.execute(first)
    db.execute("CREATE MATERIALIZED VIEW c AS SELECT name FROM tag")
    rows = [(n, f"a long name of tag number {n}") for n in range(900)]
    db.apply({"tag": rows, "seen": rows})
    db.drop("c")
    assert len(db["b"]) == 900
    full = db.stats()["bytes"]
    db.drop("b")
    if reload:
        db.save(tmp_path / "database.crown")
        db = crown.Database.load(tmp_path / "database.crown")
    if keep == "all":
        db.execute(first)
        assert len(db["b"]) == 900
        return
    assert db.stats()["bytes"] < full / 3
    assert db.stats()["interner"]["values"] == 0
    assert {table["name"] for table in db.stats()["tables"]} == {"knows"}
    assert "tag: no view reads it; its rows are not stored" in str(db.explain())
    for sql in (first, "CREATE MATERIALIZED VIEW c AS SELECT name FROM tag"):
        with pytest.raises(PlanError, match="not stored at all") as caught:
            db.execute(sql)
        assert caught.value.code == "CROWN-ROWS-NOT-KEPT"
    db.delete("tag", rows)  # it is nobody's business any more
    db.insert("knows", [(1, 2)])
    assert list(db["a"]) == [(1,)]


def test_values_of_dropped_tables_are_forgotten() -> None:
    db = crown.Database("CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING)")
    db.execute("CREATE MATERIALIZED VIEW a AS SELECT name FROM tag")
    db.insert("tag", [(n, f"a name of tag {n}") for n in range(300)])
    db.drop("a")
    assert db.stats()["interner"]["values"] == 0


CASTS = """CREATE TABLE sale (id BIGINT PRIMARY KEY, day DATE, price DECIMAL(10, 2), at TIMESTAMP);
    CREATE MATERIALIZED VIEW days AS SELECT day, SUM(price) AS total, COUNT(at) AS n FROM sale GROUP BY day"""


def test_tuples_are_taken_as_a_view_takes_them(threads: int) -> None:
    """The short way for tuples, and the way back to the long one where values must be cast."""
    schema, sql = CASTS.split(";")
    view = crown.View(sql.split(" AS ", 1)[1], schema, threads=threads)
    db = crown.Database(CASTS, threads=threads)
    day = datetime.date(2026, 1, 2)
    for rows in (
        [(1, day, Decimal("1.50"), None)],
        [(2, "2026-01-02", 2.25, "2026-01-02 10:00:00"), (3, day, 1, None)],
        [(1, day, Decimal("7.00"), None)],  # an upsert
        [],
    ):
        assert db.insert("sale", rows)["days"].equals(view.insert("sale", rows))
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


def test_a_view_that_is_explained_has_other_stages_than_the_project() -> None:
    """What is shared has the project's id everywhere, and what would be added one that no stage has."""
    db = crown.Database(
        "CREATE TABLE r (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM r GROUP BY a"
    )
    own = {stage.id for stage in db.explain().project.stages}
    text = str(db.explain("SELECT b, MAX(a) AS m FROM r GROUP BY b"))
    added = re.findall(r"^  add \w+ (\S+)$", text, flags=re.MULTILINE)
    assert added and not own & set(added)
    assert set(re.findall(r"\$\w+", text)) == set(added)
    text = str(db.explain("SELECT MAX(s) AS m FROM v"))
    shared = re.findall(r"^  share (\S+) with v$", text, flags=re.MULTILINE)
    added = re.findall(r"^  add \w+ (\S+)$", text, flags=re.MULTILINE)
    assert set(shared) == own and added and not own & set(added)
    assert set(re.findall(r"\$\w+", text)) == {*shared, *added}
