"""Joins with inequalities and bands that ordered indexes answer: after every batch what DuckDB says.

The queries join two to four tables in a chain, a star or with themselves; each comparison is between two
tables that are joined, or a band; of every type that has an order, with NULLs, ties at the bound, and either direction.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from crown.ir.plan import TreeStage
from crown.plan import plan
from crown.sql import parse
from tests.property.queries import Atom, Schema, TableShape
from tests.property.streams import streams
from tests.support.judge import Change, Judge, follow

VALUES = (("x", "wide"), ("t", "time"), ("d", "date"), ("p", "decimal"), ("e", "double"))
TYPES = "x BIGINT, t TIMESTAMP_NTZ, d DATE, p DECIMAL(8,2), e DOUBLE"
SCHEMA = Schema(
    f"CREATE TABLE a (k INT, {TYPES}); CREATE TABLE b (k INT, l INT, {TYPES}); CREATE TABLE c (l INT, x INT, d DATE)",
    (
        TableShape("a", (("k", "int"), *VALUES)),
        TableShape("b", (("k", "int"), ("l", "int"), *VALUES)),
        TableShape("c", (("l", "int"), ("x", "wide"), ("d", "date"))),
    ),
)
STEPS = {
    "wide": ("1", "2"),
    "time": ("INTERVAL 1 MINUTE", "INTERVAL 90 SECOND"),
    "date": ("INTERVAL 1 DAY", "INTERVAL 29 DAY"),
    "decimal": ("1.25", "2"),
    "double": ("1.5D", "0.5D"),
}


@st.composite
def comparison(draw: st.DrawFn, one: Atom, other: Atom) -> str:
    name, domain = draw(st.sampled_from([column for column in one.table.columns if column in other.table.columns[1:]]))
    if draw(st.booleans()):
        one, other = other, one
    left, right = f"{one.alias}.{name}", f"{other.alias}.{name}"
    steps = STEPS.get(domain, ("1",))
    step, second = draw(st.sampled_from(steps)), draw(st.sampled_from(steps))
    operator = draw(st.sampled_from(["<", "<=", ">", ">="]))
    return draw(
        st.sampled_from(
            [
                f"{left} {operator} {right}",
                f"{left} {operator} {right} - {step}",
                f"{left} BETWEEN {right} - {step} AND {right} + {second}",
                f"({left} > {right} - {step} AND {left} <= {right})",
            ]
        )
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    tables = {table.name: table for table in SCHEMA.tables}
    shape = draw(st.sampled_from(["ab", "ab", "aa", "ba", "abc", "abc", "cba", "abab", "aab"]))
    atoms = [Atom(f"x{number}", tables[name]) for number, name in enumerate(shape)]
    text, where = f"{atoms[0].table.name} {atoms[0].alias}", []
    for before, atom in pairwise(atoms):
        text += f" CROSS JOIN {atom.table.name} {atom.alias}"
        shared = [name for name, domain in before.table.columns if domain == "int" and name in dict(atom.table.columns)]
        if draw(st.integers(0, 5)):
            key = draw(st.sampled_from(shared))
            where.append(f"{before.alias}.{key} = {atom.alias}.{key}")
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        place = draw(st.integers(0, len(atoms) - 2))
        where.append(draw(comparison(atoms[place], atoms[place + 1])))
    columns = [f"{atom.alias}.{name}" for atom in atoms for name, _ in atom.table.columns]
    shown = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    names = ", ".join(f"{column} AS o{i}" for i, column in enumerate(shown))
    tail = f"FROM {text} WHERE {' AND '.join(where)}"
    numbers = [column for column in columns if column.endswith((".x", ".p"))]
    return draw(
        st.sampled_from(
            [
                f"SELECT {names} {tail}",
                f"SELECT DISTINCT {names} {tail}",
                f"SELECT {shown[0]} AS g, COUNT(*) AS n, SUM({numbers[0]}) AS s {tail} GROUP BY {shown[0]}",
                f"SELECT COUNT(*) AS n, MAX({numbers[-1]}) AS m {tail}",
            ]
        )
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[list[Change]]]:
    sql = draw(queries())
    stages = plan(parse(sql, SCHEMA.ddl)).stages
    hypothesis.assume(any(isinstance(stage, TreeStage) and stage.ordered for stage in stages))
    return sql, draw(streams(SCHEMA))


def check(case: tuple[str, list[list[Change]]]) -> None:
    sql, batches = case
    hypothesis.note(sql)
    judge = Judge(sql, SCHEMA.ddl)
    views = {f"threads={threads}": crown.View(sql, schema=SCHEMA.ddl, threads=threads) for threads in (1, 2)}
    follow(judge, views, batches)


@hypothesis.given(cases())
def test_random_comparisons_under_random_streams(case: tuple[str, list[list[Change]]]) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=3000)
@hypothesis.given(cases())
def test_many_random_comparisons_under_random_streams(case: tuple[str, list[list[Change]]]) -> None:
    check(case)


def test_a_saved_view_has_its_order_again(tmp_path: Path) -> None:
    sql = "SELECT x.x AS v, y.x AS w FROM a x JOIN b y ON x.k = y.k AND x.x BETWEEN y.x - 3 AND y.x"
    judge = Judge(sql, SCHEMA.ddl)
    view = crown.View(sql, schema=SCHEMA.ddl)
    rest = (None, None, None, None)
    filled = [Change("a", (1, number, *rest)) for number in range(30)]
    filled += [Change("b", (1, 0, number if number % 5 else None, *rest)) for number in range(30)]
    removed = [Change(change.table, change.row, -1) for change in filled[::3]]
    for batch in (filled, removed):
        view.apply(judge.as_arrow(batch))
        judge.apply(batch)
        view.save(tmp_path / "view")
        view = crown.View.load(tmp_path / "view")
        judge.check_result(view.to_arrow(), where="after loading")
        assert len(view) == judge.result.total() > 10
        assert all((row["v"], row["w"]) in judge.result for row in view.sample(20, seed=1).to_pylist())
        assert all(view.multiplicity(row) == count for row, count in judge.result.items())
        assert (7, 3) not in view
    more = [Change("a", (1, 7, *rest)), *(Change(c.table, c.row, -1) for c in filled if c not in filled[::3])]
    delta = view.apply(judge.as_arrow(more))
    judge.apply(more)
    judge.check_delta(delta, where="delta after loading")
    judge.check_result(view.to_arrow(), where="full result after loading")
