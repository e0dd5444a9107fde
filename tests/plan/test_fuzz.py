"""Whatever the SQL layer lets through has a plan, a distribution and an explanation, or a CrownError says why not."""

from __future__ import annotations

import random

import pytest

from crown.errors import CrownError, PlanError
from crown.plan import explain, from_json, plan_with_report, to_json
from crown.plan.cells.distribute import distribute
from crown.sql import load_schema, parse
from tests.sql.generate import SCHEMA, random_query
from tests.sql.test_fuzz import mutated, regrown
from tests.sql.test_oracle import WRITTEN

LOADED = load_schema(SCHEMA)


@pytest.mark.parametrize("count", [250, pytest.param(20_000, marks=pytest.mark.slow)])
def test_changed_queries_never_trace_back(rng: random.Random, count: int) -> None:
    planned = 0
    for _ in range(count):
        sql = rng.choice([rng.choice(WRITTEN), random_query(rng)])
        try:
            sql = rng.choice([mutated, regrown])(sql, rng)
        except Exception:
            continue  # sqlglot has no text for some odd trees
        try:
            query = parse(sql, LOADED)
        except CrownError:
            continue
        try:
            plan, report = plan_with_report(query, cells=rng.choice([1, 2, 6]))
            assert from_json(to_json(plan)) == plan
            distribute(plan, 4)
            assert str(explain(plan, report))
            planned += 1
        except PlanError:
            continue
        except Exception as error:
            raise AssertionError(f"no plan, no reason: {sql}") from error
    assert planned > count // 20
