"""Many views over one state, added, dropped and reloaded between batches, against DuckDB after every batch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

import crown
from crown.errors import CrownError
from crown.plan.cells.together import lay_out_together
from crown.view.engines import open_engine, read_all
from tests.property.compose import over
from tests.property.queries import SCHEMAS, Schema, TableShape
from tests.property.streams import streams
from tests.support.judge import Change, Judge, Row, multiset


@dataclass(frozen=True)
class Case:
    schema: Schema
    views: dict[str, str]  # queries over tables and over views before them
    batches: list[list[Change]]
    steps: list[str]  # after each batch: nothing, add, drop, reload, replace
    first: int
    threads: int
    keep: Any


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw queries as if the views before them were tables; some are drawn twice."""
    schema = draw(st.sampled_from(SCHEMAS))
    seen = schema
    views: dict[str, str] = {}
    for number in range(draw(st.integers(2, 6))):
        name = f"v{number}"
        if views and draw(st.integers(0, 4)) == 0:
            views[name] = draw(st.sampled_from(list(views.values())))
            continue
        # (A view first, so that it is what small examples read.)
        query = draw(over(seen, depth=1))
        views[name] = query.text
        shape = TableShape(name, tuple((f"o{i}", domain) for i, domain in enumerate(query.columns)))
        seen = Schema(schema.ddl, (shape, *seen.tables))
    batches = draw(streams(schema, batches=4, batch_size=8))
    steps = [draw(st.sampled_from(["nothing", "add", "drop", "reload", "replace"])) for _ in batches]
    first = draw(st.integers(1, len(views)))
    return Case(schema, views, batches, steps, first, draw(st.integers(1, 3)), draw(st.sampled_from(["read", "all"])))


def expanded(query: str, views: dict[str, str]) -> str:
    """Return the query with the views that it reads in their place, for DuckDB."""
    return re.sub(r"\b(v\d+) AS\b", lambda found: f"({views[found[1]]}) AS", query)


def read(query: str) -> set[str]:
    return set(re.findall(r"\b(v\d+) AS\b", query))


FAILURES = ("CROWN-OVERFLOW", "CROWN-DIVIDE-BY-ZERO", "CROWN-CAST")


def code_of(work: Callable[[], object]) -> str | None:
    """Return the code of the error that something raises; None if it succeeds."""
    try:
        work()
    except CrownError as error:
        return error.code
    return None


class Followed:
    """A database, and a judge for each of its views."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.database = crown.Database(case.schema.ddl, threads=case.threads, keep=case.keep)
        self.tables = Judge(f"SELECT COUNT(*) FROM {case.schema.tables[0].name}", case.schema.ddl)
        self.judges: dict[str, Judge] = {}
        self.sql: dict[str, str] = {}
        self.done: list[list[Change]] = []
        self.waiting = list(case.views.items())

    def add(self) -> None:
        """Create the next view, unless Crown refuses the query, or its rows were not kept."""
        if not self.waiting:
            return
        name, query = self.waiting.pop(0)
        if not read(query) <= set(self.judges):
            return
        before = self.database.views
        refused = code_of(lambda: self.database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}"))
        if refused is not None:
            hypothesis.event(f"refused: {refused}")
            assert refused.startswith(("CROWN-SQL", "CROWN-PLAN", "CROWN-ROWS")) or refused in FAILURES
            assert refused != "CROWN-ROWS-NOT-KEPT" or (self.done and self.case.keep == "read")
            assert self.database.views == before
            return
        self.sql[name] = expanded(query, self.sql)
        judge = Judge(self.sql[name], self.case.schema.ddl)
        for batch in self.done:
            judge.apply(batch)
        self.judges[name] = judge
        self.check(name)

    def check(self, name: str, where: str = "") -> None:
        """All ways to read the view."""
        view, judge = self.database[name], self.judges[name]
        judge.check_result(view.to_arrow(), where=f"{name}{where}")
        rows = list(view)
        assert view.count() == len(view) == len(rows) == judge.result.total()
        third = len(rows) // 3
        pages = [*as_rows(view.page(0, third)), *as_rows(view.page(third, len(rows)))]
        assert multiset(pages) == multiset(rows), f"pages of {name}"
        if rows:
            wanted = rows[third]
            assert multiset([view[third]]) == multiset([pages[third]])
            for names in (view.schema.names[:1], view.schema.names[-1:], view.schema.names):
                self.check_lookup(view, rows, {n: wanted[view.schema.names.index(n)] for n in names})

    def check_lookup(self, view: crown.DatabaseView, rows: list[Row], values: dict[str, Any]) -> None:
        positions = [view.schema.names.index(name) for name in values]
        keys = multiset([tuple(values.values())])
        found = [row for row in rows if multiset([tuple(row[p] for p in positions)]) == keys]
        assert multiset(as_rows(view.lookup(**values))) == multiset(found), f"{view.name}: lookup of {values}"

    def drop(self) -> None:
        for name in reversed(self.database.views):
            refused = code_of(lambda name=name: self.database.drop(name))  # type: ignore[misc]
            assert refused in (None, "CROWN-VIEW-USED")
            if refused is None:
                del self.judges[name]
                return

    def reload(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "database.crown"
            self.database.save(path)
            self.database = crown.Database.load(path)

    def apply(self, batch: list[Change]) -> bool:
        """Apply a batch to all; False if its values can't be evaluated, and then nothing has changed."""
        return self.follow(batch, lambda: self.database.apply(self.tables.as_arrow(batch)))

    def replace(self) -> bool:
        """Replace a table by half of its rows, then by all of them again, if they are kept; False as for `apply`."""
        table = self.case.schema.tables[0].name
        whole = list(self.tables.tables[table].elements())
        gone = whole[1::2]
        return self.replace_by(table, whole[::2], [Change(table, row, -1) for row in gone]) and self.replace_by(
            table, whole, [Change(table, row) for row in gone]
        )

    def replace_by(self, table: str, rows: list[Row], difference: list[Change]) -> bool:
        new = self.tables.as_arrow([Change(table, row) for row in rows]).get(table)
        data: Any = [] if new is None else new.drop_columns(["_change_type"])
        return self.follow(difference, lambda: self.database.replace(table, data))

    def follow(self, batch: list[Change], work: Callable[[], dict[str, pa.Table]]) -> bool:
        """Do what applies a batch, and compare all views."""
        deltas: dict[str, pa.Table] = {}
        refused = code_of(lambda: deltas.update(work()))
        if refused == "CROWN-ROWS-NOT-KEPT" and self.case.keep == "read":
            hypothesis.event("not replaced")
            return True
        if refused is not None:
            assert refused in FAILURES
            for name in self.judges:
                self.check(name, ", after a refused batch")
            return False
        self.done.append(batch)
        self.tables.apply(batch)
        assert set(deltas) == set(self.judges)
        for name, judge in self.judges.items():
            judge.apply(batch)
            judge.check_delta(deltas[name], where=f"delta of {name}")
            self.check(name)
        return True


def as_rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def check(case: Case) -> None:
    hypothesis.note(f"schema = {case.schema.ddl!r}\nviews = {case.views}")
    followed = Followed(case)
    for _ in range(case.first):
        followed.add()
    for batch, step in zip(case.batches, case.steps, strict=True):
        if not followed.apply(batch):
            return
        match step:
            case "add":
                followed.add()
            case "drop":
                followed.drop()
            case "reload":
                followed.reload()
            case "replace":
                if not followed.replace():
                    return
    stats = followed.database.stats()
    assert set(stats["views"]) == set(followed.judges)


@hypothesis.settings(max_examples=12)
@hypothesis.given(cases())
def test_views_added_dropped_and_reloaded(case: Case) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=2000)
@hypothesis.given(cases())
def test_many_views_added_dropped_and_reloaded(case: Case) -> None:
    check(case)


def check_together(case: Case) -> None:
    """All views as one plan, whose one output has the rows of all of them, as a stream on Spark runs them."""
    hypothesis.note(f"schema = {case.schema.ddl!r}\nviews = {case.views}")
    followed = Followed(case)
    for _ in case.views:
        followed.add()
    hypothesis.assume(followed.judges)
    cells = case.threads
    together = lay_out_together(followed.database._catalog.project, cells)
    layout = together.layout if cells > 1 else None
    engine = open_engine(together.layout.cell, layout, deltas=True)
    for batch in case.batches:
        changes = list(next(iter(followed.judges.values())).as_arrow(batch).items())
        read = {table.name for table in together.layout.cell.tables}
        deltas: list[pa.Table] = []
        inputs = [(table, rows) for table, rows in changes if table in read]
        refused = code_of(lambda: deltas.append(read_all(engine.apply(inputs))))  # noqa: B023
        if refused is not None:
            assert refused in FAILURES
            return
        for view in together.views:
            own = deltas[0].filter(pc.equal(deltas[0]["_view"], view.number))
            shown = own.select([*view.places, "_change_type", "_multiplicity"])
            judge = followed.judges[view.name]
            judge.apply(batch)
            judge.check_delta(shown, where=f"delta of {view.name}")


@hypothesis.given(cases())
def test_views_as_one_plan(case: Case) -> None:
    check_together(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=2000)
@hypothesis.given(cases())
def test_many_views_as_one_plan(case: Case) -> None:
    check_together(case)
