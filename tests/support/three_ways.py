"""Compare a view with DuckDB after every batch in three ways: on one thread, on two, and without deltas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import crown
from crown.testing import multiset
from crown.testing.compare import differences, split_delta


class Batches(Protocol):
    """Random batches of changes, and what DuckDB answers over the rows so far."""

    def batches(self, count: int) -> Iterator[Any]: ...

    def answer(self, sql: str) -> Counter[Any]: ...


def check_three_ways(
    sql: str,
    duck: str,
    schema: Any,
    tables: Batches,
    directory: Path,
    where: str,
    rows_of: Callable[[Iterable[Any]], Counter[Any]] = multiset,
) -> None:
    """Check rows, their number and the sum of deltas; the views are saved and loaded in between."""
    views = [crown.View(sql, schema), crown.View(sql, schema, threads=2), crown.View(sql, schema, deltas=False)]
    shown: list[Counter[Any]] = [Counter() for _ in views]
    for number, batch in enumerate(tables.batches(8)):
        place = f"{where}, batch {number}"
        deltas = [view.apply(batch) for view in views]
        expected = tables.answer(duck)
        for view, delta, kept in zip(views, deltas, shown, strict=True):
            whole = view.to_arrow()
            whole.validate(full=True)
            got = rows_of(zip(*(column.to_pylist() for column in whole.columns), strict=True))
            assert differences(expected, got) == (Counter(), Counter()), place
            assert rows_of(view) == got, place
            assert len(view) == got.total(), place
            came, went = split_delta(delta)
            assert not came & went, place
            kept.update(came)
            kept.subtract(went)
        for kept in shown[:2]:
            assert +kept == multiset(views[0]), f"{place}: deltas"
        if number == 4:
            for position, view in enumerate(views):
                view.save(directory / "view")
                views[position] = crown.View.load(directory / "view")
