"""Queries of the shapes of SQLite's sqllogictest: wide expressions, long set operations, joins of up to 64 tables."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType

import pytest

import crown
from crown.plan import plan
from crown.sql import load_schema, parse
from tests.support.followed import Followed, follow
from tests.support.judge import Change, Judge

FIVE = "CREATE TABLE t1 (a INT, b INT, c INT, d INT, e INT)"
NINE = ";".join(
    f"CREATE TABLE t{i} (a{i} INT, b{i} INT, c{i} INT, d{i} INT, e{i} INT, x{i} VARCHAR(30))" for i in range(1, 10)
)
MANY = ";".join(f"CREATE TABLE t{i} (a{i} INT PRIMARY KEY, b{i} INT, x{i} VARCHAR(40))" for i in range(1, 65))
VALUES = [
    *(
        "a",
        "b",
        "c",
        "d",
        "e",
        "a-b",
        "b-c",
        "c-d",
        "d-e",
        "abs(a)",
        "abs(b-c)",
        "a+b*2",
        "a+b*2+c*3",
        "a+b*2+c*3+d*4",
        "a+b*2+c*3+d*4+e*5",
        "(a+b+c+d+e)/5",
        "-a",
        "NOT a>b",
    ),
    "coalesce(a,b,c,d,e)",
    "CASE WHEN a<b-3 THEN 111 WHEN a<=b THEN 222 WHEN a<b+3 THEN 333 ELSE 444 END",
    "CASE a+1 WHEN b THEN 111 WHEN c THEN 222 WHEN d THEN 333 WHEN e THEN 444 ELSE 555 END",
    "CASE WHEN c>(SELECT avg(c) FROM t1) THEN a*2 ELSE b*10 END",
    "(SELECT count(*) FROM t1 AS x WHERE x.b<t1.b)",
    "(SELECT count(*) FROM t1 AS x WHERE x.c>t1.c AND x.d<t1.d)",
]
CONDITIONS = [
    *("a>b", "b>c", "c>d", "d>e", "(e>c OR e<d)", "(e>a AND e<b)", "(a>b-2 AND a<b+2)", "(c<=d-2 OR c>=d+2)"),
    *("d NOT BETWEEN 2 AND 5", "c BETWEEN b-2 AND d+2", "a IS NULL", "c>(SELECT avg(c) FROM t1)"),
    *("e+d BETWEEN a+b-2 AND c+3", "coalesce(a,b,c,d,e)<>0", "b IS NOT NULL", "NOT (a=b OR c<>d)", "abs(a-e)<3"),
    "EXISTS(SELECT 1 FROM t1 AS x WHERE x.b<t1.b)",
    "NOT EXISTS(SELECT 1 FROM t1 AS x WHERE x.c=t1.d AND x.a>t1.e)",
    "(SELECT count(*) FROM t1 AS x WHERE x.b<t1.b)>2",
    "CASE WHEN EXISTS(SELECT 1 FROM t1 AS x WHERE x.a=t1.b) THEN c ELSE d END>3",
]


def expressions(rng: random.Random) -> str:
    """The shape of select1, select2 and select3."""
    shown = rng.sample(VALUES, rng.randint(1, 7))
    found = rng.sample(CONDITIONS, rng.randint(0, 3))
    where = f" WHERE {rng.choice([' AND ', ' OR ']).join(found)}" if found else ""
    order = ",".join(map(str, rng.sample(range(1, len(shown) + 1), len(shown))))
    return f"SELECT {', '.join(shown)} FROM t1{where} ORDER BY {order}"


def condition(rng: random.Random, table: int, depth: int = 2) -> str:
    column = f"{rng.choice('abcde')}{table}"
    inner = [condition(rng, table, depth - 1) for _ in range(3)] if depth else []
    forms = [
        f"{column} in ({','.join(str(rng.randint(1, 9)) for _ in range(rng.randint(3, 9)))})",
        f"{rng.randint(1, 9)}={column}",
        f"({column}={rng.randint(1, 9)})",
        f"{column} in (SELECT {rng.choice('abcde')}{(other := rng.randint(1, 9))} FROM t{other})",
        f"{column} BETWEEN {rng.randint(0, 4)} AND {rng.randint(3, 9)}",
        f"{column}{rng.choice(['<', '<=', '>', '>=', '<>'])}{rng.choice('abcde')}{table}",
    ]
    forms += [f"NOT ({inner[0]} OR {inner[1]})", f"({inner[0]} AND {inner[1]} AND {inner[2]})"] if inner else []
    return rng.choice(forms)


def sets(rng: random.Random) -> str:
    """The shape of select4: set operations of up to seven queries, and joins of up to nine tables."""
    if rng.random() < 0.4:
        tables = rng.sample(range(1, 10), rng.randint(2, 5))
        where = [f"({condition(rng, t)} OR {condition(rng, t)})" for t in tables if rng.random() < 0.6]
        where += [f"{rng.choice('abcde')}{a}={rng.choice('abcde')}{b}" for a, b in pairwise(tables)]
        rng.shuffle(where)
        shown = [
            rng.choice([f"x{t}", f"e{t}*{rng.randint(2, 999)}", f"d{t}", f"e{t}*9+b{rng.choice(tables)}"])
            for t in tables
        ]
        return f"SELECT {','.join(shown)} FROM {', '.join(f't{t}' for t in tables)} WHERE {' AND '.join(where)}"
    text = ""
    for _ in range(rng.randint(2, 7)):
        table = rng.randint(1, 9)
        word = rng.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]) if text else ""
        text += f" {word} SELECT {rng.choice('abcde')}{table} FROM t{table} WHERE {condition(rng, table)}"
        text += f" {rng.choice(['AND', 'OR'])} {condition(rng, table)}"
    return text.strip()


def joins(rng: random.Random) -> str:
    """The shape of select5: joins of up to 64 tables by key, with a column of each."""
    tables = rng.sample(range(1, 65), rng.choice([rng.randint(4, 64), 64]))
    shape = rng.choice(["chain", "chain", "star", "tree", "mixed"])
    where = [f"a{rng.choice(tables)}={rng.randint(1, 3)}"] if rng.random() < 0.8 else []
    for number, table in enumerate(tables[1:]):
        before = tables[: number + 1]
        other = {"chain": before[-1], "star": before[0], "tree": rng.choice(before)}.get(shape) or rng.choice(
            [before[-1], before[-1], rng.choice(before)]
        )
        sides = [f"a{table}", f"b{other}"] if shape != "mixed" or rng.random() < 0.7 else [f"b{table}", f"a{other}"]
        where.append("=".join(rng.sample(sides, 2)))
    rng.shuffle(where)
    listed = ",".join(f"t{t}" for t in rng.sample(tables, len(tables)))
    shown = ",".join(f"x{t}" for t in rng.sample(tables, len(tables)))
    return f"SELECT {shown} FROM {listed} WHERE {' AND '.join(where)}"


SHAPES: dict[str, tuple[Callable[[random.Random], str], str, int]] = {
    "select1": (expressions, FIVE, 10),
    "select4": (sets, NINE, 4),
    "select5": (joins, MANY, 3),
}


def rows(judge: Judge, size: int, rng: random.Random) -> list[Change]:
    found = []
    for table, columns in judge._columns.items():
        for number in range(1, size + 1):
            row = [None if rng.random() < 0.05 else rng.randint(1, max(3, size // 2)) for _ in columns]
            values = [str(v) if name[0] == "x" else v for name, v in zip(columns, row, strict=True)]
            found.append(Change(table, (number, *values[1:]) if judge._keys[table] else tuple(values)))
    rng.shuffle(found)
    return found


def check(shape: str, rng: random.Random) -> None:
    write, schema, size = SHAPES[shape]
    sql = write(rng)
    judge = Judge(sql, schema)
    views = [Followed("one cell", crown.View(sql, schema)), Followed("2 threads", crown.View(sql, schema, threads=2))]
    came = rows(judge, size, rng)
    went = [Change(c.table, c.row, -1) for c in rng.sample(came, len(came) // 4)]
    half = len(came) // 2
    follow(judge, views, [came[:half], came[half:], went], reloads={2}, ordered="ORDER BY" in sql)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_sqllogictest(shape: str, rng: random.Random) -> None:
    for _ in range(3):
        check(shape, rng)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_many_shapes_of_sqllogictest(shape: str, rng: random.Random) -> None:
    for _ in range(500):
        check(shape, rng)


def test_joins_of_64_tables_are_planned_in_few_steps(rng: random.Random) -> None:
    """A step is a call of a Python function; a search that tries all orders would take millions."""
    schema = load_schema(MANY)
    for _ in range(4):
        query = parse(joins(rng), schema)
        steps = 0

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal steps
            steps += event == "call"

        sys.setprofile(count)
        try:
            plan(query)
        finally:
            sys.setprofile(None)
        assert steps < 250_000
