"""Count and time windows: rows leave by themselves, and the view is what DuckDB says of the rows that are left."""

from __future__ import annotations

from typing import Literal

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from crown.errors import CrownError
from tests.property.compose import over
from tests.property.composer import Query
from tests.property.queries import Schema, TableShape
from tests.support.followed import Followed
from tests.support.judge import Change, Judge, Row
from tests.support.python_functions import FUNCTIONS

COLUMNS = "g (src INT, dst INT, at BIGINT NOT NULL)"
OTHER = "CREATE TABLE f (n INT, w INT)"
QUERIES = (
    "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
    "SELECT DISTINCT a.src FROM g a JOIN f ON f.n = a.dst",
    "SELECT g.src, COUNT(*) AS n, MIN(f.w) AS w FROM g JOIN f ON f.n = g.dst GROUP BY g.src",
    "SELECT COUNT(*) AS triangles FROM g a JOIN g b ON b.src = a.dst JOIN g c ON c.src = b.dst AND c.dst = a.src",
    "SELECT f.n, f.w FROM f WHERE NOT EXISTS (SELECT 1 FROM g WHERE g.src = f.n)",
)
small = st.integers(0, 2)
edges = st.tuples(small, small, st.integers(0, 12))
batches_of_rows = st.lists(
    st.tuples(st.lists(edges, min_size=1, max_size=8), st.lists(st.tuples(small, small), max_size=3)),
    min_size=1,
    max_size=6,
)


def kept_by_count(arrived: list[Row], size: int) -> list[Row]:
    return arrived[-size:]


def kept_by_time(arrived: list[Row], interval: int) -> list[Row]:
    newest = max(row[2] for row in arrived)
    return [row for row in arrived if row[2] >= newest - interval]


threads_of_views = st.integers(1, 4)


@pytest.mark.parametrize("kind", ["count", "time"])
@hypothesis.settings(max_examples=50)
@hypothesis.given(
    sql=st.sampled_from(QUERIES), batches=batches_of_rows, size=st.integers(1, 9), threads=threads_of_views
)
def test_windows_forget(
    kind: str, sql: str, batches: list[tuple[list[Row], list[Row]]], size: int, threads: int
) -> None:
    window = f"ROWS {size}" if kind == "count" else f"RANGE {size} ON at"
    keep = kept_by_count if kind == "count" else kept_by_time
    view = crown.View(sql, schema=f"CREATE TABLE {COLUMNS} WINDOW ({window}); {OTHER}", threads=threads)
    judge = Judge(sql, f"CREATE TABLE {COLUMNS}; {OTHER}")
    kept: list[Row] = []
    for windowed, plain in batches:
        arrivals = [Change("g", row) for row in windowed] + [Change("f", row) for row in plain]
        delta = view.apply({name: rows for name, rows in judge.as_arrow(arrivals).items() if name in sql})
        expired = [*kept, *windowed]
        kept = keep(expired, size)
        for row in kept:
            expired.remove(row)
        judge.apply([*arrivals, *(Change("g", row, -1) for row in expired)])
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


NESTED = Schema(
    f"CREATE TABLE {COLUMNS}; {OTHER}",
    (
        TableShape("g", (("src", "int"), ("dst", "int"), ("at", "int"))),
        TableShape("f", (("n", "int"), ("w", "int"))),
    ),
)


@hypothesis.settings(max_examples=25)
@hypothesis.given(query=over(NESTED), batches=batches_of_rows, size=st.integers(1, 9), threads=threads_of_views)
def test_windows_under_nested_constructs(
    query: Query, batches: list[tuple[list[Row], list[Row]]], size: int, threads: int
) -> None:
    hypothesis.note(query.text)
    windowed_schema = f"CREATE TABLE {COLUMNS} WINDOW (ROWS {size}); {OTHER}"
    try:
        view = crown.View(query.text, schema=windowed_schema, threads=threads, functions=FUNCTIONS)
    except CrownError as error:
        hypothesis.event(f"refused: {error.code}")
        hypothesis.reject()
    followed = Followed(f"threads={threads}", view, functions=FUNCTIONS)
    judge = Judge(query.text, NESTED.ddl, functions=FUNCTIONS)
    kept: list[Row] = []
    for number, (windowed, plain) in enumerate(batches):
        arrivals = [Change("g", row) for row in windowed] + [Change("f", row) for row in plain]
        delta = followed.apply(judge.as_arrow(arrivals))
        expired, kept = [*kept, *windowed][:-size], kept_by_count([*kept, *windowed], size)
        judge.apply([*arrivals, *(Change("g", row, -1) for row in expired)])
        followed.check_delta(judge, delta)
        if number == 1:
            followed.reload()
        followed.check(judge, ordered=query.ordered)


KEYED = "CREATE TABLE f (n INT PRIMARY KEY, w INT)"


@pytest.mark.parametrize("kind", ["count", "time"])
@hypothesis.settings(max_examples=25)
@hypothesis.given(
    query=over(NESTED),
    batches=batches_of_rows,
    size=st.integers(1, 9),
    threads=threads_of_views,
    on_invalid=st.sampled_from(["raise", "quarantine"]),
)
def test_windows_beside_keys(
    kind: str,
    query: Query,
    batches: list[tuple[list[Row], list[Row]]],
    size: int,
    threads: int,
    on_invalid: Literal["raise", "quarantine"],
) -> None:
    """Upserts move rows between cells while windows drop rows of all cells; the view is saved and loaded between."""
    hypothesis.note(query.text)
    window = f"ROWS {size}" if kind == "count" else f"RANGE {size} ON at"
    keep = kept_by_count if kind == "count" else kept_by_time
    try:
        schema = f"CREATE TABLE {COLUMNS} WINDOW ({window}); {KEYED}"
        view = crown.View(query.text, schema=schema, threads=threads, on_invalid=on_invalid, functions=FUNCTIONS)
    except CrownError as error:
        hypothesis.event(f"refused: {error.code}")
        hypothesis.reject()
    followed = Followed(f"threads={threads}", view, functions=FUNCTIONS)
    judge = Judge(query.text, f"CREATE TABLE {COLUMNS}; {KEYED}", functions=FUNCTIONS)
    kept: list[Row] = []
    for number, (windowed, upserted) in enumerate(batches):
        arrivals = [Change("g", row) for row in windowed] + [Change("f", row) for row in upserted]
        delta = followed.apply(judge.as_arrow(arrivals))
        expired = [*kept, *windowed]
        kept = keep(expired, size)
        for row in kept:
            expired.remove(row)
        judge.apply([*arrivals, *(Change("g", row, -1) for row in expired)])
        followed.check_delta(judge, delta)
        if number == 1:
            followed.reload()
        followed.check(judge, ordered=query.ordered)
    assert view.rejected().num_rows == 0
