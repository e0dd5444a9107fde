"""Whatever the SQL layer lets through has a plan, a distribution and an explanation, or a CrownError says why not."""

from __future__ import annotations

import random

import pytest

import crown
from crown.errors import CrownError
from crown.plan import explain, from_json, plan_with_report, to_json
from crown.plan.cells.distribute import distribute
from crown.sql import load_schema, parse
from tests.sql.generate import SCHEMA, random_query
from tests.sql.odd_texts import mutated, odd_text, regrown
from tests.sql.test_oracle import WRITTEN

LOADED = load_schema(SCHEMA)


def _text(rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.3:
        return odd_text(rng)
    return rng.choice([mutated, regrown])(rng.choice([rng.choice(WRITTEN), random_query(rng)]), rng), "spark"


@pytest.mark.parametrize("count", [600, pytest.param(40_000, marks=pytest.mark.slow)])
def test_changed_queries_never_trace_back(rng: random.Random, count: int) -> None:
    planned = 0
    for _ in range(count):
        sql, dialect = _text(rng)
        try:
            plan, report = plan_with_report(parse(sql, LOADED, dialect=dialect), cells=rng.choice([1, 2, 6]))
            assert from_json(to_json(plan)) == plan
            distribute(plan, 4)
            assert str(explain(plan, report))
            if rng.random() < 0.2 and dialect == "spark":
                list(crown.View(sql, schema=LOADED))
            planned += 1
        except CrownError:
            continue
        except Exception as error:
            raise AssertionError(f"no plan, no reason: {sql!r} in {dialect}") from error
    assert planned > count // 20
