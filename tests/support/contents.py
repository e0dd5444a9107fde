"""Small random contents for schemas that are given as CREATE TABLE text.

A column's name says what it refers to: keys are drawn from 0 to the number of rows of a table, so that foreign keys hit
most of the time and miss now and then.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from tests.support.judge import Row

# What queries compare with; other strings are a, b, ab or NULL.
VOCABULARY: dict[str, tuple[str, ...]] = {
    "r_name": ("ASIA", "EUROPE"),
    "n_name": ("FRANCE", "GERMANY", "CHINA"),
    "c_mktsegment": ("BUILDING", "MACHINERY"),
    "o_orderpriority": ("1-URGENT", "2-HIGH", "5-LOW"),
    "o_orderstatus": ("F", "O"),
    "l_returnflag": ("R", "N"),
    "l_shipmode": ("MAIL", "SHIP", "AIR"),
    "p_name": ("dark green", "blue", "greenish"),
    "p_type": ("PROMO STEEL", "SMALL STEEL", "PROMO TIN"),
    "p_container": ("SM BOX", "LG BOX"),
    "s_comment": ("fine", "Customer Complaints"),
    "p_mfgr": ("M1", "M2", "M3"),
    "p_category": ("MFGR#12", "MFGR#13"),
    "c_region": ("ASIA", "AMERICA"),
    "s_region": ("ASIA", "AMERICA"),
    "c_nation": ("CHINA", "PERU"),
    "s_nation": ("CHINA", "PERU"),
    "c_city": ("A", "B", "C"),
    "s_city": ("A", "B", "C"),
}
NUMBERS: dict[str, tuple[int, ...]] = {
    "d_year": (1993, 1994),
    "production_year": (1999, 2001, 2005),
    "d_yearmonthnum": (199301, 199302),
    "d_weeknuminyear": (1, 2),
    "p_size": (1, 2, 3, 4),
}


def contents(schema: str, sizes: Mapping[str, int], rng: random.Random) -> dict[str, list[Row]]:
    """Rows for each table: `sizes` rows, or the default of key `""`; keys of one table are below that number."""
    result = {}
    for statement in sqlglot.parse(schema, read="spark"):
        if statement is None:
            continue
        table = statement.this.this.name
        columns = [
            (d.this.name, d.kind.sql(dialect="duckdb"), not _nullable(d))
            for d in statement.find_all(exp.ColumnDef)
            if d.kind is not None
        ]
        key = _primary_key(statement)
        count = sizes.get(table, sizes[""])
        rows: dict[Any, Row] = {}
        for number in range(count):
            row = tuple(
                number if [name] == key else _value(name, type_, required, rng, count)
                for name, type_, required in columns
            )
            identity = tuple(v for v, (name, *_) in zip(row, columns, strict=True) if name in key) or number
            rows[identity] = row
        result[table] = list(rows.values())
    return result


def _nullable(column: exp.ColumnDef) -> bool:
    return not any(isinstance(c.kind, exp.NotNullColumnConstraint) for c in column.constraints)


def _primary_key(statement: exp.Expr) -> list[str]:
    table_level = statement.find(exp.PrimaryKey)
    if table_level is not None:
        return [part.name for part in table_level.expressions]
    return [
        c.parent.this.name
        for c in statement.find_all(exp.ColumnConstraint)
        if isinstance(c.kind, exp.PrimaryKeyColumnConstraint) and isinstance(c.parent, exp.ColumnDef)
    ]


def _value(name: str, type_: str, required: bool, rng: random.Random, count: int) -> Any:
    if not required and rng.random() < 0.06:
        return None
    if name in VOCABULARY:
        return rng.choice(VOCABULARY[name])
    if name in NUMBERS:
        return rng.choice(NUMBERS[name])
    if "brand" in name:
        return f"{'MFGR' if name == 'p_brand' and rng.random() < 0.5 else 'Brand'}#{rng.randrange(1, 4)}"
    if type_.startswith("DECIMAL"):
        return Decimal(rng.randrange(0, 10 if "discount" in name else 4000)) / 100
    if type_ == "DATE":
        return datetime.date(1993, 1, 1) + datetime.timedelta(days=rng.randrange(0, 1200))
    if type_ == "INT":
        return rng.randrange(0, 8 if name.endswith(("key", "id")) else 40)
    return rng.choice(("a", "b", "ab", "ca"))
