"""Plan <-> JSON: every kind of stage survives the way there and back, and nonsense is a PlanError."""

from __future__ import annotations

import json

import pytest

from benchmarks.workloads import WORKLOADS
from crown.errors import PlanError
from crown.ir.expression import Call, Column, Literal
from crown.ir.plan import (
    AggregateColumn,
    AggregateStage,
    Atom,
    BagStage,
    Binding,
    Comparison,
    DistinctStage,
    Factor,
    MapColumn,
    MapStage,
    MaterializeStage,
    Node,
    OrderBy,
    Plan,
    RingComponent,
    Route,
    Routing,
    SetOperationStage,
    TopStage,
    TreeStage,
    Variable,
)
from crown.ir.tables import Table, TableColumn, Window
from crown.plan import from_json, plan_with_report, to_json
from crown.plan.explain.report import report_from_json, report_to_json
from crown.sql import parse
from crown.types import BOOLEAN, FLOAT64, INT64

A = Column("a", INT64)
ATOM = Atom("r", "r", (Binding("a", A),), Call("gt", (A, Literal(1 << 62, INT64)), BOOLEAN), ("a",))
PLAN = Plan(
    sql="SELECT 'ä'",
    tables=(
        Table("r", (TableColumn("a", INT64, False),), ("a",), "fifo", Window(rows=10), 2.5),
    ),
    stages=(
        BagStage("$b", (Variable("a", INT64, True),), (ATOM,), ("a",), ("a",)),
        TreeStage("$t", (Variable("a", INT64, True),), (ATOM,),
                  (Node("r", ("a",), 0, None, (), True), Node("s", ("a",), 0, 0, ("a",), False, "anti")),
                  ("a",), "ring", (RingComponent("n", (Factor(0, A),), INT64),), (Literal(None, BOOLEAN),), True,
                  (Comparison("a", -5, "a", True),)),
        MapStage("$m", "$t", (MapColumn("x", FLOAT64, True, Literal("NaN", FLOAT64)),), None),
        AggregateStage("$a", "$m", ("x",), (AggregateColumn("n", "count", None, INT64),), True),
        DistinctStage("$d", "$a"),
        MaterializeStage("$k", "$d"),
        SetOperationStage("$s", "except", True, ("$k", "$d")),
        TopStage("$o", "$s", (OrderBy(A, True, False),), 3, 1),
    ),
    columns=(TableColumn("x", FLOAT64),),
    bag=True,
    order=(OrderBy(Literal(1.0, FLOAT64), False, True),),
    routing=Routing(4, ("a",), (4,), (Route("$t", 0, (A, None)),)),
)  # fmt: skip


def test_round_trip_of_every_stage() -> None:
    assert from_json(to_json(PLAN)) == PLAN
    assert repr(from_json(to_json(PLAN, indent=1))) == repr(PLAN)  # 1 and 1.0 are equal, but not the same


@pytest.mark.parametrize("name", WORKLOADS)
def test_round_trip_of_reports(name: str) -> None:
    _, report = plan_with_report(parse(WORKLOADS[name].text(), WORKLOADS[name].schema), cells=8)
    assert repr(report_from_json(report_to_json(report))) == repr(report)


def test_stages_are_tagged_as_the_kernel_reads_them() -> None:
    kinds = [stage["kind"] for stage in json.loads(to_json(PLAN))["stages"]]
    assert kinds == ["bag", "tree", "map", "aggregate", "distinct", "materialize", "set_operation", "top"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", to_json(PLAN).replace('"fifo"', '"often"'), to_json(PLAN).replace('"tree"', '"bush"'),
     to_json(PLAN).replace('"limit": 3', '"limit": "3"')],
)  # fmt: skip
def test_nonsense_is_a_plan_error(text: str) -> None:
    with pytest.raises(PlanError):
        from_json(text)
