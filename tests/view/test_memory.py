"""State follows the live rows, not the history."""

from __future__ import annotations

from itertools import pairwise

import pytest

import crown

SCHEMA = "CREATE TABLE r (k BIGINT, a STRING); CREATE TABLE s (a STRING, b BIGINT)"
WINDOW = 400


@pytest.mark.parametrize("windows", [None, {"r": {"rows": WINDOW}, "s": {"rows": WINDOW}}])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT r.k, s.b FROM r JOIN s ON r.a = s.a",
        "SELECT r.a, COUNT(*) AS n, MAX(s.b) AS high FROM r JOIN s ON r.a = s.a GROUP BY r.a",
    ],
)
def test_memory_after_20_windows_of_new_keys_is_that_after_2(
    sql: str, windows: dict[str, dict[str, int]] | None
) -> None:
    view = crown.View(sql, SCHEMA, windows=windows)

    def rows(number: int) -> dict[str, list[tuple[object, ...]]]:
        keys = range(number * WINDOW, (number + 1) * WINDOW)
        return {"r": [(k, f"key {k}") for k in keys], "s": [(f"key {k}", -k) for k in keys]}

    sizes = []
    for before, number in pairwise(range(-1, 20)):
        view.apply(rows(number))
        if windows is None and before >= 0:
            for table, old in rows(before).items():
                view.delete(table, old)
        assert len(view) == WINDOW
        stats = view.stats()
        assert stats["interner"]["values"] <= 2 * WINDOW
        sizes.append(stats["bytes"])
    # Capacities grow in steps, so the first windows that are full count together.
    assert max(sizes[5:]) <= 1.05 * max(sizes[2:5])
