"""The judge is judged: it must see each kind of disagreement, and none where there is none."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from typing import cast

import duckdb
import pyarrow as pa
import pytest

from tests.sql import generate
from tests.support import oracle
from tests.support.judge import Change, Judge, differences, normal

SCHEMA = "CREATE TABLE r (a INT, b STRING); CREATE TABLE s (k INT PRIMARY KEY, v DOUBLE)"


def delta(rows: list[tuple[int, str, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.table({"a": columns[0], "b": columns[1], "_change_type": pa.array(columns[2], pa.string())})


def test_agreement_passes() -> None:
    judge = Judge("SELECT a, b FROM r", SCHEMA)
    judge.apply([Change("r", (1, "x")), Change("r", (1, "x")), Change("r", (2, None))])
    judge.check_result([(1, "x"), (2, None), (1, "x")])
    judge.apply([Change("r", (1, "x"), -1), Change("r", (3, "y"))])
    judge.check_delta(delta([(1, "x", "delete"), (3, "y", "insert")]))
    judge.check_result([(1, "x"), (2, None), (3, "y")])


@pytest.mark.parametrize("wrong", [[], [(1, "x"), (1, "x")], [(1, "y")], [(1, None)], [(1, "x"), (2, "x")]])
def test_a_wrong_result_is_seen(wrong: list[tuple[int, str]]) -> None:
    judge = Judge("SELECT a, b FROM r", SCHEMA)
    judge.apply([Change("r", (1, "x"))])
    with pytest.raises(AssertionError, match="To replay"):
        judge.check_result(wrong)


def test_a_delta_that_is_not_net_is_seen() -> None:
    judge = Judge("SELECT a, b FROM r", SCHEMA)
    judge.apply([Change("r", (1, "x"))])
    with pytest.raises(AssertionError, match="deleted rows"):
        judge.check_delta(delta([(1, "x", "insert"), (2, "y", "delete")]))
    with pytest.raises(AssertionError, match="inserted rows"):
        judge.check_delta(delta([(1, "x", "insert"), (1, "x", "insert")]))


def test_a_primary_key_upserts() -> None:
    judge = Judge("SELECT SUM(v) FROM s", SCHEMA)
    judge.apply([Change("s", (1, 2.0)), Change("s", (1, 5.0)), Change("s", (2, 1.0))])
    judge.check_result([(6.0,)])


def test_rounding_is_forgiven_and_more_is_not() -> None:
    assert differences(Counter({(0.1 + 0.2,): 1}), Counter({(0.3,): 1})) == (Counter(), Counter())
    assert differences(Counter({(0.3,): 1}), Counter({(0.30001,): 1})) != (Counter(), Counter())
    assert differences(Counter({(0.3,): 2}), Counter({(0.1 + 0.2,): 1})) == (Counter({(0.3,): 1}), Counter())


def test_a_rounded_decimal_equals_the_float_it_was_rounded_from() -> None:
    exact = Counter({(20.253333333333334,): 1})
    assert differences(exact, Counter({(Decimal("20.253333"),): 1})) == (Counter(), Counter())
    assert differences(exact, Counter({(Decimal("20.253332"),): 1})) != (Counter(), Counter())
    assert differences(Counter({(Decimal("20.253333"),): 1}), Counter({(Decimal("20.253334"),): 1})) != (
        Counter(),
        Counter(),
    )


def test_normal_forms() -> None:
    assert normal(float("nan")) == normal(float("-nan"))
    assert str(normal(-0.0)) == "0.0"
    noon = datetime.datetime(2024, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert normal(noon) == datetime.datetime(2024, 1, 1, 12)


BREAKS = """SELECT DISTINCT y.k AS o0, y.k AS o1 FROM s x FULL JOIN t y ON y.v = x.a AND y.v <> 1 AND y.v = x.b
WHERE x.a NOT IN (SELECT i.a FROM r i) AND y.k = y.v"""


def test_a_question_that_breaks_duckdb_is_answered_all_the_same() -> None:
    judge = Judge(BREAKS, generate.SCHEMA)
    judge.apply([Change("r", (9, 9, None, None)), Change("s", (2, 2, None))])
    judge.apply([Change("t", (2, 2.0, None)), Change("t", (3, 3.0, None))])
    judge.check_result([(2, 2)])
    with pytest.raises(AssertionError, match="To replay"):
        judge.check_result([(3, 3)])


class Broken:
    """A connection that fails as DuckDB does, on every question or only with its optimizer on."""

    def __init__(self, *, always: bool) -> None:
        self.always = always
        self.optimizing = True

    def execute(self, sql: str) -> Broken:
        if sql.startswith("PRAGMA"):
            self.optimizing = "enable" in sql
        elif self.always or self.optimizing:
            raise duckdb.InternalException("INTERNAL Error: Failed to bind column reference")
        return self

    def fetchall(self) -> list[tuple[str]]:
        return [("DuckDB",)]


@pytest.mark.parametrize("always, says", [(False, "DuckDB"), (True, "the reference")])
def test_broken_questions_are_bounded(always: bool, says: str) -> None:
    questions, connection = oracle.Questions(), cast(duckdb.DuckDBPyConnection, Broken(always=always))
    for number in range(3):
        for _ in range(2):  # asking again is not another question
            assert questions.ask(connection, f"SELECT {number}", lambda: [("the reference",)]) == [(says,)]
    with pytest.raises(AssertionError, match="too many questions"):
        questions.ask(connection, "SELECT 3", lambda: [("the reference",)])
