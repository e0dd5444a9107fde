"""An engine that is rebuilt from a snapshot and a log, as after a restart on Spark, goes on like any other.

Its batches are given again one by one, or netted as one where the plan has no order that matters; nothing of them is
enumerated. The next batch's delta, the whole result and its count are then what DuckDB says.
"""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from crown import _kernel
from crown.errors import CrownError
from crown.plan import plan, to_json
from crown.sql import parse
from tests.property.compose import composed
from tests.property.streams import streams
from tests.support.judge import Judge


def logged(log: list[dict[str, pa.Table]], *, joined: bool) -> Iterator[list[tuple[str, pa.Table]]]:
    batches = [list(changes.items()) for changes in log]
    yield from [[change for batch in batches for change in batch]] if joined else batches


def check(data: st.DataObject) -> None:
    schema, query = data.draw(composed())
    hypothesis.note(f"schema = {schema.ddl!r}\nsql = {query.text!r}")
    try:
        described = plan(parse(query.text, schema.ddl))
    except CrownError:
        hypothesis.reject()
    judge, text = Judge(query.text, schema.ddl), to_json(described)
    read = {table.name for table in described.tables}
    joined = not any(table.primary_key for table in described.tables) and data.draw(st.booleans())
    before = _kernel.Engine(text)  # since the last snapshot
    chunks: list[bytes] = []
    log: list[dict[str, pa.Table]] = []
    for batch in data.draw(streams(schema, batches=4, batch_size=10)):
        changes = {name: rows for name, rows in judge.as_arrow(batch).items() if name in read}
        engine = _kernel.Engine.rebuild(text, chunks, logged(log, joined=joined) if log else [])
        delta = pa.table(engine.apply(list(changes.items())))
        judge.apply(batch)
        judge.check_delta(delta, where="delta after a replay")
        judge.check_result(pa.table(engine.rows()), where="result after a replay")
        assert engine.count() == judge.result.total()
        before.apply(list(changes.items()))
        log.append(changes)
        if data.draw(st.integers(0, 2)) == 0:
            chunks, log = before.save(), []


@hypothesis.settings(max_examples=40)
@hypothesis.given(data=st.data())
def test_a_rebuilt_engine_goes_on(data: st.DataObject) -> None:
    check(data)


@pytest.mark.slow
@hypothesis.settings(max_examples=4000)
@hypothesis.given(data=st.data())
def test_many_rebuilt_engines_go_on(data: st.DataObject) -> None:
    check(data)


def test_results_are_counted_and_rejected_changes_not_listed_again() -> None:
    edges = "CREATE TABLE g (a BIGINT, b BIGINT)"
    text = to_json(plan(parse("SELECT x.a, y.b FROM g x JOIN g y ON x.b = y.a", edges)))
    rows = 5_000
    star = pa.table({"a": [*range(1, rows), *[0] * rows], "b": [*[0] * (rows - 1), *range(rows, 2 * rows)]})
    wrong = pa.table({"a": [5], "b": [5], "_change_type": ["delete"]})
    engine = _kernel.Engine.rebuild(text, [], [[("g", star)], [("g", wrong)]], on_invalid="quarantine")
    assert engine.count() == (rows - 1) * rows
    assert pa.table(engine.rejected()).num_rows == 0
    assert pa.table(engine.apply_rows("g", [(0, rows)], delete=True)).num_rows == rows - 1
