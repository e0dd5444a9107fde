"""Reading what is never stored: look-ups, pages, positions, samples."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError, InvalidChange

SCHEMA = "CREATE TABLE r (a INT, b INT, s STRING); CREATE TABLE t (b INT, c INT)"
QUERIES = {
    "join": "SELECT r.a, r.b, r.s, t.c FROM r JOIN t ON r.b = t.b",
    "distinct": "SELECT DISTINCT r.b, t.c FROM r JOIN t ON r.b = t.b",
    "projected": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b",
    "computed": "SELECT r.a + 1 AS a, t.c, UPPER(r.s) AS s FROM r JOIN t ON r.b = t.b",
    "groups": "SELECT r.s, COUNT(*) AS n FROM r JOIN t ON r.b = t.b GROUP BY r.s",
    "aggregate": "SELECT r.s, MIN(t.c) AS least FROM r JOIN t ON r.b = t.b GROUP BY r.s",
    "left": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.b = t.b",
    "three": "SELECT x.a, y.c, z.a AS other FROM r x JOIN t y ON x.b = y.b JOIN r z ON z.b = y.c",
    "cross": "SELECT r.a, t.c FROM r CROSS JOIN t",
    "ordered": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b ORDER BY r.a, t.c",
    "top": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b ORDER BY r.a, t.c LIMIT 7",
    "union": "SELECT a, b FROM r UNION ALL SELECT b, c FROM t",
    "residual": "SELECT r.a, t.c FROM r JOIN t ON r.b = t.b WHERE r.a < t.c",
    "triangle": "SELECT x.b, x.c, y.c AS d FROM t x JOIN t y ON x.c = y.b JOIN t z ON y.c = z.b AND z.c = x.b",
}


def filled(sql: str, rng: random.Random, *, threads: int = 1) -> crown.View:
    view = crown.View(sql, schema=SCHEMA, threads=threads)
    values = [None, 0, 1, 2, 3]
    view.insert("r", [(rng.choice(values), rng.choice(values), rng.choice(["x", "y", None])) for _ in range(25)])
    view.insert("t", [(rng.choice(values), rng.choice(values)) for _ in range(20)])
    return view


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_pages_and_positions_are_those_of_the_iteration(name: str, threads: int, rng: random.Random) -> None:
    view = filled(QUERIES[name], rng, threads=threads)
    rows = list(view)
    assert view.count() == len(rows) == len(view)
    for offset in (0, 1, len(rows) // 2, len(rows), len(rows) + 3):
        page = view.page(offset, 4)
        assert page.schema == view.schema
        assert list(zip(*(c.to_pylist() for c in page.columns), strict=True)) == rows[offset : offset + 4]
    assert [view[k] for k in range(len(rows))] == rows
    if rows:
        assert view[-1] == rows[-1]
        assert view[1:3].num_rows == len(rows[1:3])
    with pytest.raises(IndexError):
        view[len(rows)]
    assert view.head(3).num_rows == min(3, len(rows))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_lookups_find_what_a_scan_finds(name: str, threads: int, rng: random.Random) -> None:
    view = filled(QUERIES[name], rng, threads=threads)
    rows = list(view)
    names = view.schema.names
    for _ in range(60):
        columns = rng.sample(names, rng.randint(1, len(names)))
        known = rng.choice(rows) if rows and rng.random() < 0.8 else tuple(rng.choice([None, 1, 9]) for _ in names)
        wanted = {c: known[names.index(c)] for c in columns}
        wanted = {c: v for c, v in wanted.items() if not (view.schema.field(c).type == pa.string() and v in (1, 9))}
        found = list(zip(*(c.to_pylist() for c in view.lookup(**wanted).columns), strict=True))
        expected = [row for row in rows if all(row[names.index(c)] == v for c, v in wanted.items())]
        assert sorted(found, key=repr) == sorted(expected, key=repr), wanted


def test_lookups_go_by_keys_after_changes(rng: random.Random) -> None:
    view = filled(QUERIES["join"], rng)
    view.insert("r", [(7, 70, "seven")])
    assert view.lookup(a=7).num_rows == 0
    view.insert("t", [(70, 1), (70, 2)])
    assert sorted(view.lookup(b=70)["c"].to_pylist()) == [1, 2]
    assert view.lookup(b=70, c=2).to_pylist() == [{"a": 7, "b": 70, "s": "seven", "c": 2}]
    view.delete("t", [(70, 1)])
    assert view.lookup(s="seven")["c"].to_pylist() == [2]
    assert view.lookup(s="never seen").num_rows == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda view: view.lookup(z=1), "no column z"),
        (lambda view: view.lookup(a="text"), "does not fit"),
        (lambda view: view.page(-1, 2), "offset must be"),
        (lambda view: view.page(0, "2"), "limit must be"),
        (lambda view: view["a"], "a position must be"),
        (lambda view: view[::2], "no step"),
    ],
)
def test_wrong_arguments_are_said(call: Any, message: str, rng: random.Random) -> None:
    view = filled(QUERIES["join"], rng)
    with pytest.raises(CrownError, match=message):
        call(view)


def test_samples_may_be_restricted(rng: random.Random) -> None:
    view = filled(QUERIES["join"], rng)
    row = next(iter(view))
    drawn = view.sample(50, seed=1, where={"a": row[0]})
    assert drawn.num_rows == 50
    assert set(drawn["a"].to_pylist()) == {row[0]}
    assert view.sample(5, where={"s": "never seen"}).num_rows == 0
    assert view.sample(5, seed=3, where={"a": row[0]}) == view.sample(5, seed=3, where={"a": row[0]})


def test_a_view_is_an_arrow_stream(rng: random.Random) -> None:
    view = filled(QUERIES["join"], rng)
    expected = view.to_arrow()
    assert pa.table(view) == expected
    assert pl.DataFrame(view).height == view.to_polars().height == expected.num_rows
    counted = duckdb.sql("SELECT COUNT(*) FROM view")
    assert counted is not None
    assert counted.fetchall() == [(expected.num_rows,)]


def test_what_pandas_and_csv_give_is_cast_where_nothing_is_lost() -> None:
    schema = "CREATE TABLE p (id BIGINT, price DECIMAL(8,2), day DATE, at TIMESTAMP, ok BOOLEAN)"
    at = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
    expected = [(1, Decimal("19.99"), datetime.date(2024, 2, 29), at, True)]
    view = crown.View("SELECT * FROM p", schema=schema)
    view.insert("p", [(np.int64(1), 19.99, "2024-02-29", "2024-02-29T12:30:00Z", np.bool_(True))])
    assert list(view) == expected
    view = crown.View("SELECT * FROM p", schema=schema)
    view.apply({"p": [{"id": 1.0, "price": 19.99, "day": datetime.datetime(2024, 2, 29), "at": at, "ok": True}]})
    assert list(view) == expected
    view = crown.View("SELECT * FROM p", schema=schema)
    frame = {"id": [1.0], "price": [19.99], "day": ["2024-02-29"], "at": ["2024-02-29 12:30:00"], "ok": [True]}
    view.insert("p", pd.DataFrame(frame))
    assert list(view) == expected
    for wrong in (
        (1.5, 1, None, None, None),
        (1, 0.001, None, None, None),
        (1, 1, "29.02.2024", None, None),
        (1, 1, None, "noon", None),
        (1, float("nan"), None, None, None),
    ):
        with pytest.raises(InvalidChange):
            view.insert("p", [wrong])
    with pytest.raises(InvalidChange):
        view.insert("p", pd.DataFrame({**frame, "price": [0.001]}))
    assert list(view) == expected
    # A column without values is one of floats in pandas.
    view.insert("p", pd.DataFrame({**frame, "id": [2], "day": [float("nan")], "ok": [float("nan")]}))
    assert view.lookup(id=2).to_pylist()[0] == {**view.lookup(id=1).to_pylist()[0], "id": 2, "day": None, "ok": None}


def test_a_key_tuple_deletes(rng: random.Random) -> None:
    view = crown.View("SELECT * FROM p", schema="CREATE TABLE p (x INT, y INT, name STRING, PRIMARY KEY (x, y))")
    view.insert("p", [(1, 2, "a"), (1, 3, "b")])
    view.delete("p", [(1, 2)])
    assert list(view) == [(1, 3, "b")]
    with pytest.raises(InvalidChange):
        view.delete("p", [(1, 2)])
    with pytest.raises(InvalidChange, match="not a row of 3 values"):
        view.insert("p", [(1, 2)])


def test_deletes_come_before_inserts_and_updates_in_pairs() -> None:
    view = crown.View("SELECT a, COUNT(*) AS n FROM r GROUP BY a", schema=SCHEMA)
    view.insert("r", [(k, 0, "x") for k in range(50)])
    words = view.insert("r", [(k, 0, "x") for k in range(70)])["_change_type"].to_pylist()
    assert words == ["delete"] * 50 + ["insert"] * 70
    # In several blocks, of which each has both.
    many = crown.View("SELECT a, s, COUNT(*) AS n FROM r GROUP BY a, s", schema=SCHEMA)
    rows = [(k, 0, None if k % 3 else str(k)) for k in range(40_000)]
    many.insert("r", rows)
    delta = many.insert("r", rows)
    assert delta["_change_type"].to_pylist() == ["delete"] * 40_000 + ["insert"] * 40_000
    expected = {(k, name, n) for n in (1, 2) for k, _, name in rows}
    assert set(zip(*(delta[name].to_pylist() for name in ("a", "s", "n")), strict=True)) == expected
    delta = view.apply({"r": [(k, 0, "x") for k in range(60, 75)]}, updates=True)
    pairs = delta.to_pylist()
    assert [row["_change_type"] for row in pairs] == ["update_preimage", "update_postimage"] * 10 + ["insert"] * 5
    assert all(before["a"] == after["a"] for before, after in zip(pairs[:20:2], pairs[1:20:2], strict=True))
    with pytest.raises(CrownError, match="can't be combined"):
        view.apply({}, updates=True, stream=True)
    keyed = crown.View("SELECT * FROM p", schema="CREATE TABLE p (k INT PRIMARY KEY, v INT)")
    keyed.insert("p", [(1, 1), (2, 2)])
    words = keyed.apply({"p": [(1, 5)]}, updates=True)["_change_type"].to_pylist()
    assert words == ["update_preimage", "update_postimage"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "type_, values",
    [
        ("DOUBLE", [float("nan"), -0.0, None]),
        ("ARRAY<DOUBLE>", [[float("nan")], [-0.0], [], None]),
        ("STRUCT<p: INT, q: STRING>", [{"p": 1, "q": "a"}, {"p": None, "q": "a"}]),
        ("MAP<STRING, INT>", [[("a", 1)], []]),
    ],
)
def test_updates_of_groups_by_any_key(type_: str, values: list[Any], threads: int) -> None:
    sql = "SELECT k, SUM(n) AS s FROM t GROUP BY k"
    if type_.startswith("MAP"):  # SQL has no groups by maps
        sql = "SELECT k, id, n FROM t"
    view = crown.View(sql, schema=f"CREATE TABLE t (id INT NOT NULL PRIMARY KEY, k {type_}, n INT)", threads=threads)
    for n in (1, 2):
        delta = view.apply({"t": [(i, value, n) for i, value in enumerate(values)]}, updates=True)
    words = delta["_change_type"].to_pylist()
    assert words == ["update_preimage", "update_postimage"] * len(values)
    rows = delta.to_pylist()
    assert all(repr(old["k"]) == repr(new["k"]) for old, new in zip(rows[::2], rows[1::2], strict=True))
