"""The suites' queries over small random tables: the bound query, evaluated naively, agrees with DuckDB.

Values are drawn from the literals of the query itself (and their neighbours), so that its filters let rows through.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from crown.ir.tables import TableColumn
from crown.sql import load_schema
from crown.sql.schema.schema import Schema
from tests.sql.test_oracle import check
from tests.support.contents import compared, near

QUERIES = Path(__file__).parents[1] / "queries"
PATHS = [p for p in sorted(QUERIES.glob("*/*.sql")) if p.stem != "schema"]
MANY_ATOMS = {"linked"}  # fourteen atoms by nested loops take too long


DEFAULTS: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, 10],
    "decimal": [Decimal("0.05"), Decimal("1.00"), Decimal("5.00"), Decimal("20.00")],
    "string": ["x", "other"],
    "date": [datetime.date(1994, 2, 1), datetime.date(1995, 10, 1)],
    "timestamp": [datetime.datetime(2020, 1, 1)],
}


def _value(column: TableColumn, literals_of: dict[str, list[exp.Literal]], rng: random.Random) -> Any:
    if column.nullable and rng.random() < 0.1:
        return None
    kind = next(k for k in DEFAULTS if column.type.startswith(k))
    literals = literals_of.get(column.name.lower(), [])
    if kind == "int" and not literals and column.name.lower().endswith(("key", "id", "src", "dst", "v")):
        return rng.choice([1, 1, 2])
    if literals and rng.random() < 0.9:
        found = near(rng.choice(literals), kind, rng)
        if found is not None:
            return found
    return rng.choice(DEFAULTS[kind])


def _tables(sql: str, schema: Schema, rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    literals = compared(sql)
    tables: dict[str, list[dict[str, Any]]] = {}
    for table in schema.tables.values():
        rows: dict[Any, dict[str, Any]] = {}
        for _ in range(rng.choice([2, 4, 5])):
            row = {c.name: _value(c, literals, rng) for c in table.columns}
            key = tuple(row[k] for k in table.primary_key) if table.primary_key else len(rows)
            rows[key] = row
        tables[table.name] = list(rows.values())
    return tables


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_oracle_suites(path: Path, rng: random.Random) -> None:
    if path.stem in MANY_ATOMS:
        pytest.skip("too many atoms for nested loops")
    text = (path.parent / "schema.sql").read_text()
    schema = load_schema(text)
    sql = path.read_text()
    for _ in range(3):
        check(sql, _tables(sql, schema, rng), text)
