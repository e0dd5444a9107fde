"""Batches are netted before they touch the view: what comes and goes is judged in order, whatever atoms show of it."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import crown

SCHEMA = "CREATE TABLE g (src BIGINT, dst BIGINT)"
WHOLE = "SELECT a.src, a.dst, b.dst AS far FROM g a JOIN g b ON a.dst = b.src"
FILTERED = WHOLE + " WHERE a.src > 1 AND b.dst > 1"
# A deletion is checked against what the query reads of its row: here always all of it.
CASES = {
    "all columns in each atom": (WHOLE, False),
    "all columns in each atom, NULLs": (WHOLE, True),
    "some columns in one atom": ("SELECT DISTINCT a.src, a.dst FROM g a JOIN g b ON a.dst = b.src", False),
    "a filter on each atom": (FILTERED, False),
}


@pytest.mark.parametrize("sql, nulls", CASES.values(), ids=CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_deletions_of_absent_rows_are_found_in_order(rng: random.Random, sql: str, nulls: bool, threads: int) -> None:
    """The model counts rows; each deletion that finds none is set aside, all others count."""
    view = crown.View(sql, SCHEMA, on_invalid="quarantine", threads=threads)
    alive: Counter[tuple[int | None, int | None]] = Counter()
    values = [1, 2, 3, 4, *([None] if nulls else [])]
    for _ in range(12):
        words, rows, absent = [], [], []
        for position in range(rng.choice([1, 5, 60])):
            row = (rng.choice(values), rng.choice(values))
            word = rng.choice(["insert", "delete"])
            words.append(word)
            rows.append(row)
            if word == "insert":
                alive[row] += 1
            elif alive[row] > 0:
                alive[row] -= 1
            else:
                absent.append(position)
        columns = dict(
            zip(["src", "dst"], (pa.array(column, pa.int64()) for column in zip(*rows, strict=True)), strict=True)
        )
        view.apply({"g": pa.table({**columns, "_change_type": words})})
        taken = crown.View(sql, SCHEMA)
        taken.insert("g", sorted(alive.elements(), key=str))
        assert Counter(view) == Counter(taken)
        # Rows that no atom takes are nobody's concern, absent or not.
        found = view.rejected()["position"].to_pylist()
        assert sorted(found) == absent if sql != FILTERED and not nulls else set(found) <= set(absent), (rows, words)
