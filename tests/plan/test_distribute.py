"""HyperCube cells: shares, routes and where the outputs are disjoint. Answers over cells are judged elsewhere."""

from __future__ import annotations

from math import prod

import pytest

from crown.errors import PlanError
from crown.ir.expression import Column
from crown.ir.plan import AggregateStage, DistinctStage, Plan
from crown.ir.query import Aggregate
from crown.plan import plan, plan_with_report
from crown.plan.cells.distribute import distribute
from crown.sql import parse
from crown.types import INT64
from tests.support.build import query

COUNT = Aggregate("n", "count", None, False, INT64)


@pytest.mark.parametrize("cells", [2, 3, 4, 7, 8, 12, 30, 64, 97])
def test_any_number_of_cells(cells: int) -> None:
    routing = distribute(plan(query("R(a, b), S(b, c), T(c, d)", "a b c d")), cells).cell.routing
    assert routing is not None
    assert prod(routing.shares) == routing.cells == cells
    assert all(len(route.coordinates) == len(routing.shares) for route in routing.routes)
    assert [route.atom for route in routing.routes] == [0, 1, 2]


def test_one_cell_has_no_routing() -> None:
    whole = plan(query("R(a, b)", "a b"))
    assert distribute(whole, 1).cell == whole


@pytest.mark.parametrize("cells", [0, -1])
def test_no_cells_are_refused(cells: int) -> None:
    with pytest.raises(PlanError):
        distribute(plan(query("R(a, b)", "a b")), cells)


def test_a_binary_join_is_split_by_its_key() -> None:
    spread = distribute(plan(query("R(a, b), S(b, c)", "a b c")), 8)
    assert spread.cell.routing is not None
    assert spread.cell.routing.dimensions == ("b",)
    assert spread.cell.routing.shares == (8,)
    assert [route.coordinates for route in spread.cell.routing.routes] == [
        (Column("c1", INT64),),
        (Column("c0", INT64),),
    ]
    assert spread.merge is None


def merged(whole: Plan) -> list[type]:
    merge = distribute(whole, 4).merge
    return [] if merge is None else [type(stage) for stage in merge.stages[1:]]


def test_what_cells_share_is_merged() -> None:
    assert merged(plan(query("R(a, b), S(b, c)", "a", distinct=True))) == [DistinctStage]
    assert merged(plan(query("R(a, b), S(b, c)", "a", aggregates=[COUNT]))) == [AggregateStage]
    assert merged(plan(query("R(a, b), S(a, c)", "a", aggregates=[COUNT]))) == []


def test_the_middle_of_a_chain_is_not_replicated() -> None:
    schema = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d INT)"
    sql = "SELECT r.a, s.b, t.c, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c"
    built = parse(sql, schema)
    loads = {load.atom: load.copies for load in plan_with_report(built, cells=8)[1].distribution.loads}
    assert loads["s"] == 1
    assert loads["r"] * loads["t"] == 8


@pytest.mark.parametrize(("condition", "copied"), [("r.a > 5", "r"), ("t.d > 5", "t")])
def test_among_equals_the_atom_with_a_condition_is_copied(condition: str, copied: str) -> None:
    schema = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d INT)"
    sql = f"SELECT r.a, s.b, t.c, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND {condition}"
    loads = {load.atom: load.copies for load in plan_with_report(parse(sql, schema), cells=2)[1].distribution.loads}
    assert loads == {"r": 1, "s": 1, "t": 1} | {copied: 2}
