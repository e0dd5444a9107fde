"""Random queries under random streams: after every batch, delta and full result are what DuckDB says, both ways.

Two views run each case, one cell and three, and see the same changes.
"""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from tests.property.queries import Schema, queries
from tests.property.streams import streams
from tests.support.judge import Change, Judge, follow


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, str, list[list[Change]]]:
    schema, sql = draw(queries())
    return schema, sql, draw(streams(schema))


def check(case: tuple[Schema, str, list[list[Change]]]) -> None:
    schema, sql, batches = case
    hypothesis.note(f"{schema.ddl}\n{sql}")
    judge = Judge(sql, schema.ddl)
    views = {f"threads={threads}": crown.View(sql, schema=schema.ddl, threads=threads) for threads in (1, 3)}
    for view in views.values():
        judge.check_result(view.to_arrow(), where="before any change")
    follow(judge, views, batches)


@hypothesis.given(cases())
def test_random_queries_under_random_streams(case: tuple[Schema, str, list[list[Change]]]) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=5000)
@hypothesis.given(cases())
def test_many_random_queries_under_random_streams(case: tuple[Schema, str, list[list[Change]]]) -> None:
    check(case)
