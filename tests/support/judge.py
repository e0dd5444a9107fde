"""The public judge (`crown.testing`), with a naive evaluation where DuckDB itself breaks."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping

import crown
from crown.functions import PythonFunctions
from crown.ir import tables as ir_tables
from crown.sql import parse
from crown.sql.schema.schema import SchemaLike
from crown.testing import Change, Row, differences, multiset, normal, split_delta
from crown.testing import Judge as PublicJudge
from tests.support.oracle import ask
from tests.support.reference import evaluate
from tests.support.time_words import CLOCK, CLOCK_TABLE, with_buckets, with_clock

__all__ = ["Change", "Judge", "Row", "differences", "follow", "multiset", "normal", "split_delta"]


class Judge(PublicJudge):
    """Answers from `tests.support.reference` if DuckDB fails on the query with an internal error.

    With `clock` the query may ask for the current time, which `tell` gives.
    """

    def __init__(
        self,
        sql: str,
        schema: SchemaLike,
        *,
        dialect: str = "spark",
        functions: PythonFunctions | None = None,
        clock: bool = False,
    ) -> None:
        asked = with_buckets(with_clock(sql) if clock else sql)
        given = f"{schema}; {CLOCK_TABLE}" if clock else schema
        super().__init__(asked, given, dialect=dialect, functions=functions)
        self.sql, self.schema = sql, schema
        self.now: datetime.datetime | None = None

    def tell(self, now: datetime.datetime) -> None:
        """Set the current time, as a batch without changes."""
        self.now = now
        self.tables[CLOCK] = Counter([(now,)])
        self._stale.add(CLOCK)
        self.apply([])

    def rows(self) -> list[Row]:
        return list(ask(self._connection, self._question, self._evaluate))

    def _evaluate(self) -> list[Row]:
        tables = {}
        for name in self.tables:
            if name == CLOCK:
                continue
            tables[name] = [dict(zip(self._columns[name], row, strict=True)) for row in self.table_rows(name)]
        if self.now is not None:
            tables[ir_tables.CLOCK] = [{"id": 0, "now": self.now}]
        return evaluate(parse(self.sql, self.schema, functions=self.functions), tables)


def follow(judge: Judge, views: Mapping[str, crown.View], batches: Iterable[list[Change]]) -> None:
    """Give the batches to the judge and to views of its query: all must agree after each, on delta, result and len."""
    for batch in batches:
        changes = judge.as_arrow(batch)
        deltas = {name: view.apply(changes) for name, view in views.items()}
        judge.apply(batch)
        for name, view in views.items():
            judge.check_delta(deltas[name], where=f"delta, {name}")
            judge.check_result(view.to_arrow(), where=f"full result, {name}")
            assert len(view) == judge.result.total(), f"len, {name}"
