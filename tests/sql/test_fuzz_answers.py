"""Odd texts that both Crown and DuckDB accept have one answer: a part that Crown drops would show.

The text is read in DuckDB's own dialect, so that no translation stands between the two.
"""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pytest

from crown.errors import CrownError
from crown.ir.query import Top
from crown.sql import parse
from tests.sql.generate import SCHEMA, random_query, random_tables
from tests.sql.odd_texts import mutated, regrown, spliced
from tests.sql.test_oracle import WRITTEN, _rounded, connection, loaded
from tests.support.judge import differences, multiset
from tests.support.reference import evaluate


def _load(opened: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in tables.items():
        opened.execute(f"DELETE FROM {name}")
        for row in rows:
            opened.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", list(row.values()))


@pytest.mark.parametrize("count", [500, pytest.param(30_000, marks=pytest.mark.slow)])
def test_odd_texts_have_duckdbs_answer(rng: random.Random, count: int) -> None:
    opened = connection(SCHEMA)
    compared = 0
    tables = random_tables(rng)
    _load(opened, tables)
    for number in range(count):
        if number % 50 == 0:
            tables = random_tables(rng)
            _load(opened, tables)
        base = random_query(rng) if rng.random() < 0.5 else rng.choice(WRITTEN)
        sql = rng.choice([mutated, mutated, regrown, spliced])(base, rng)
        try:
            query = parse(sql, loaded(SCHEMA), dialect="duckdb")
            expected = opened.execute(sql).fetchall()
        except (CrownError, duckdb.Error):
            continue
        try:
            got = evaluate(query, tables)
        except (ArithmeticError, ValueError):
            continue  # ANSI mode: an error where DuckDB has a NULL
        if any(value == -math.inf for row in expected for value in row):
            continue  # the logarithm of zero is NULL in Spark
        compared += 1
        if isinstance(query.body, Top):
            assert len(got) == len(expected), sql  # ties are cut differently
            continue
        missing, extra = differences(multiset(map(_rounded, expected)), multiset(map(_rounded, got)))
        assert not missing and not extra, f"{sql!r}\n{tables}\nmissing {missing}\nextra {extra}"
    assert compared > count // 50
