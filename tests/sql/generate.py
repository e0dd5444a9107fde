"""Random small tables, with NULLs and duplicates, and random queries over them."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

SCHEMA = """
CREATE TABLE r (a INT, b INT, c STRING, p DECIMAL(6,2));
CREATE TABLE s (a INT, b BIGINT NOT NULL, c STRING);
CREATE TABLE t (k BIGINT NOT NULL PRIMARY KEY, v DOUBLE, d DATE);
"""

_COLUMNS = {"r": ("a", "b"), "s": ("a", "b"), "t": ("k", "v")}


def random_tables(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    def small() -> int | None:
        return rng.choice([None, 0, 1, 1, 2, 3])

    def text() -> str | None:
        return rng.choice([None, "a", "b", " ab ", ""])

    rows = range(rng.choice([0, 1, 4, 6]))
    r = [
        {"a": small(), "b": small(), "c": text(), "p": rng.choice([None, Decimal("1.50"), Decimal("2.25")])}
        for _ in rows
    ]
    s = [{"a": small(), "b": rng.randrange(4), "c": text()} for _ in range(rng.choice([0, 1, 4, 6]))]
    keys = rng.sample(range(5), rng.choice([0, 2, 4]))
    dates = [None, datetime.date(2020, 1, 15), datetime.date(2020, 2, 1), datetime.date(2019, 12, 31)]
    t = [{"k": k, "v": rng.choice([None, 0.0, 1.0, 2.5]), "d": rng.choice(dates)} for k in keys]
    return {"r": r, "s": s, "t": t}


def random_query(rng: random.Random) -> str:
    """Joins of two to three tables with outer joins, conditions, groups and set operations thrown in."""
    core = _select(rng)
    if rng.random() < 0.15:
        operator = rng.choice(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
        core = f"SELECT {_column(rng, 'x', 'r')} FROM r x {operator} SELECT {_column(rng, 'y', 's')} FROM s y"
    return core


def _column(rng: random.Random, alias: str, table: str) -> str:
    return f"{alias}.{rng.choice(_COLUMNS[table])}"


def _source(rng: random.Random, table: str) -> str:
    kind = rng.random()
    a, b = _COLUMNS[table]
    if kind < 0.7:
        return table
    if kind < 0.8:
        return f"(SELECT {a}, {b} FROM {table} WHERE {b} > 0)"
    if kind < 0.87:
        return f"(SELECT DISTINCT {a}, {b} FROM {table})"
    if kind < 0.94:
        return f"(SELECT {a}, max({b}) {b} FROM {table} GROUP BY {a})"
    return f"(SELECT {a}, {b} FROM {table} UNION ALL SELECT {a}, {b} FROM {table} WHERE {a} = 1)"


def _select(rng: random.Random) -> str:
    tables = [rng.choice("rst") for _ in range(rng.choice([1, 2, 2, 3]))]
    aliases = ["x", "y", "z"][: len(tables)]
    used = list(zip(aliases, tables, strict=True))
    text = f"{_source(rng, tables[0])} x"
    for index in range(1, len(tables)):
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        own = used[index]
        other = rng.choice(used[:index])
        on = f"{_column(rng, *own)} = {_column(rng, *other)}"
        if rng.random() < 0.3:
            on += f" AND {_column(rng, *rng.choice([own, other]))} {rng.choice(['>', '<=', '<>'])} 1"
        if rng.random() < 0.2:
            on += f" AND {_column(rng, *own)} = {_column(rng, *rng.choice(used[:index]))}"
        text += f" {kind} {_source(rng, tables[index])} {aliases[index]} ON {on}"
    where = [_predicate(rng, used) for _ in range(rng.choice([0, 0, 1, 2]))]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    columns = [_column(rng, *rng.choice(used)) for _ in range(rng.choice([1, 2, 3]))]
    if rng.random() < 0.35:
        aggregate = rng.choice(["count(*)", "count({0})", "sum({0})", "min({0})", "avg({0})", "count(DISTINCT {0})"])
        shown = aggregate.format(_column(rng, *rng.choice(used)))
        having = rng.choice(["", "", " HAVING count(*) > 1"])
        if rng.random() < 0.3:
            return f"SELECT {shown} n FROM {text}{condition}"
        keys = ", ".join(dict.fromkeys(columns))
        return f"SELECT {keys}, {shown} n FROM {text}{condition} GROUP BY {keys}{having}"
    shown_columns = ", ".join(f"{c} AS o{i}" for i, c in enumerate(columns))
    return f"SELECT {rng.choice(['', '', 'DISTINCT '])}{shown_columns} FROM {text}{condition}"


def _predicate(rng: random.Random, used: list[tuple[str, str]]) -> str:
    subject = rng.choice(used)
    column = _column(rng, *subject)
    other = _column(rng, *rng.choice(used))
    inner = rng.choice("rst")
    match rng.randrange(11):
        case 0:
            return f"{column} = 1"
        case 1:
            return f"{column} {rng.choice(['<', '>=', '<>', '='])} {other}"
        case 2:
            return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
        case 3:
            return f"{column} {rng.choice(['', 'NOT '])}IN (SELECT {_column(rng, 'i', inner)} FROM {inner} i)"
        case 4:
            correlated = f"{_column(rng, 'i', inner)} = {column}"
            extra = rng.choice(["", f" AND {_column(rng, 'i', inner)} > 1", f" AND {column} > 0"])
            return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner} i WHERE {correlated}{extra})"
        case 5:
            return f"({column} = 1 OR {other} > 1)"
        case 9:
            extreme = f"(SELECT {rng.choice(['min', 'max', 'sum'])}({_column(rng, 'i', inner)}) FROM {inner} i"
            return f"{column} {rng.choice(['<', '=', '>='])} {extreme} WHERE {_column(rng, 'i', inner)} = {other})"
        case 10:
            keys = f"{_column(rng, 'i', inner)} = {other}"
            compared = f"{_column(rng, 'i', inner)} {rng.choice(['<', '>=', '<>'])} {column}"
            return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner} i WHERE {keys} AND {compared})"
        case 6:
            return f"coalesce({column}, 1) = 1"
        case 7:
            negation = rng.choice(["", "NOT "])
            condition = f"{_column(rng, 'i', inner)} = {other}"
            return f"{column} {negation}IN (SELECT {_column(rng, 'i', inner)} FROM {inner} i WHERE {condition})"
        case _:
            second = rng.choice("rst")
            join = f"{_column(rng, 'i', inner)} {rng.choice(['=', '=', '<'])} {_column(rng, 'j', second)}"
            tables = f"{inner} i, {second} j"
            test = f"SELECT 1 FROM {tables} WHERE {join} AND {_column(rng, 'i', inner)} = {column}"
            return f"{rng.choice(['', 'NOT '])}EXISTS ({test})"
