"""What reaches an atom from a log: functions of the kernel, judged by the naive evaluation."""

from __future__ import annotations

import datetime
import functools
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from crown.ir.expression import Call, Expression
from crown.ir.plan import Atom, TreeStage
from crown.ir.tables import Table
from crown.plan import plan_with_report
from crown.sql import parse
from crown.workload import power_law_graph, profile, streams
from crown.workload.log import read_log
from crown.workload.reduce import atom_rows, table_rows
from tests.support.judge import normal
from tests.support.reference import _STRICT, value

SCHEMA = """CREATE TABLE t (a INT, b INT, f DOUBLE, g FLOAT, p DECIMAL(6,2), s STRING, u STRING, d DATE, w TIMESTAMP)"""
ROWS: dict[str, list[Any]] = {
    "a": [1, 2, None, -3, 7],
    "b": [2, 2, 1, 2, None],
    "f": [0.5, 2.5, -2.5, None, 1e9],
    "g": [0.1, -1.5, None, 2.0, 0.0],
    "p": [Decimal("1.50"), Decimal("-2.25"), None, Decimal("0.05"), Decimal("99.99")],
    "s": ["abc", " b ", None, "", "a%b"],
    "u": ["b", None, "x", "a", "%"],
    "d": [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 28), datetime.date(2023, 1, 1), None],
    "w": [
        datetime.datetime(2024, 2, 29, 13, 45, 59, tzinfo=datetime.UTC),
        datetime.datetime(1969, 12, 28, 23, 0, 1, tzinfo=datetime.UTC),
        None,
        datetime.datetime(2023, 1, 1, tzinfo=datetime.UTC),
        None,
    ],
}
VALUES = """
a + b
a - b
a * b
a / b
a % b
p / 3
p * p
-a
abs(a)
a = b
a <> b
a < b
a <= b
a > b
a >= b
a <=> b
a > 0 AND b > 1
a > 0 OR b > 1
NOT (a > 0 AND b > 1)
a IS NULL
a IN (1, 7)
CASE WHEN a > 1 THEN s ELSE u END
coalesce(a, b)
CAST(f AS INT)
CAST(a AS STRING)
CAST(d AS TIMESTAMP)
CAST(w AS DATE)
greatest(a, b)
least(a, b)
s LIKE 'a%'
s LIKE '%!%%' ESCAPE '!'
upper(s)
lower(u)
length(s)
s || u
substring(s, 2, 1)
right(s, 2)
trim(s)
ltrim(s)
rtrim(s)
replace(s, 'b', 'cc')
startswith(s, u)
endswith(s, u)
contains(s, u)
round(f)
round(p, 1)
floor(f)
ceil(p)
sqrt(abs(f))
exp(b)
ln(a)
power(a, 2)
sign(a)
g = CAST(0.1 AS FLOAT)
year(d)
quarter(d)
month(w)
day(d)
dayofweek(d)
hour(w)
minute(w)
second(w)
date_add(d, a)
datediff(d, DATE '2024-01-01')
trunc(d, 'month')
date_trunc('week', w)
""".strip().splitlines()


def functions_of(expression: Expression) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(functions_of, expression.arguments))


def planned(sql: str) -> tuple[Table, Atom]:
    plan, _ = plan_with_report(parse(sql, SCHEMA))
    (table,), stage = plan.tables, plan.stages[0]
    assert isinstance(stage, TreeStage)
    (atom,) = stage.atoms
    return table, atom


@functools.cache
def whole_table() -> tuple[Table, pa.Table]:
    table, _ = planned("SELECT * FROM t")
    (log,) = read_log({"t": pa.table(ROWS)}).values()
    return table, table_rows(log, table).rows


def reduced(sql: str) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
    """Position and value of the atom's rows, as the profile finds them and as the naive evaluation does."""
    _, atom = planned(sql)
    (binding,) = atom.bindings
    table, rows = whole_table()
    found = atom_rows(rows, table, atom)
    got = list(zip(found["$row"].to_pylist(), map(shown, found[binding.variable].to_pylist()), strict=True))
    expected = [
        (position, shown(value(binding.expression, row)))
        for position, row in enumerate(rows.to_pylist())
        if atom.filter is None or value(atom.filter, row) is True
    ]
    return got, expected


def shown(of: Any) -> Any:
    return round(of, 9) if isinstance(of, float) and math.isfinite(of) else normal(of)


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    got, expected = reduced(f"SELECT {text} AS v FROM t")
    assert len(got) == 5
    assert got == expected


@pytest.mark.parametrize("text", ["dayofweek(d) = 1", "date_trunc('year', w) < TIMESTAMP '2024-01-01'", "s LIKE '%b%'"])
def test_filters(text: str) -> None:
    got, expected = reduced(f"SELECT a FROM t WHERE {text}")
    assert 0 < len(got) < 5
    assert got == expected


def test_every_function_of_the_naive_evaluation_is_tested() -> None:
    atoms = [planned(f"SELECT {text} AS v FROM t")[1] for text in VALUES]
    used: set[str] = set().union(*(functions_of(atom.bindings[0].expression) for atom in atoms))
    assert used >= set(_STRICT)


def test_a_profile_counts_only_rows_that_reach_the_atoms() -> None:
    """Edges of Mondays come and go within the lives of those of Sundays; a query of Sundays doesn't see them."""
    edges = power_law_graph(40, 101, seed=2)
    sunday, monday = datetime.date(2023, 1, 1), datetime.date(2023, 1, 2)
    sundays = edges.slice(0, 100).append_column("d", pa.array([sunday] * 100))
    mondays = edges.slice(100, 1).append_column("d", pa.array([monday]))
    stream = streams.enclosing(sundays, mondays, window=80, steps=3)
    schema = ";".join(f"CREATE TABLE g{number} (src INT, dst INT, d DATE)" for number in (1, 2, 3))
    sql = "SELECT * FROM g1 a JOIN g2 b ON b.src = a.dst JOIN g3 c ON c.src = b.dst"
    of_sundays = f"{sql} WHERE dayofweek(a.d) = 1 AND dayofweek(b.d) = 1 AND dayofweek(c.d) = 1"
    assert profile(stream, sql, schema=schema).trees[0].enclosureness > 5
    assert profile(stream, of_sundays, schema=schema).trees[0].enclosureness == 1
