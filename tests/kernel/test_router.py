"""Routing: every result meets in exactly one cell, and equal values go to the same cell in every process."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa

from crown import _kernel
from crown.plan import plan, to_json
from crown.plan.cells.distribute import distribute
from crown.sql import parse

SCHEMA = "CREATE TABLE r (a BIGINT, b STRING); CREATE TABLE s (b STRING, c BIGINT)"
JOIN = "SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b"


def routed(router: _kernel.Router, table: str, rows: pa.Table) -> dict[int, pa.Table]:
    return {cell: pa.table(part) for cell, part in router.route(table, rows)}


def test_each_result_is_in_one_cell(rng: random.Random) -> None:
    cell = distribute(plan(parse(JOIN, SCHEMA)), 4).cell
    router = _kernel.Router(to_json(cell))
    r = [(rng.randrange(50), rng.choice(["x", "y", "z", None])) for _ in range(60)]
    s = [(rng.choice(["x", "y", "z", None]), rng.randrange(50)) for _ in range(60)]
    parts = {
        "r": routed(router, "r", pa.table({"a": [a for a, _ in r], "b": [b for _, b in r]})),
        "s": routed(router, "s", pa.table({"b": [b for b, _ in s], "c": [c for _, c in s]})),
    }
    found: Counter[tuple[object, ...]] = Counter()
    for number in range(4):
        engine = _kernel.Engine(to_json(cell))
        engine.apply([(name, cells[number]) for name, cells in parts.items() if number in cells])
        result = pa.table(engine.rows())
        found.update(zip(*(column.to_pylist() for column in result.columns), strict=True))
    assert found == Counter((a, b, c) for a, b in r for d, c in s if b is not None and b == d)


def test_control_columns_travel_and_rows_keep_their_order() -> None:
    cell = distribute(plan(parse(JOIN, SCHEMA)), 2).cell
    rows = pa.table({"a": range(100), "b": ["k"] * 100, "_change_type": ["insert"] * 100, "more": range(100)})
    parts = routed(_kernel.Router(to_json(cell)), "r", rows)
    for part in parts.values():
        assert part.column_names == ["a", "b", "_change_type", "more", "_atoms"]
        assert part["a"].to_pylist() == sorted(part["a"].to_pylist())
        assert set(part["_atoms"].to_pylist()) == {1}


def test_hashes_never_change() -> None:
    """A saved state and its stream outlive the process: where values go is part of the format."""
    cell = distribute(plan(parse(JOIN, SCHEMA)), 4).cell
    rows = pa.table({"b": [f"key {i}" for i in range(8)], "c": [0] * 8})
    parts = routed(_kernel.Router(to_json(cell)), "s", rows)
    again = routed(
        _kernel.Router(to_json(cell)), "s", rows.cast(pa.schema([("b", pa.large_string()), ("c", pa.int8())]))
    )
    place = {cell: part["b"].to_pylist() for cell, part in parts.items()}
    assert place == {cell: part["b"].to_pylist() for cell, part in again.items()}


def test_a_keyed_row_that_moves_leaves_its_old_cell() -> None:
    schema = "CREATE TABLE r (k BIGINT PRIMARY KEY, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT)"
    cell = distribute(plan(parse("SELECT r.k, s.b, s.c FROM r JOIN s ON r.b = s.b", schema)), 4).cell
    router = _kernel.Router(to_json(cell))
    engines = [_kernel.Engine(to_json(cell)) for _ in range(4)]

    def apply(table: str, rows: pa.Table) -> None:
        for number, part in router.route(table, rows):
            engines[number].apply([(table, part)])

    apply("s", pa.table({"b": range(20), "c": range(20)}))
    for b in range(20):
        apply("r", pa.table({"k": [1], "b": [b]}))
        results = [row for engine in engines for row in engine.iterate()]
        assert results == [(1, b, b)]
    apply("r", pa.table({"k": [1], "_change_type": ["delete"]}))
    assert sum(engine.count() for engine in engines) == 0
