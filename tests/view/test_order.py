"""ORDER BY of what is shown, computed or hidden: rows are pulled in that order, always."""

from __future__ import annotations

import random

import pytest

import crown
from tests.support.followed import Followed
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE t (id INT, s STRING, g INT); CREATE TABLE u (id INT, w INT)"
ORDERED = (
    "SELECT s FROM t ORDER BY id, s LIMIT 3",
    "SELECT s FROM t ORDER BY id DESC NULLS LAST, s LIMIT 3 OFFSET 2",
    "SELECT s, s AS again FROM t ORDER BY id % 2 DESC, g + id, s LIMIT 4",
    "SELECT s FROM t ORDER BY id IS NULL, -id, s DESC LIMIT 5",
    "SELECT t.s FROM t JOIN u ON t.id = u.id ORDER BY u.w, t.g, t.s LIMIT 4",
    "SELECT t.s FROM t LEFT JOIN u ON t.id = u.id ORDER BY u.w DESC NULLS FIRST, t.id, t.s LIMIT 4 OFFSET 1",
    "SELECT g FROM t GROUP BY g ORDER BY SUM(id) DESC, COUNT(*), g LIMIT 3",
    "SELECT DISTINCT s, g FROM t ORDER BY g DESC, s LIMIT 3",
    "SELECT DISTINCT g FROM t ORDER BY g % 2, g LIMIT 2",
    "SELECT s, g FROM t ORDER BY g DESC, s",
    "SELECT s FROM (SELECT s, id FROM t UNION ALL SELECT CAST(w AS STRING), id FROM u) AS q ORDER BY id, s LIMIT 4",
    "SELECT id FROM t UNION SELECT w FROM u ORDER BY 1 DESC LIMIT 3",
)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("sql", ORDERED)
def test_pulled_in_order(sql: str, threads: int, rng: random.Random) -> None:
    judge = Judge(sql, SCHEMA)
    followed = Followed(f"threads={threads}", crown.View(sql, schema=SCHEMA, threads=threads))
    live: list[Change] = []
    for number in range(5):
        batch = []
        for _ in range(6):
            if live and rng.random() < 0.4:
                gone = live.pop(rng.randrange(len(live)))
                batch.append(Change(gone.table, gone.row, -1))
                continue
            numbers = [None if rng.random() < 0.1 else rng.randrange(4) for _ in range(2)]
            row = (numbers[0], rng.choice("zymab"), numbers[1]) if rng.random() < 0.6 else tuple(numbers)
            live.append(Change("t" if len(row) == 3 else "u", row))
            batch.append(live[-1])
        delta = followed.apply(judge.as_arrow(batch))
        judge.apply(batch)
        followed.check_delta(judge, delta)
        followed.check(judge, ordered=True)
        if number == 2:
            followed.reload()
            followed.check(judge, ordered=True)


def test_copies_of_a_row_stand_where_their_hidden_order_says() -> None:
    view = crown.View("SELECT s FROM t ORDER BY id LIMIT 3", schema=SCHEMA)
    view.insert("t", [(3, "a", 0), (1, "a", 0), (2, "z", 0), (4, "b", 0)])
    assert [s for (s,) in view] == ["a", "z", "a"] == view.to_arrow()["s"].to_pylist()
    assert view.to_arrow(multiplicity=True).to_pylist() == [
        {"s": "a", "_multiplicity": 2},
        {"s": "z", "_multiplicity": 1},
    ]


def test_an_order_that_distinct_rows_do_not_show_is_refused() -> None:
    with pytest.raises(crown.CrownError, match="not in the output"):
        crown.View("SELECT DISTINCT s FROM t ORDER BY id LIMIT 3", schema=SCHEMA)
