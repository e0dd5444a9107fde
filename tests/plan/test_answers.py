"""Plans give the right answers: random queries over small tables with NULLs and duplicates, DuckDB as judge.

The plan, alone and over several cells, is evaluated by `tests.support.interpreter` from the meaning of its stages, so
that the planner is tested without the kernel and without the SQL layer.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from crown.ir.expression import Call, Expression
from crown.ir.query import Aggregate, Condition, Query, Select
from crown.plan import from_json, plan_with_report, to_json
from crown.plan.cells.distribute import distribute
from crown.types import BOOLEAN, FLOAT64, INT64
from tests.support.build import atoms, query, variable
from tests.support.datalog_sql import to_sql
from tests.support.interpreter import run, run_cells
from tests.support.oracle import ask
from tests.support.reference import evaluate
from tests.support.render import render_plan

TABLES = {"R": 2, "S": 2, "T": 3, "U": 1}
ROUNDS = 60


def random_atoms(rng: random.Random, count: int, names: str) -> str:
    found = []
    for number in range(count):
        table = rng.choice(list(TABLES))
        found.append(f"{table}{number}({', '.join(rng.choice(names) for _ in range(TABLES[table]))})")
    return ", ".join(found)


def random_aggregate(rng: random.Random, number: int, held: list[str]) -> Aggregate:
    function = rng.choice(["count", "count", "sum", "sum", "avg", "min", "max"])
    argument: Expression | None = variable(rng.choice(held))
    if rng.random() < 0.4:
        other = variable(rng.choice(held))
        assert argument is not None
        argument = Call(rng.choice(["add", "subtract", "multiply"]), (argument, other), INT64)
        if rng.random() < 0.4:
            argument = Call("multiply", (argument, variable(rng.choice(held))), INT64)
    if function == "count" and rng.random() < 0.4:
        argument = None
    distinct = argument is not None and rng.random() < 0.3
    return Aggregate(f"a{number}", function, argument, distinct, FLOAT64 if function == "avg" else INT64)  # type: ignore[arg-type]


def random_query(rng: random.Random) -> Query:
    text = random_atoms(rng, rng.choice([1, 2, 2, 3, 3, 4, 5]), "abcdef"[: rng.choice([3, 4, 5, 6])])
    held = list(dict.fromkeys(v for atom in atoms(text) for v in atom.variables))
    outputs = rng.sample(held, rng.randint(0, len(held)))
    aggregates = None
    if not outputs or rng.random() < 0.5:
        aggregates = [random_aggregate(rng, i, held) for i in range(rng.choice([1, 1, 2, 3]))]
    residual: list[Expression] = []
    if rng.random() < 0.25:
        two = (variable(rng.choice(held)), variable(rng.choice(held)))
        residual.append(Call(rng.choice(["lt", "ne", "le"]), two, BOOLEAN))
    built = query(text, " ".join(outputs), distinct=aggregates is None and rng.random() < 0.5, aggregates=aggregates,
                  residual=residual)  # fmt: skip
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        built = with_condition(built, random_condition(rng, held, depth=rng.choice([0, 0, 1])))
    return built


def random_condition(rng: random.Random, outer: list[str], depth: int) -> Condition:
    names = (
        "".join(rng.sample(outer, min(len(outer), rng.choice([0, 1, 2])))) + rng.choice(["x", "xy", "xyz"])[: 3 - depth]
    )
    inner = atoms(random_atoms(rng, rng.choice([1, 1, 2, 3]), names))
    below: tuple[Condition, ...] = ()
    if depth:
        held = sorted({v for atom in inner for v in atom.variables} | set(rng.sample(outer, min(1, len(outer)))))
        below = (random_condition(rng, held, 0),)
        fresh = {v: f"{v}2" for v in "xyz" if v not in held}
        below = (replace(below[0], atoms=tuple(renamed(atom, fresh) for atom in below[0].atoms)),)
    return Condition(inner, rng.random() < 0.5, below)


def renamed(atom: Any, names: dict[str, str]) -> Any:
    return replace(atom, bindings=tuple(replace(b, variable=names.get(b.variable, b.variable)) for b in atom.bindings))


def with_condition(built: Query, condition: Condition) -> Query:
    body = built.body
    assert isinstance(body, Select)
    (branch,) = body.branches

    def every(of: Condition) -> list[Any]:
        return [*of.atoms, *(atom for inner in of.conditions for atom in every(inner))]

    extra = query(", ".join(f"{a.name}({', '.join(b.variable for b in a.bindings)})" for a in every(condition)), "")
    assert isinstance(extra.body, Select)
    seen = {v.name for v in branch.variables}
    variables = branch.variables + tuple(v for v in extra.body.branches[0].variables if v.name not in seen)
    tables = built.tables + tuple(t for t in extra.tables if t.name not in {table.name for table in built.tables})
    branch = replace(branch, variables=variables, conditions=(*branch.conditions, condition))
    return replace(built, body=replace(body, branches=(branch,)), tables=tables)


def random_tables(rng: random.Random, small: Query) -> dict[str, list[dict[str, Any]]]:
    values = [None, *range(rng.choice([2, 3, 4]))]
    return {
        table.name: [
            {column.name: rng.choice(values) for column in table.columns} for _ in range(rng.choice([0, 2, 5, 8]))
        ]
        for table in small.tables
    }


def answer(
    judge: duckdb.DuckDBPyConnection, built: Query, tables: dict[str, list[dict[str, Any]]]
) -> Counter[tuple[Any, ...]]:
    for table in built.tables:
        columns = ", ".join(f"{column.name} BIGINT" for column in table.columns)
        rows = ", ".join(
            f"({', '.join('NULL' if v is None else str(v) for v in row.values())})" for row in tables[table.name]
        )
        judge.execute(f'CREATE OR REPLACE TABLE "{table.name}" ({columns})')
        if rows:
            judge.execute(f'INSERT INTO "{table.name}" VALUES {rows}')
    return Counter(ask(judge, to_sql(built), lambda: evaluate(built, tables)))


def rounded(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    result: Counter[tuple[Any, ...]] = Counter()
    for row, weight in rows.items():
        result[tuple(round(value, 9) if isinstance(value, float) else value for value in row)] += weight
    return result


def test_a_condition_that_reads_two_levels_up_meets_null() -> None:
    """WHERE EXISTS (SELECT 1 FROM U WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.c0 = T.a)): NULL finds nothing in S."""
    built = with_condition(query("T(a)", "a"), Condition(atoms("U(x)"), False, (Condition(atoms("S(a)"), True),)))
    tables: dict[str, list[dict[str, Any]]] = {
        "T": [{"c0": None}, {"c0": 1}, {"c0": 2}],
        "U": [{"c0": 7}],
        "S": [{"c0": 1}, {"c0": None}],
    }
    assert run(plan_with_report(built)[0], tables) == Counter([(None,), (2,)])


@pytest.mark.parametrize("part", range(3))
def test_random_queries(rng: random.Random, part: int) -> None:
    judge = duckdb.connect()
    judge.execute("SET threads = 1")
    told = 0
    for _ in range(ROUNDS):
        built = random_query(rng)
        plan, _ = plan_with_report(built)
        assert from_json(to_json(plan)) == plan
        for _ in range(2):
            tables = random_tables(rng, built)
            expected, got = rounded(answer(judge, built, tables)), rounded(run(plan, tables))
            assert got == expected, f"{to_sql(built)}\n{render_plan(plan)}\n{tables}"
            spread = distribute(plan, rng.choice([2, 3, 4, 6, 8]))
            got = rounded(run_cells(spread.cell, spread.merge, tables))
            assert got == expected, f"{to_sql(built)}\n{spread}\n{tables}"
            told += bool(expected)
    assert told > ROUNDS // 2, "too many empty answers tell nothing"
