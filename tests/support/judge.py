"""The public judge (`crown.testing`), with a naive evaluation where DuckDB itself breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import crown
from crown.sql import parse
from crown.testing import Change, Row, differences, multiset, normal, split_delta
from crown.testing import Judge as PublicJudge
from tests.support.oracle import ask
from tests.support.reference import evaluate

__all__ = ["Change", "Judge", "Row", "differences", "follow", "multiset", "normal", "split_delta"]


class Judge(PublicJudge):
    """Answers from `tests.support.reference` if DuckDB fails on the query with an internal error."""

    def rows(self) -> list[Row]:
        return list(ask(self._connection, self._question, self._evaluate))

    def _evaluate(self) -> list[Row]:
        tables = {}
        for name, rows in self.tables.items():
            tables[name] = [dict(zip(self._columns[name], row, strict=True)) for row in rows.elements()]
        return evaluate(parse(self.sql, self.schema), tables)


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
