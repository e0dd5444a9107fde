"""Counts and sums at the edge of their types: right, or refused with the whole batch; never wrapped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError, InvalidChange

LARGEST = 2**63 - 1
WIDE = Decimal(10**38 - 1)
NEGATED = Context(prec=50).minus(WIDE)
SCHEMA = "CREATE TABLE a (k INT, x BIGINT); CREATE TABLE b (k INT, y INT)"
TWO_WAYS = ("SUM(x)", "SUM(x), MAX(x)")  # in the tree, and folded


def copies(table: str, rows: Iterable[tuple[Any, ...]], word: str = "insert") -> dict[str, pa.Table]:
    """Changes whose last value is `_multiplicity`."""
    columns = list(zip(*rows, strict=True))
    names = {"a": ["k", "x"], "b": ["k", "y"]}[table]
    types = [pa.int32(), pa.int64() if table == "a" else pa.int32(), pa.int64()]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    words = pa.array([word] * len(arrays[0]))
    return {table: pa.table([*arrays, words], names=[*names, "_multiplicity", "_change_type"])}


def refused(view: crown.View, change: Callable[[], Any]) -> None:
    """The change overflows, and the view is as before."""
    before = view.to_arrow(multiplicity=True)
    with pytest.raises(InvalidChange) as raised:
        change()
    assert raised.value.code == "CROWN-OVERFLOW"
    assert view.to_arrow(multiplicity=True) == before


@pytest.mark.parametrize("shown", TWO_WAYS)
@pytest.mark.parametrize("values", list(itertools.permutations([LARGEST, -LARGEST, LARGEST, -5])))
def test_a_sum_that_comes_back_within_a_batch(values: tuple[int, ...], shown: str) -> None:
    """One batch, whatever its order, has one outcome: that of its end."""
    view = crown.View(f"SELECT {shown} FROM a", schema=SCHEMA)
    delta = view.insert("a", [(1, value) for value in values])
    assert view.to_arrow()[0].to_pylist() == [sum(values)]
    assert delta[0].to_pylist() == [sum(values)]
    assert len(view) == 1


@pytest.mark.parametrize("shown", TWO_WAYS)
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_the_part_of_a_sum_in_a_cell_must_fit_too(threads: int, shown: str) -> None:
    view = crown.View(f"SELECT {shown} FROM a", schema=SCHEMA, threads=threads)
    view.insert("a", [(1, 5)])
    try:
        view.insert("a", [(1, LARGEST), (2, -LARGEST), (3, LARGEST - 5)])
        assert next(iter(view))[0] == LARGEST
    except InvalidChange as error:
        assert error.code == "CROWN-OVERFLOW" and next(iter(view))[0] == 5  # noqa: PT017 - either outcome is right
    refused(view, lambda: view.insert("a", [(4, LARGEST), (5, LARGEST), (6, LARGEST)]))


@pytest.mark.parametrize("shown", TWO_WAYS)
def test_row_by_row_and_as_a_batch(shown: str) -> None:
    by_row, by_batch = (crown.View(f"SELECT {shown} FROM a", schema=SCHEMA) for _ in range(2))
    rows = [(1, LARGEST), (2, -LARGEST), (3, LARGEST)]
    for row in rows:
        by_row.insert("a", [row])
    by_batch.insert("a", rows)
    assert list(by_row) == list(by_batch)
    for view in (by_row, by_batch):
        refused(view, partial(view.insert, "a", [(4, 1)]))
        refused(view, partial(view.delete, "a", [(2, -LARGEST)]))
        view.apply({"a": pa.table({"k": [4, 5], "x": [1, -1]})})
        view.delete("a", [(4, 1), (5, -1)])
    assert list(by_row) == list(by_batch)


@pytest.mark.parametrize("shown", TWO_WAYS)
def test_sums_per_group_and_along_a_join(shown: str) -> None:
    sql = f"SELECT a.k, {shown} FROM a JOIN b ON a.k = b.k GROUP BY a.k"
    view = crown.View(sql, schema=SCHEMA)
    view.insert("b", [(1, 0), (1, 1), (2, 0)])
    view.insert("a", [(1, LARGEST // 2), (2, LARGEST)])
    refused(view, lambda: view.insert("b", [(1, 2)]))
    refused(view, lambda: view.insert("a", [(1, LARGEST // 2)]))
    # Together they come back.
    view.apply([("b", [(1, 2)]), ("a", [(1, -(LARGEST // 2))])])
    assert {row[0]: row[1] for row in view} == {1: 0, 2: LARGEST}
    view.apply([("a", pa.table({"k": [2, 2], "x": [LARGEST, -LARGEST]}))])
    assert {row[0]: row[1] for row in view} == {1: 0, 2: LARGEST}


@pytest.mark.parametrize("shown", TWO_WAYS)
def test_sums_of_wide_decimals(shown: str) -> None:
    schema = "CREATE TABLE a (x DECIMAL(38,0))"
    view = crown.View(f"SELECT {shown} FROM a", schema=schema)
    view.insert("a", [(WIDE,), (NEGATED,), (WIDE,)])
    assert next(iter(view))[0] == WIDE
    refused(view, lambda: view.insert("a", [(Decimal(1),)]))
    refused(view, lambda: view.insert("a", [(WIDE,), (WIDE,), (WIDE,)]))
    view.delete("a", [(WIDE,)])
    assert next(iter(view))[0] == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_of_a_row(threads: int) -> None:
    view = crown.View("SELECT k, x FROM a", schema=SCHEMA, threads=threads)
    delta = view.apply(copies("a", [(1, 1, LARGEST)]))
    assert delta["_multiplicity"].to_pylist() == [LARGEST]
    assert view.multiplicity((1, 1)) == len(view) == LARGEST
    refused(view, lambda: view.apply(copies("a", [(1, 1, 1)])))
    refused(view, lambda: view.apply(copies("a", [(1, 1, LARGEST), (2, 2, 1)])))
    assert (2, 2) not in view
    assert set(view.sample(3, seed=1)["x"].to_pylist()) == {1}
    with pytest.raises(CrownError, match="not in the table"):
        view.apply([*copies("a", [(1, 1, LARGEST)], "delete").items(), *copies("a", [(1, 1, 1)], "delete").items()])
    view.apply(copies("a", [(1, 1, LARGEST)], "delete"))
    assert list(view) == []


def test_copies_that_come_back_within_a_batch() -> None:
    view = crown.View("SELECT k, x FROM a", schema=SCHEMA)
    parts = [*copies("a", [(1, 1, LARGEST)] * 3).items(), *copies("a", [(1, 1, LARGEST)] * 2, "delete").items()]
    assert view.apply(parts)["_multiplicity"].to_pylist() == [LARGEST]
    refused(view, lambda: view.apply(copies("a", [(3, 3, LARGEST), (3, 3, LARGEST), (3, 3, 2)])))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x FROM a JOIN b ON a.k = b.k",
        "SELECT a.k FROM a CROSS JOIN b",
        "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k",
        "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k",
        "SELECT COUNT(*), MIN(b.y) FROM a JOIN b ON a.k = b.k",
        "SELECT a.k, COUNT(b.y) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT a.k + b.k FROM a JOIN b ON a.k = b.k",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k EXCEPT ALL SELECT 7",
    ],
)
def test_copies_multiplied_along_a_join(sql: str) -> None:
    if sql.endswith("SELECT 7"):
        sql = sql.replace("SELECT 7", "SELECT k FROM b WHERE k > 5")
    view = crown.View(sql, schema=SCHEMA)
    view.apply(copies("a", [(1, 1, 2**40)]))
    view.apply(copies("b", [(1, 1, 2**22)]))
    refused(view, lambda: view.apply(copies("b", [(1, 1, 2**22)])))
    refused(view, lambda: view.apply(copies("a", [(1, 1, 2**40)])))
    view.apply(copies("b", [(1, 1, 2**22 - 1)]))
    refused(view, lambda: view.apply(copies("b", [(1, 1, 1)])))
    view.apply([*copies("b", [(1, 1, 1)]).items(), *copies("a", [(1, 1, 1)], "delete").items()])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM a",
        "SELECT k % 1 FROM a",
        "SELECT COUNT(*) FROM a",
        "SELECT COUNT(x), MAX(k) FROM a",
        "SELECT COUNT(DISTINCT k), COUNT(*), MIN(k) FROM a",
        "SELECT k FROM a EXCEPT ALL SELECT y FROM b",
        "SELECT k FROM a ORDER BY k LIMIT 3",
        "SELECT x % 1 FROM a INTERSECT ALL SELECT y FROM b",
        "SELECT AVG(x), MAX(x) FROM a",
    ],
)
def test_rows_that_become_equal(sql: str) -> None:
    """Two rows of the table are one of the result, or of a group."""
    view = crown.View(sql, schema=SCHEMA)
    view.apply(copies("a", [(1, 1, LARGEST)]))
    refused(view, lambda: view.apply(copies("a", [(1, 2, 1)])))
    refused(view, lambda: view.apply(copies("a", [(1, 2, LARGEST)])))
    view.apply([*copies("a", [(1, 1, 1)], "delete").items(), *copies("a", [(1, 2, 1)]).items()])
    view.apply([*copies("a", [(1, 1, LARGEST - 1)], "delete").items(), *copies("a", [(1, 3, LARGEST - 1)]).items()])
    view.apply([*copies("a", [(1, 2, LARGEST - 1)]).items(), *copies("a", [(1, 3, LARGEST - 1)], "delete").items()])


def test_a_union_of_many_copies() -> None:
    """A UNION ALL keeps nothing, so that it tells when it is asked: with multiplicities, never wrapped."""
    view = crown.View("SELECT k FROM a UNION ALL SELECT y FROM b", schema=SCHEMA)
    view.apply(copies("a", [(1, 1, LARGEST)]))
    view.apply(copies("b", [(1, 1, LARGEST)]))
    for ask in (lambda: view.to_arrow(multiplicity=True), lambda: view.multiplicity((1,))):
        with pytest.raises(CrownError) as raised:
            ask()
        assert raised.value.code == "CROWN-OVERFLOW"
    assert view.sample(3, seed=1)["k"].to_pylist() == [1, 1, 1]
    view.apply(copies("a", [(1, 1, LARGEST)], "delete"))
    assert view.multiplicity((1,)) == LARGEST


def test_a_result_too_long_to_write_out() -> None:
    view = crown.View("SELECT k FROM a", schema=SCHEMA)
    view.apply(copies("a", [(1, 1, LARGEST)]))
    with pytest.raises(CrownError, match="multiplicity=True"):
        view.to_arrow()
    assert view.to_arrow(multiplicity=True)["_multiplicity"].to_pylist() == [LARGEST]


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_that_no_memory_holds_are_not_listed(threads: int) -> None:
    view = crown.View("SELECT k, x FROM a", schema=SCHEMA, threads=threads)
    view.apply(copies("a", [(1, 1, LARGEST - 1), (2, 2, 1)]))
    reads: list[Callable[[], Any]] = [
        lambda: view.lookup(k=1),
        lambda: view.sample(1, where={"k": 1}),
        lambda: view.page(0, 2**62),
        lambda: view.page(2**61, 2**57),
        lambda: view[5:],
    ]
    for read in reads:
        with pytest.raises(CrownError) as raised:
            read()
        assert raised.value.code == "CROWN-TOO-MANY-ROWS"
    assert view.lookup(k=2)["x"].to_pylist() == [2]
    assert view.page(2**62, 2)["x"].to_pylist() == [1, 1] == view.head(2)["x"].to_pylist()
    assert view.page(LARGEST, 2**62).num_rows == 0


def test_many_copies_survive_a_reload(tmp_path: Any) -> None:
    view = crown.View("SELECT a.k, b.y FROM a JOIN b ON a.k = b.k", schema=SCHEMA)
    view.apply(copies("a", [(1, 1, LARGEST)]))
    view.apply(copies("b", [(1, 1, 1)]))
    view.save(tmp_path / "view")
    loaded = crown.View.load(tmp_path / "view")
    assert loaded.multiplicity((1, 1)) == len(loaded) == LARGEST
    refused(loaded, lambda: loaded.insert("b", [(1, 1)]))


def test_float_sums_of_many_copies() -> None:
    """A float holds 53 bits of a count; what comes with one count and goes with others leaves nothing behind."""
    view = crown.View("SELECT SUM(CAST(x AS DOUBLE)), MAX(x) FROM a", schema=SCHEMA)
    view.insert("a", [(0, 3)])
    view.apply(copies("a", [(1, 1, 2**53 + 1)]))
    view.apply(copies("a", [(1, 1, 2**53)], "delete"))
    view.apply(copies("a", [(1, 1, 1)], "delete"))
    assert list(view) == [(3.0, 3)]


@pytest.mark.parametrize("count", [0, -1, None])
def test_counts_that_are_none(count: int | None) -> None:
    view = crown.View("SELECT k FROM a", schema=SCHEMA)
    with pytest.raises(InvalidChange, match="_multiplicity must be a positive number"):
        view.apply(copies("a", [(1, 1, count)]))
    too_many = pa.table({"k": [1], "x": [1], "_multiplicity": pa.array([2**63], pa.uint64())})
    with pytest.raises(InvalidChange, match="_multiplicity"):
        view.apply({"a": too_many})
