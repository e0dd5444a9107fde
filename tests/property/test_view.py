"""Random queries under random streams: after every batch, delta and full result are what DuckDB says, both ways.

Two views run each case, one cell and two to four, and see the same changes.
"""

from __future__ import annotations

from typing import TypeAlias

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from tests.property.queries import Schema, queries
from tests.property.streams import streams
from tests.support.judge import Change, Judge, follow

Case: TypeAlias = tuple[Schema, str, list[list[Change]], int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    schema, sql = draw(queries())
    return schema, sql, draw(streams(schema)), draw(st.integers(2, 4))


def check(case: Case) -> None:
    schema, sql, batches, several = case
    hypothesis.note(f"{schema.ddl}\n{sql}")
    judge = Judge(sql, schema.ddl)
    views = {f"threads={threads}": crown.View(sql, schema=schema.ddl, threads=threads) for threads in (1, several)}
    for view in views.values():
        judge.check_result(view.to_arrow(), where="before any change")
    follow(judge, views, batches)


@hypothesis.given(cases())
def test_random_queries_under_random_streams(case: Case) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=5000)
@hypothesis.given(cases())
def test_many_random_queries_under_random_streams(case: Case) -> None:
    check(case)
