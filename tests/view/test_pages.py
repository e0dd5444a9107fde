"""Pages by counting: the same rows as by walking, in the same order, while the view changes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import crown

SCHEMA = "CREATE TABLE r (a INT, b INT, s STRING); CREATE TABLE t (b INT, c INT)"
# All have thousands of rows: near the start, rows are walked past.
COUNTED = {
    "join": "SELECT r.a, r.b, r.s, t.c FROM r JOIN t ON r.b = t.b",
    "distinct": "SELECT DISTINCT r.a, t.b, t.c FROM r JOIN t ON r.b = t.b",
    "projected": "SELECT r.a, r.b FROM r JOIN t ON r.b = t.b",
    "computed": "SELECT r.a + 1 AS a, t.c, UPPER(r.s) AS s FROM r JOIN t ON r.b = t.b",
    "groups": "SELECT r.a, t.b, t.c, COUNT(*) AS n, SUM(t.b) AS total, AVG(r.b) AS mean FROM r JOIN t ON r.b = t.b "
    "GROUP BY r.a, t.b, t.c",
    "aggregate": "SELECT r.a, t.c, MIN(r.s) AS least FROM r JOIN t ON r.b = t.b GROUP BY r.a, t.c",
    "left": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.b = t.b",
    "cross": "SELECT r.a, t.c FROM r CROSS JOIN t",
    "three": "SELECT x.a, y.c, z.s FROM r x JOIN t y ON x.b = y.b JOIN r z ON z.b = y.c",
    "union": "SELECT r.a, r.b FROM r JOIN t ON r.b = t.b UNION ALL SELECT t.b, t.c FROM t",
}
WALKED = {
    "residual": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b WHERE r.a < t.c",
    "having": "SELECT r.a, t.c, COUNT(*) AS n FROM r JOIN t ON r.b = t.b GROUP BY r.a, t.c HAVING COUNT(*) > 0",
    "window": "SELECT r.a, t.c, ROW_NUMBER() OVER (PARTITION BY r.b ORDER BY r.a, t.c) AS n FROM r JOIN t ON r.b = t.b",
}
ORDERED = {
    "by all": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b ORDER BY r.a DESC NULLS LAST, t.c NULLS FIRST",
    "by some": "SELECT r.a, r.s, t.c FROM r JOIN t ON r.b = t.b ORDER BY r.s NULLS FIRST, t.c % 3 DESC",
    "by count": "SELECT r.a, t.c, COUNT(*) AS n FROM r JOIN t ON r.b = t.b GROUP BY r.a, t.c "
    "ORDER BY n DESC, t.c NULLS LAST, r.a NULLS FIRST",
}
Batch = list[tuple[str, str, list[tuple[Any, ...]]]]


def row(table: str, rng: random.Random) -> tuple[Any, ...]:
    value = rng.choice([None, *range(40)])
    if table == "t":
        return rng.randrange(8), value
    return value, rng.randrange(8), rng.choice(["x", "yy", "ÿ", None])


class Tables:
    """What the tables have, for changes that fit."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[str, list[tuple[Any, ...]]] = {"r": [], "t": []}

    def batch(self, size: int) -> Batch:
        changes: Batch = []
        for table, rows in self.rows.items():
            new = [row(table, self.rng) for _ in range(size)]
            self.rng.shuffle(rows)
            cut = self.rng.randint(0, min(len(rows), size))
            gone, rows[:] = rows[:cut], [*rows[cut:], *new]
            changes += [("delete", table, gone), ("insert", table, new)]
        return changes


def apply(view: crown.View | crown.Database, batch: Batch) -> None:
    for word, table, rows in batch:
        if word == "delete":
            view.delete(table, rows)
        else:
            view.insert(table, rows)


def rows_of(page: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in page.columns), strict=True))


def check(view: crown.View | crown.DatabaseView, rng: random.Random) -> None:
    rows = list(view)
    assert view.count() == len(rows)
    for _ in range(15):
        offset = rng.randrange(len(rows) + 20)
        limit = rng.choice([1, 2, 10])
        assert rows_of(view.page(offset, limit)) == rows[offset : offset + limit], (offset, limit, len(rows))
    if rows:
        assert view[-1] == rows[-1]
        assert view[len(rows) // 2] == rows[len(rows) // 2]
        assert set(rows_of(view.sample(5, seed=rng.randrange(99)))) <= set(rows)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", [*COUNTED, *WALKED])
def test_pages_follow_the_changes(name: str, threads: int, rng: random.Random, tmp_path: Path) -> None:
    view = crown.View((COUNTED | WALKED)[name], SCHEMA, threads=threads)
    tables = Tables(rng)
    for step, size in enumerate((120, 1, 2, 0, 40, 1, 300, 3)):
        apply(view, tables.batch(size))
        check(view, rng)
        if step == 4:
            view.save(tmp_path / "view.crown")
            view = crown.View.load(tmp_path / "view.crown")
    for table, rows in tables.rows.items():
        view.delete(table, list(rows))
    check(view, rng)


@pytest.mark.parametrize("name", [*COUNTED, *ORDERED])
def test_pages_of_a_view_without_deltas(name: str, rng: random.Random) -> None:
    view = crown.View((COUNTED | ORDERED)[name], SCHEMA, deltas=False)
    tables = Tables(rng)
    for size in (100, 1, 30, 0, 2):
        apply(view, tables.batch(size))
        check(view, rng)
        check(view, rng)


def test_a_refused_batch_leaves_the_positions(rng: random.Random) -> None:
    for name in ("join", "groups", "three"):
        view = crown.View(COUNTED[name], SCHEMA)
        tables = Tables(rng)
        apply(view, tables.batch(120))
        check(view, rng)
        with pytest.raises(crown.CrownError):
            view.apply([("r", tables.rows["r"][:3]), ("t", [{"b": 99, "c": 1, "_change_type": "delete"}])])
        check(view, rng)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ORDERED)
def test_pages_in_the_order_of_the_query(name: str, threads: int, rng: random.Random, tmp_path: Path) -> None:
    """Against DuckDB where the order is total, and against the sorted result."""
    view = crown.View(ORDERED[name], SCHEMA, threads=threads)
    tables = Tables(rng)
    for step, size in enumerate((100, 1, 3, 0, 60, 2, 500)):
        apply(view, tables.batch(size))
        check(view, rng)
        if name != "by some":
            connection = duckdb.connect()
            connection.execute(SCHEMA)
            for table, rows in tables.rows.items():
                if rows:
                    connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            theirs = connection.sql(f"{ORDERED[name]} LIMIT 7 OFFSET 600").fetchall()
            assert [r[:2] for r in rows_of(view.page(600, 7))] == [r[:2] for r in theirs]
        if step == 3:
            view.save(tmp_path / "view.crown")
            view = crown.View.load(tmp_path / "view.crown")


def test_the_order_is_kept_while_pages_are_read_and_then_given_up(rng: random.Random) -> None:
    view = crown.View("SELECT a, s FROM r ORDER BY a, s", SCHEMA)
    view.insert("r", [(number % 977, 1, f"name {number}") for number in range(5000)])
    stored = view.stats()["bytes"]
    view.page(100, 5)
    assert view.stats()["bytes"] == stored  # one page may be the only one
    view.page(200, 5)
    assert view.stats()["bytes"] > stored + 5000 * 16
    values = view.stats()["interner"]["values"]
    view.insert("r", [(1, 1, "one more")])
    view.delete("r", [(1, 1, "one more")])
    assert view.stats()["interner"]["values"] == values
    view.insert("r", [(number, 2, None) for number in range(8000)])
    view.delete("r", [(number, 2, None) for number in range(8000)])
    assert view.stats()["bytes"] < 2 * stored
    view.page(100, 5)
    view.page(100, 5)
    view.delete("r", [(number % 977, 1, f"name {number}") for number in range(5000)])
    assert view.page(0, 5).num_rows == 0
    assert view.stats()["interner"]["values"] == 0


def test_pages_of_the_views_of_a_database(rng: random.Random) -> None:
    both = COUNTED | WALKED | ORDERED
    names = [f"v{number}" for number in range(len(both))]
    views = "".join(f";CREATE MATERIALIZED VIEW {n} AS {sql}" for n, sql in zip(names, both.values(), strict=True))
    db = crown.Database(SCHEMA + views, keep="all")
    tables = Tables(rng)
    for step, size in enumerate((100, 2, 20, 1)):
        apply(db, tables.batch(size))
        for name in db.views:
            check(db[name], rng)
        if step == 1:
            db.drop("v0")
            db.execute("CREATE MATERIALIZED VIEW more AS SELECT r.b, t.c FROM r JOIN t ON r.b = t.b ORDER BY t.c, r.b")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("join", "by counting, O(log N)"),
        ("groups", "by counting, O(log N)"),
        ("union", "by counting, O(log N)"),
        ("aggregate", "by position, O(1)"),
        ("residual", "a residual condition decides on each row"),
        ("having", "a condition after the tree decides on each row"),
        ("window", "only known when they are read"),
        ("by all", "the first page sorts the whole result"),
    ],
)
def test_explain_says_how_a_position_is_found(name: str, said: str) -> None:
    explained = " ".join(str(crown.View((COUNTED | WALKED | ORDERED)[name], SCHEMA).explain()).split())
    assert f"READING page, view[k] {said}" in explained or said in explained.split("READING")[1]
