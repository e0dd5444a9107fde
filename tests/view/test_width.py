"""Rows of hundreds of columns, joins of 64 tables: the NULLs and routes of a row outgrow one word."""

from __future__ import annotations

import random

import pytest

import crown
from crown.errors import CrownError
from tests.support.judge import Change, Judge, Row

COLUMNS = 300
TYPES = ["STRING", "BIGINT", "BIGINT"]
SCHEMA = f"CREATE TABLE w ({', '.join(f'c{i} {TYPES[i % 3]}' for i in range(COLUMNS))})"
QUERIES = {
    "star": "SELECT * FROM w",
    "join": "SELECT a.*, b.c2 AS z FROM w a JOIN w b ON a.c100 = b.c101",
    "outer join": "SELECT a.c1, b.* FROM w a LEFT JOIN w b ON a.c100 = b.c101",
    "distinct": "SELECT DISTINCT * FROM w",
    "aggregates": f"SELECT c0, {', '.join(f'MAX(c{i}) AS m{i}' for i in range(1, 150))} FROM w GROUP BY c0",
    "groups": f"SELECT {', '.join(f'c{i}' for i in range(150))}, COUNT(*) AS n FROM w GROUP BY ALL",
    "sums": f"SELECT c100, {', '.join(f'SUM(c{i}) AS s{i}' for i in range(1, 200, 3))} FROM w GROUP BY c100",
    "expressions": f"SELECT {', '.join(f'c1 + {i} AS s{i}' for i in range(100))} FROM w",
    "top": "SELECT * FROM w ORDER BY c200, c1, c2, c3, c4, c5, c6, c7, c8, c10 LIMIT 3",
    "except": "SELECT * FROM w EXCEPT SELECT * FROM w WHERE c299 = 1",
    "cycle": "SELECT x.*, y.c70 AS p, z.c80 AS q FROM w x, w y, w z "
    "WHERE x.c91 = y.c92 AND y.c94 = z.c95 AND z.c97 = x.c98",
}


def _rows(rng: random.Random, count: int) -> list[Row]:
    def value(column: int) -> str | int | None:
        number = rng.randint(0, 3)
        return None if rng.random() < 0.3 else str(number) if column % 3 == 0 else number

    return [tuple(value(i) for i in range(COLUMNS)) for _ in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_wide_rows(name: str, threads: int, rng: random.Random) -> None:
    rows = _rows(rng, 30)
    view, judge = crown.View(QUERIES[name], SCHEMA, threads=threads), Judge(QUERIES[name], SCHEMA)
    first = [Change("w", row) for row in rows[:20]]
    second = [Change("w", row, -1) for row in rows[5:15]] + [Change("w", row) for row in rows[20:]]
    for batch in (first, second):
        delta = view.apply(judge.as_arrow(batch))
        judge.apply(batch)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


def test_a_wide_view_is_saved_and_looked_up(tmp_path: object, rng: random.Random) -> None:
    rows = _rows(rng, 12)
    view = crown.View(QUERIES["star"], SCHEMA)
    view.insert("w", rows)
    view.save(f"{tmp_path}/view")
    loaded = crown.View.load(f"{tmp_path}/view")
    assert set(loaded) == set(rows)
    assert all(row in loaded for row in rows)
    loaded.delete("w", rows[:6])
    assert set(loaded) == set(rows[6:])


def test_a_wide_table_with_a_primary_key(rng: random.Random) -> None:
    names = [f"c{i} INT" for i in range(COLUMNS)]
    view = crown.View("SELECT * FROM k", f"CREATE TABLE k ({', '.join(names)}, PRIMARY KEY (c200))")
    rows = [tuple(None if i != 200 and rng.random() < 0.5 else i * n for i in range(COLUMNS)) for n in range(4)]
    view.insert("k", rows)
    changed = (*rows[2][:299], 12345)
    view.insert("k", [changed])
    assert set(view) == {rows[0], rows[1], changed, rows[3]}
    with pytest.raises(CrownError, match="column 'c299'"):
        view.delete("k", [(*changed[:299], 1)])
    view.delete("k", [tuple(600 if i == 200 else None for i in range(COLUMNS))])
    assert set(view) == {rows[0], rows[1], changed}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("outputs", ["*", "x1, x64", "COUNT(*) AS n"])
def test_64_tables(outputs: str, threads: int) -> None:
    tables = range(1, 65)
    schema = "; ".join(f"CREATE TABLE t{i} (a{i} INT PRIMARY KEY, b{i} INT, x{i} STRING)" for i in tables)
    joined = " AND ".join(f"a{i} = b{i + 1}" for i in range(1, 64))
    sql = f"SELECT {outputs} FROM {', '.join(f't{i}' for i in tables)} WHERE {joined} AND b1 >= 0"
    view, judge = crown.View(sql, schema, threads=threads), Judge(sql, schema)
    rows = [Change(f"t{i}", (k, k, f"{i} of {k}")) for i in tables for k in range(3)]
    for batch in (rows, [Change("t30", (1, 1, "30 of 1"), -1)], [Change("t30", (1, 2, None))]):
        delta = view.apply(judge.as_arrow(batch))
        judge.apply(batch)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_table_is_read_90_times(threads: int) -> None:
    """Uses that are sent to the same cells share a bit of a row's mask."""
    sql = "SELECT e0.a, e89.b FROM " + " JOIN ".join(
        f"e e{i}" + (f" ON e{i - 1}.b = e{i}.a AND e{i}.b <> {i}" if i else "") for i in range(90)
    )
    view = crown.View(sql, "CREATE TABLE e (a INT, b INT)", threads=threads)
    view.insert("e", [(100 + i, 101 + i) for i in range(92)])
    assert sorted(view) == [(100, 190), (101, 191), (102, 192)]
    view.delete("e", [(100, 101)])
    assert sorted(view) == [(101, 191), (102, 192)]


def test_a_chain_of_connectives_that_would_take_seconds_is_refused() -> None:
    sql = "SELECT a FROM e WHERE " + " AND ".join(f"a <> {i}" for i in range(20_000))
    with pytest.raises(CrownError) as caught:
        crown.View(sql, "CREATE TABLE e (a INT, b INT)")
    assert caught.value.code == "CROWN-SQL-TOO-LONG"
    assert "the query has 19,999 ANDs and ORs, more than 4,000" in str(caught.value)
    assert "IN (...)" in str(caught.value)
