"""Long chains of outer joins, whose left side is stored, return what DuckDB returns after every batch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import crown

TABLES = 7
SCHEMA = ";".join(f"CREATE TABLE t{i} (k INT, v{i} INT)" for i in range(TABLES))
CHAINS = {
    "by the table before": "FULL JOIN t{1} ON t{0}.k = t{1}.k",
    "by other columns": "FULL JOIN t{1} ON t{0}.v{0} = t{1}.k",
    "by the first table": "FULL JOIN t{1} ON t0.k = t{1}.k",
    "USING": "FULL JOIN t{1} USING (k)",
    "RIGHT": "RIGHT JOIN t{1} ON t{0}.k = t{1}.k",
    "compared": "FULL JOIN t{1} ON t{0}.k = t{1}.k AND t{0}.v{0} < t{1}.v{1}",
}


def _query(chain: str) -> str:
    return "SELECT * FROM t0 " + " ".join(CHAINS[chain].format(i - 1, i) for i in range(1, TABLES))


@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain: str, rng: random.Random) -> None:
    sql = _query(chain)
    view = crown.View(sql, SCHEMA)
    database = duckdb.connect()
    database.execute(SCHEMA)
    held: dict[str, list[tuple[Any, ...]]] = {f"t{i}": [] for i in range(TABLES)}
    shown: Counter[tuple[Any, ...]] = Counter()
    for _ in range(8):
        changes = []
        for table, rows in held.items():
            for _ in range(rng.randint(0, 3)):
                if rows and rng.random() < 0.4:
                    row = rows.pop(rng.randrange(len(rows)))
                    changes.append((table, row, -1))
                    database.execute(
                        f"DELETE FROM {table} WHERE rowid = (SELECT MIN(rowid) FROM {table} WHERE {_same(table, row)})"
                    )
                else:
                    row = tuple(rng.choice([None, 1, 2, 3]) for _ in range(2))
                    rows.append(row)
                    changes.append((table, row, 1))
                    database.execute(f"INSERT INTO {table} VALUES (?, ?)", row)
        for table, row, weight in changes:
            delta = (view.insert if weight > 0 else view.delete)(table, [row])
            for *values, change in _changes(delta):
                shown[tuple(values)] += change
        expected = Counter(database.execute(sql).fetchall())
        assert Counter(tuple(row) for row in view) == expected
        assert len(view) == expected.total()
        assert +shown == expected


def _changes(delta: pa.Table) -> Iterator[tuple[Any, ...]]:
    kinds = delta["_change_type"].to_pylist()
    counts = delta["_multiplicity"].to_pylist() if "_multiplicity" in delta.column_names else [1] * len(kinds)
    kept = [name for name in delta.column_names if name not in ("_change_type", "_multiplicity")]
    for row, kind, count in zip(zip(*(delta[n].to_pylist() for n in kept), strict=True), kinds, counts, strict=True):
        yield (*row, count if kind == "insert" else -count)


def _same(table: str, row: tuple[Any, ...]) -> str:
    names = ("k", f"v{table[1:]}")
    return " AND ".join(
        f"{name} IS NOT DISTINCT FROM {'NULL' if v is None else v}" for name, v in zip(names, row, strict=True)
    )
