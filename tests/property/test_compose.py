"""Every construct nested in every other, under random streams: all that a view shows is what DuckDB says.

Each case has two views of one query: the first runs in one cell, the second in some other way (threads, without deltas,
by single updates, with deltas in pairs or as streams). Both are saved and loaded now and then. After every batch all
ways to read them are compared, and an iterator from before it shows what was there.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import crown
from crown.errors import CrownError, SqlError
from tests.property.compose import CONSTRUCTS, composed
from tests.property.composer import Query
from tests.property.queries import Schema
from tests.property.streams import streams
from tests.support.followed import Followed, follow
from tests.support.judge import Change, Judge
from tests.support.python_functions import FUNCTIONS

WAYS: dict[str, dict[str, Any]] = {
    "2 threads": {"threads": 2},
    "3 threads": {"threads": 3},
    "4 threads": {"threads": 4},
    "pulled": {"deltas": False},
    "single updates": {},
    "updates in pairs": {},
    "a stream": {},
    "a stream of 2 threads": {"threads": 2},
}


@dataclass(frozen=True)
class Case:
    schema: Schema
    query: Query
    batches: list[list[Change]]
    way: str
    reloads: frozenset[int]
    times: dict[int, datetime.datetime]


moments = st.sampled_from([1, 2, 3, 6, 40, 60 * 24, -60]).map(
    lambda minutes: datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC) + datetime.timedelta(minutes=minutes)
)


def asks_time(sql: str) -> bool:
    return "now()" in sql or "CURRENT_DATE" in sql


@st.composite
def cases(draw: st.DrawFn, path: Sequence[str] = ()) -> Case:
    schema, query = draw(composed(path, clock=True))
    batches = draw(streams(schema, batches=4, batch_size=10, odd=draw(st.booleans())))
    reloads = draw(st.frozensets(st.integers(0, len(batches)), max_size=2))
    times = {}
    if asks_time(query.text):
        later = draw(st.lists(st.integers(0, len(batches) - 1), max_size=3))
        times = {number: draw(moments) for number in dict.fromkeys([0, *later])}
    return Case(schema, query, batches, draw(st.sampled_from(list(WAYS))), reloads, times)


def open_views(case: Case) -> list[Followed] | None:
    """None when the query is not one that Crown maintains."""
    sql, ddl = case.query.text, case.schema.ddl
    try:
        first = crown.View(sql, schema=ddl, functions=FUNCTIONS)
    except CrownError as error:
        if not isinstance(error, SqlError) and error.code != "CROWN-PLAN-TOO-MANY-TABLES":
            raise
        hypothesis.event(f"refused: {error.code}")
        return None
    second = crown.View(sql, schema=ddl, functions=FUNCTIONS, **WAYS[case.way])
    return [
        Followed("one cell", first, functions=FUNCTIONS),
        Followed(
            case.way,
            second,
            single=case.way == "single updates",
            pulled=case.way == "pulled",
            pairs=case.way == "updates in pairs",
            streamed=case.way.startswith("a stream"),
            functions=FUNCTIONS,
        ),
    ]


def check(case: Case) -> None:
    sql, ddl = case.query.text, case.schema.ddl
    hypothesis.note(f"schema = {ddl!r}\nsql = {sql!r}\nway = {case.way!r}, reloads = {sorted(case.reloads)}")
    hypothesis.note(f"times = {case.times}")
    followed = open_views(case)
    hypothesis.assume(followed is not None)
    assert followed is not None
    judge = Judge(sql, ddl, functions=FUNCTIONS, clock=bool(case.times))
    if not case.times:
        for one in followed:
            one.check(judge, ordered=case.query.ordered)
    follow(judge, followed, case.batches, reloads=case.reloads, times=case.times, ordered=case.query.ordered)


@hypothesis.settings(max_examples=60)
@hypothesis.given(cases())
def test_composed_queries(case: Case) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=4000)
@hypothesis.given(cases())
def test_many_composed_queries(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("outer", CONSTRUCTS)
@hypothesis.settings(max_examples=200)
@hypothesis.given(data=st.data())
def test_every_construct_in_every_other(outer: str, data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from(sorted(CONSTRUCTS)))
    check(data.draw(cases((outer, inner))))


@hypothesis.settings(max_examples=60, database=None)
@hypothesis.given(drawn=st.lists(composed(), min_size=10, max_size=10))
def test_few_queries_are_refused(drawn: list[tuple[Schema, Query]]) -> None:
    """What the generator draws is what Crown maintains: a refusal is rare, and tells about the SQL."""
    refused = []
    for schema, query in drawn:
        try:
            crown.View(query.text, schema=schema.ddl, functions=FUNCTIONS)
        except CrownError as error:
            refused.append(str(error))
    assert len(refused) <= 3, refused
