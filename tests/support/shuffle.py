"""The shuffle runner: contents of tables become a random stream of inserts, deletes and re-inserts.

The view is judged after each batch. In the end the tables hold exactly the given contents; an expected answer, where
there is one, is compared then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

import crown
from tests.support.judge import Change, Judge, Row, differences, multiset

QUERIES = Path(__file__).parent.parent / "queries"


def read_suite(name: str) -> tuple[str, dict[str, str]]:
    """Return the schema and the queries of the folder `tests/queries/NAME`, each with one right answer."""
    paths = sorted((QUERIES / name).glob("*.sql"))
    texts = {path.stem: path.read_text() for path in paths}
    return texts.pop("schema"), {title: without_ties(text) for title, text in texts.items()}


def without_ties(sql: str) -> str:
    """Order a LIMIT by all outputs, last of all: rows that tie would make several answers right."""
    query = sqlglot.parse_one(sql, dialect="spark")
    if isinstance(query, exp.Select) and query.args.get("limit"):
        for position in range(len(query.expressions)):
            query = query.order_by(exp.Literal.number(position + 1))
    return query.sql(dialect="spark")


def shuffled(
    contents: Mapping[str, Sequence[Row]], rng: random.Random, *, again: float = 0.3
) -> Iterator[list[Change]]:
    """Random batches; each row comes once and, with probability `again`, also goes and comes back, at random times."""
    timed: list[tuple[float, Change]] = []
    for table, rows in contents.items():
        for row in rows:
            weights = [1]
            while rng.random() < again:
                weights += [-1, 1]
            moments = sorted(rng.random() for _ in weights)
            timed += [(moment, Change(table, row, weight)) for moment, weight in zip(moments, weights, strict=True)]
    changes = [change for _, change in sorted(timed, key=lambda pair: pair[0])]
    while changes:
        size = rng.choice([1, 3, 20, 80, 200])
        yield changes[:size]
        changes = changes[size:]


def run_shuffled(
    sql: str,
    schema: str,
    contents: Mapping[str, Sequence[Row]],
    rng: random.Random,
    *,
    expected: Sequence[Row] | None = None,
    **options: Any,
) -> int:
    """Maintain `sql` under a shuffle of `contents`; `options` go to `crown.View`. Returns the largest result seen."""
    view = crown.View(sql, schema=schema, **options)
    judge = Judge(sql, schema)
    used = {table: rows for table, rows in contents.items() if table in sql}
    largest = 0
    for batch in shuffled(used, rng):
        delta = view.apply(judge.as_arrow(batch))
        judge.apply(batch)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())
        largest = max(largest, judge.result.total())
    if expected is not None:
        assert differences(multiset(expected), multiset(view)) == ({}, {})
    return largest
