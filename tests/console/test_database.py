"""What the console is told about the views of a database."""

from __future__ import annotations

import random

import pytest

import crown
from crown.console import EmbeddedSource

SQL = """
CREATE TABLE sale (shop BIGINT, item BIGINT, cents BIGINT);
CREATE TABLE shop (id BIGINT PRIMARY KEY, city STRING);
CREATE TABLE item (id BIGINT PRIMARY KEY, name STRING);
CREATE VIEW sold AS SELECT s.cents, h.city FROM sale s JOIN shop h ON s.shop = h.id;
CREATE MATERIALIZED VIEW by_city AS SELECT city, SUM(cents) AS cents FROM sold GROUP BY city;
CREATE MATERIALIZED VIEW lines AS
    SELECT s.cents, h.city, i.name FROM sale s JOIN shop h ON s.shop = h.id JOIN item i ON s.item = i.id;
CREATE MATERIALIZED VIEW best AS SELECT * FROM by_city ORDER BY cents DESC LIMIT 2
"""


def filled() -> crown.Database:
    db, numbers = crown.Database(SQL), random.Random(1)
    db.insert("shop", [(n, f"city {n % 4}") for n in range(20)])
    db.insert("item", [(n, f"item {n}") for n in range(30)])
    db.insert("sale", [(numbers.randrange(20), numbers.randrange(30), n) for n in range(500)])
    return db


def source_of(db: crown.Database) -> EmbeddedSource:
    facts = {name: db[name]._facts() for name in db}
    return EmbeddedSource(facts, stats=db.stats, hot_keys=db._engine.hot_keys, title="shops")


def test_views_say_what_they_read_and_share() -> None:
    overview = source_of(filled()).overview()
    assert {view["name"]: (view["reads"], view["shared"]) for view in overview["views"]} == {
        "by_city": (("sale", "shop"), ["best"]),
        "lines": (("sale", "shop", "item"), []),
        "best": (("by_city",), ["by_city"]),
    }


def test_frames_have_figures_of_the_nodes_that_are_drawn() -> None:
    db = filled()
    source = source_of(db)
    drawn = {view["name"]: {node["mark"] for node in view["nodes"]} for view in source.overview()["views"]}
    for name, frame in source.frame().views.items():
        assert frame.rows == len(db[name])
        assert set(frame.nodes) >= drawn[name]
        assert frame.bytes > 0
    assert source.frame().views["lines"].nodes["$tree1/0"].rows > 0


def test_deltas_and_rows_of_each_view() -> None:
    db = filled()
    source = source_of(db)
    source.watch(True)
    before = source.frame().views
    db.insert("sale", [(1, 1, 5)])
    after = source.frame().views
    assert [after[name].deltas for name in db] == [2, 1, 2]
    assert after["by_city"].updates > before["by_city"].updates
    assert [row[:2] for row in source.rows("best", offset=0, limit=5, search="")["table"].rows] == [
        [city, str(cents)] for city, cents in db["best"]
    ]
    source.watch(False)
    db.insert("sale", [(1, 1, 5)])
    assert source.frame().views["best"].deltas is None


def test_a_result_whose_size_takes_long_to_know_is_not_counted() -> None:
    db = filled()
    db.execute("CREATE MATERIALIZED VIEW odd AS SELECT id FROM shop EXCEPT SELECT id FROM item")
    assert source_of(db).frame().views["odd"].rows is None


def test_rows_are_not_counted_where_no_deltas_are_kept() -> None:
    db = crown.Database(SQL, deltas=False)
    frames = source_of(db).frame().views
    assert frames["lines"].rows is None, "a tree without deltas would count in time linear in its state"
    assert frames["best"].rows == 0


def test_two_consoles_see_the_same_deltas() -> None:
    db = filled()
    one, other = source_of(db), source_of(db)
    one.watch(True)
    other.watch(True)
    db.insert("sale", [(1, 1, 5)])
    one.watch(False)
    db.insert("sale", [(1, 1, 5)])
    assert other.frame().views["lines"].deltas == 2


def test_a_view_that_is_dropped_while_it_is_shown() -> None:
    db = filled()
    source = source_of(db)
    source.watch(True)
    db.drop("best")
    assert source.frame().views["best"].rows is None
    assert "no view" in source.rows("best", offset=0, limit=5, search="")["note"]
    source.watch(False)
    source.watch(True)
    assert source.frame().views["lines"].rows == 500


def test_the_console_opens_and_closes() -> None:
    db = filled()
    with db.console() as console, db["best"].console() as other:
        assert console.url != other.url
    with pytest.raises(crown.CrownError, match="no view to show"):
        crown.Database("CREATE TABLE r (x INT)").console()
