"""Views that are added to a running database, and dropped again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import crown
from crown.errors import CrownError, PlanError, SchemaError
from tests.view.tags import ROWS, SCHEMA, VIEWS, rows


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


def test_a_dropped_view_can_no_longer_be_read() -> None:
    db = crown.Database(SCHEMA + VIEWS)
    view = db["total"]
    db.drop("total")
    with pytest.raises(CrownError) as caught:
        view.count()
    assert caught.value.code == "CROWN-VIEW-UNKNOWN"


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
