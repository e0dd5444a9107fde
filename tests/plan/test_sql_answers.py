"""SQL to plan to answer, without the kernel: written and random queries through the interpreter, DuckDB as judge."""

from __future__ import annotations

import random

import pytest

from crown.errors import SqlError
from crown.ir.query import Top
from crown.plan import from_json, plan, to_json
from crown.plan.cells.distribute import distribute
from crown.sql import parse
from tests.sql.generate import SCHEMA, random_query, random_tables
from tests.sql.test_oracle import WRITTEN, Tables, duckdb_answer, loaded
from tests.support.interpreter import run, run_cells
from tests.support.judge import differences, multiset
from tests.support.reference import evaluate
from tests.support.render import render_plan


def check(sql: str, tables: Tables, cells: int, schema: str = SCHEMA) -> None:
    query = parse(sql, loaded(schema))
    planned = plan(query)
    assert from_json(to_json(planned)) == planned
    # Ties at a limit are cut differently by DuckDB.
    rows = (
        evaluate(query, tables) if isinstance(query.body, Top) or query.nested else duckdb_answer(sql, schema, tables)
    )
    spread = distribute(planned, cells)
    for got in (run(planned, tables), run_cells(spread.cell, spread.merge, tables)):
        if isinstance(query.body, Top):
            assert got.total() == len(rows), sql
            continue
        differs = differences(multiset(rows), multiset(list(got.elements())))
        assert not any(differs), f"{sql}\n{render_plan(planned)}\nmissing, extra {differs}\n{tables}\n{spread}"


@pytest.mark.parametrize("sql", WRITTEN)
def test_written_queries(sql: str, rng: random.Random) -> None:
    for _ in range(2):
        check(sql, random_tables(rng), rng.choice([2, 3, 4, 6]))


def test_random_queries(rng: random.Random) -> None:
    refused = 0
    for _ in range(100):
        sql = random_query(rng)
        try:
            check(sql, random_tables(rng), rng.choice([2, 3, 4, 6]))
        except SqlError:
            refused += 1
    assert refused < 50
