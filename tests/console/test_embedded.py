"""What the console is told about a view of this process."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.console import EmbeddedSource
from crown.console.overview import bound
from crown.console.source import Rates
from crown.view.console import StandaloneViewFacts

SCHEMA = "CREATE TABLE r (k INT, x INT); CREATE TABLE s (k INT, y STRING); CREATE TABLE t (y STRING, z INT)"
CHAIN = "SELECT r.x, s.y, t.z FROM r JOIN s ON r.k = s.k JOIN t ON s.y = t.y"


def facts_of(view: crown.View) -> StandaloneViewFacts:
    quarantines = view._on_invalid == "quarantine"
    return StandaloneViewFacts(
        view.plan, view._report, quarantines, view._engine, view.to_arrow, view.lookup, view._observe
    )


def source_of(view: crown.View, **options: Any) -> EmbeddedSource:
    engine = view._engine
    return EmbeddedSource({"v": facts_of(view)}, stats=engine.stats, hot_keys=engine.hot_keys, title="v", **options)


def filled(rows: int = 300, **options: Any) -> crown.View:
    view = crown.View(CHAIN, SCHEMA, **options)
    numbers = random.Random(5)
    view.insert("r", [(numbers.randrange(20), n) for n in range(rows)])
    view.insert("s", [(n % 20, f"y{n}") for n in range(40)])
    view.insert("t", [(f"y{n}", n) for n in range(40)])
    return view


@pytest.mark.parametrize("threads", [1, 2])
def test_pages_are_the_whole_result_in_pieces(threads: int) -> None:
    view = filled(threads=threads)
    facts = facts_of(view)
    pages = [facts.page(offset, 77) for offset in range(0, len(view) + 77, 77)]
    assert [page.num_rows for page in pages[:-2]] == [77] * (len(pages) - 2)
    found = pa.concat_tables(pages).to_pylist()
    repeated = [tuple(row.values())[:-1] for row in found for _ in range(row["_multiplicity"])]
    assert sorted(repeated) == sorted(view)


def test_a_page_past_the_end_is_empty() -> None:
    facts = facts_of(filled())
    assert facts.page(10**6, 5).num_rows == 0
    assert facts.page(0, 0).num_rows == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_a_frame_has_figures_for_every_node_that_is_drawn(threads: int) -> None:
    view = filled(threads=threads)
    source = source_of(view)
    overview, frame = source.overview(), source.frame().views["v"]
    drawn = overview["views"][0]
    assert {node["mark"] for node in drawn["nodes"]} <= set(frame.nodes)
    for node in drawn["nodes"]:
        assert f'data-node="{node["mark"]}"' in drawn["svg"]
    stats = view.stats()
    assert frame.rows == len(view)
    assert frame.bytes == stats["bytes"]
    assert sum(node.counter_changes for node in frame.nodes.values()) == stats["counter_changes"]
    assert sum(node.updates for node in frame.nodes.values()) == stats["updates"]
    assert len(frame.cells) == (0 if threads == 1 else threads)


def test_a_result_whose_size_takes_long_to_know_is_not_counted() -> None:
    view = crown.View("SELECT k FROM r EXCEPT SELECT k FROM s", SCHEMA)
    assert source_of(view).frame().views["v"].rows is None
    assert source_of(crown.View(CHAIN, SCHEMA)).frame().views["v"].rows == 0


def test_rates_are_what_happened_between_two_frames() -> None:
    view, rates = filled(), Rates()
    source = source_of(view)
    source.watch(True)
    assert rates.between(10.0, source.frame()) == {}
    view.insert("t", [(f"y{n}", 1000 + n) for n in range(10)])
    found = rates.between(12.0, source.frame())["v"]
    assert found["updates"] == 5.0
    assert found["batches"] == 0.5
    assert found["deltas"] > 0
    assert sum(node.work for node in found["nodes"].values()) == pytest.approx(1.0)
    assert rates.between(13.0, source.frame())["v"]["updates"] == 0.0


def test_a_key_with_many_rows_is_hot() -> None:
    view = crown.View(CHAIN, SCHEMA)
    view.insert("r", [(7, n) for n in range(500)] + [(n, n) for n in range(100, 200)])
    view.insert("s", [(7, "a"), *((n, "b") for n in range(100, 200))])
    view.insert("t", [("a", 1), ("b", 2)])
    hot = source_of(view).frame().views["v"].hot_keys
    assert [key for key in hot if "= 7" in key.key and key.rows == 500]
    assert all(0 < key.share <= 1 and key.rows > 4 * key.average for key in hot)
    assert len({(key.node, key.key) for key in hot}) == len(hot)


def test_no_key_is_hot_where_all_are_alike() -> None:
    assert source_of(filled(40)).frame().views["v"].hot_keys == []


def test_deltas_are_seen_only_while_watched() -> None:
    view = filled()
    source = source_of(view)
    view.insert("r", [(1, -1)])
    source.watch(True)
    assert source.frame().views["v"].deltas == 0
    delta = view.insert("r", [(1, -2)])
    seen = source.frame().views["v"]
    assert seen.deltas == delta.num_rows > 0
    (recent,) = seen.recent
    assert recent["count"] == delta.num_rows
    assert recent["table"].columns[0] == "_change_type"
    assert recent["table"].rows[0][0] == "insert"
    source.watch(False)
    view.insert("r", [(1, -3)])
    assert source.frame().views["v"].deltas is None
    assert view._observers == []


def test_rejected_changes_are_shown_and_stay_with_the_view() -> None:
    view = filled(on_invalid="quarantine")
    view.delete("t", [("nowhere", 1)])
    frame = source_of(view).frame().views["v"]
    assert frame.rejects == 1
    assert frame.rejected is not None
    assert frame.rejected.columns == ["table", "position", "reason", "row"]
    assert "nowhere" in str(frame.rejected.rows[0])
    assert view.rejected().num_rows == 1, "the user's own list is untouched"
    after = source_of(view).frame().views["v"]
    assert after.rejects == 1 and after.rejected is not None and after.rejected.rows == []


def test_search_finds_values_of_every_column() -> None:
    view = filled()
    source = source_of(view)
    found = source.rows("v", offset=0, limit=20, search="Y7")
    assert found["table"].rows and all(row[1] == "y7" for row in found["table"].rows)
    assert "match" in found["note"]
    assert source.rows("v", offset=0, limit=20, search="nothing like it")["table"].rows == []
    second = source.rows("v", offset=20, limit=20, search="y")
    assert len(second["table"].rows) == 20 and second["more"]


def test_rows_come_in_the_order_of_the_query() -> None:
    view = crown.View("SELECT x, k FROM r ORDER BY x DESC", SCHEMA)
    view.insert("r", [(1, n) for n in range(30)])
    rows = source_of(view).rows("v", offset=0, limit=5, search="")["table"].rows
    assert [row[0] for row in rows] == ["29", "28", "27", "26", "25"]


def test_a_result_without_a_value_says_why() -> None:
    view = crown.View("SELECT 1 / COUNT(*) AS q FROM r", SCHEMA)
    answer = source_of(view).rows("v", offset=0, limit=5, search="")
    assert answer["table"] is None and "zero" in answer["note"].lower()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("profile", ["insert_only", "fifo"])
def test_counters_stay_below_the_bound_of_the_card(profile: str, seed: int) -> None:
    sql = CHAIN if profile == "insert_only" else "SELECT r.x, s.y FROM r JOIN s ON r.k = s.k"
    profiles = dict.fromkeys(("r", "s", "t") if profile == "insert_only" else ("r", "s"), profile)
    view = crown.View(sql, SCHEMA, profiles=profiles)
    most = bound(view.plan, view._report)
    assert most is not None
    numbers = random.Random(seed)
    alive: list[tuple[str, tuple[Any, ...]]] = []
    for number in range(600):
        table = numbers.choice(list(profiles))
        row: dict[str, tuple[Any, ...]] = {
            "r": (numbers.randrange(9), number),
            "s": (numbers.randrange(9), f"y{number % 7}"),
        }
        row["t"] = (f"y{numbers.randrange(7)}", number)
        view.insert(table, [row[table]])
        alive.append((table, row[table]))
        if profile == "fifo" and len(alive) > 60:
            table, gone = alive.pop(0)
            view.delete(table, [gone])
    assert view.stats()["counter_changes_per_update"] <= most, f"seed {seed}"


def test_a_cyclic_or_unbounded_query_has_no_bound() -> None:
    cyclic = crown.View("SELECT a.k FROM r a, r b, r c WHERE a.x = b.k AND b.x = c.k AND c.x = a.k", SCHEMA)
    assert bound(cyclic.plan, cyclic._report) is None
    free = crown.View(CHAIN, SCHEMA)
    assert bound(free.plan, free._report) is None


def test_a_key_is_looked_up_in_the_whole_view() -> None:
    view = crown.View(
        "SELECT k, SUM(x) AS x, MAX(day) AS day FROM r GROUP BY k", "CREATE TABLE r (k STRING, x INT, day DATE)"
    )
    view.insert("r", [(f"key {n}", n, "2024-01-01") for n in range(30)])
    source = source_of(view)

    def found(search: str) -> tuple[list[str | None], str]:
        page = source.rows("v", offset=0, limit=20, search=search)
        return [row[0] for row in page["table"].rows], page["note"]

    assert found("k = key 7") == (["key 7"], "1 row of the whole view")
    assert found("x='12'") == (["key 12"], "1 row of the whole view")
    assert found("x = 99") == ([], "0 rows of the whole view")
    assert len(found("day = 2024-01-01")[0]) == 20
    assert found("x = twelve") == ([], "0 of 30 rows match")
    assert found("other = 7") == ([], "0 of 30 rows match")
