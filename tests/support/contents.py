"""Small random contents for schemas that are given as CREATE TABLE text.

Values are drawn from the literals that the query compares a column with (and their neighbours), so that its filters let
rows through. Keys are drawn from a small range, so that foreign keys hit most of the time and miss now and then.
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

KINDS = {"INT": "int", "BIGINT": "int", "DECIMAL": "decimal", "DATE": "date", "TEXT": "string"}


def contents(sql: str, schema: str, sizes: Mapping[str, int], rng: random.Random) -> dict[str, list[Row]]:
    """Rows for each table: `sizes` rows, or the default of key `""`; keys of one table are below that number."""
    literals = compared(sql)
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
                number if [name] == key else _value(name, type_, required, literals, rng)
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


def compared(sql: str) -> dict[str, list[exp.Literal]]:
    """By column name: the literals that the query compares it with."""
    found: dict[str, list[exp.Literal]] = {}
    for node in sqlglot.parse_one(sql, dialect="spark").find_all(exp.Predicate):
        columns = [c.name.lower() for c in node.find_all(exp.Column)]
        if len(set(columns)) == 1 and not node.find(exp.Query):
            found.setdefault(columns[0], []).extend(n for n in node.find_all(exp.Literal))
    return found


def near(literal: exp.Literal, kind: str, rng: random.Random) -> Any:
    """A value of the kind that equals the literal, matches it as a pattern, or is next to it; None if there is none."""
    text = literal.name
    try:
        if kind == "string":
            return text.replace("%", rng.choice(["", "x"]))
        if kind == "date":
            return datetime.date.fromisoformat(text) + datetime.timedelta(days=rng.choice([0, -1, 1, 5, -100]))
        if kind == "int":
            return max(0, int(text) + rng.choice([0, 0, 1, -1]))
        if kind == "decimal":
            return Decimal(text).quantize(Decimal("0.01")) + rng.choice([0, 0, -1, 1])
    except (ValueError, ArithmeticError):
        return None
    return None


def _value(name: str, type_: str, required: bool, literals: Mapping[str, list[exp.Literal]], rng: random.Random) -> Any:
    if not required and rng.random() < 0.06:
        return None
    kind = KINDS.get(type_.partition("(")[0], "string")
    if literals.get(name.lower()) and rng.random() < 0.8:
        value = near(rng.choice(literals[name.lower()]), kind, rng)
        if value is not None:
            return value
    if kind == "decimal":
        return Decimal(rng.randrange(0, 10 if "discount" in name else 4000)) / 100
    if kind == "date":
        return datetime.date(1993, 1, 1) + datetime.timedelta(days=rng.randrange(0, 1200))
    if kind == "int":
        return rng.randrange(0, 8 if name.endswith(("key", "id")) else 40)
    return rng.choice(("a", "b", "ab", "ca"))
