"""The kernel refuses a plan whose set operation has an input that can't serve it, when the plan is loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crown import _kernel
from crown.errors import PlanError
from crown.ir.plan import MaterializeStage, Plan, SetOperationStage
from crown.ir.serial import to_json
from crown.plan import plan
from crown.sql import load_schema, parse

SCHEMA = load_schema("CREATE TABLE a (k INT, v INT); CREATE TABLE b (k INT, v INT)")
UNSERVED = {
    "a map that hides columns": "SELECT a.k + b.v FROM a JOIN b ON a.k = b.k UNION SELECT k FROM b",
    "a union of which one side can't": (
        "(SELECT a.k + b.v FROM a JOIN b ON a.k = b.k UNION ALL SELECT v FROM a) EXCEPT SELECT k FROM b"
    ),
    "a ring": "SELECT k, COUNT(*) FROM a GROUP BY k INTERSECT SELECT k, v FROM b",
}


def without_kept_rows(whole: Plan) -> Plan:
    """The plan as if the planner had forgotten that rows must be kept."""
    input_of = {stage.id: stage.input for stage in whole.stages if isinstance(stage, MaterializeStage)}
    stages = []
    for stage in whole.stages:
        if isinstance(stage, MaterializeStage):
            continue
        if isinstance(stage, SetOperationStage):
            left, right = (input_of.get(source, source) for source in stage.inputs)
            stage = replace(stage, inputs=(left, right))
        stages.append(stage)
    assert len(stages) < len(whole.stages)
    return replace(whole, stages=tuple(stages))


@pytest.mark.parametrize("case", UNSERVED)
def test_refused_when_loaded(case: str) -> None:
    whole = plan(parse(UNSERVED[case], SCHEMA))
    _kernel.Engine(to_json(whole))
    with pytest.raises(PlanError, match="look rows up and list each once") as raised:
        _kernel.Engine(to_json(without_kept_rows(whole)))
    assert raised.value.code == "CROWN-PLAN-MALFORMED"
