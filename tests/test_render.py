"""Expressions as SQL text, for people and for hosts."""

from __future__ import annotations

import pytest

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.render import to_spark_sql, to_text
from crown.types import BOOLEAN, DATE, FLOAT32, FLOAT64, INT32, INT64, STRING, TIMESTAMP, TIMESTAMP_NTZ

A, B, S = Column("a", INT64), Column("b", INT64), Column("s", STRING)
LESS = Call("lt", (A, B), BOOLEAN)


@pytest.mark.parametrize(
    "expression, text",
    [
        (Call("and", (LESS, Call("is_null", (S,), BOOLEAN)), BOOLEAN), "a < b AND s IS NULL"),
        (Call("and", (Call("or", (LESS, LESS), BOOLEAN), LESS), BOOLEAN), "(a < b OR a < b) AND a < b"),
        (Call("eq", (LESS, Call("is_null", (S,), BOOLEAN)), BOOLEAN), "(a < b) = (s IS NULL)"),
        (Call("not", (Call("is_null", (A,), BOOLEAN),), BOOLEAN), "a IS NOT NULL"),
        (Call("in", (S, Literal("x'y", STRING)), BOOLEAN), r"s IN ('x\'y')"),
        (Call("cast", (A,), FLOAT64), "a"),
        (Call("multiply", (Call("cast", (Call("add", (A, B), INT64),), FLOAT64), A), FLOAT64), "(a + b) * a"),
        (Call("negate", (Call("add", (A, B), INT64),), INT64), "-(a + b)"),
        (Call("negate", (Literal(-1, INT64),), INT64), "-(-1)"),
        (Call("coalesce", (A, Literal(None, INT64)), INT64), "coalesce(a, NULL)"),
        (Literal(True, BOOLEAN), "TRUE"),
        (Literal(9204, DATE), "DATE '1995-03-15'"),
        (Literal(1_500_000, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:01.500000'"),
        (Literal(1.5, FLOAT64), "1.5"),
        (Call("try_cast", (S,), INT32), "TRY_CAST(s AS INT)"),
        (
            Call("add_microseconds", (Column("t", TIMESTAMP), Literal(-5_400_000_000, INT64)), TIMESTAMP),
            "t + INTERVAL '-90' MINUTE",
        ),
        (Call("rlike", (S, Literal("a+", STRING)), BOOLEAN), "s RLIKE 'a+'"),
    ],
)
def test_expressions_read_well(expression: Expression, text: str) -> None:
    assert to_text(expression) == text


@pytest.mark.parametrize(
    "expression, text",
    [
        (Call("cast", (Column("order by", INT64),), FLOAT64), "CAST(`order by` AS DOUBLE)"),
        (Call("concat", (S, Literal("\\", STRING)), STRING), r"`s` || '\\'"),
        (Literal(1.5, FLOAT64), "1.5D"),
        (Literal(0.1, FLOAT32), "0.1F"),
        (Literal("NaN", FLOAT64), "DOUBLE('NaN')"),
        (Literal(0, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:00+00:00'"),
        (Literal(0, TIMESTAMP_NTZ), "TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
        (Call("concat", (S, Literal("x'); DROP TABLE t; --", STRING)), STRING), r"`s` || 'x\'); DROP TABLE t; --'"),
        (Column("a` FROM t; DROP TABLE t; --", INT64), "`a`` FROM t; DROP TABLE t; --`"),
    ],
)
def test_hosts_read_back_the_same(expression: Expression, text: str) -> None:
    assert to_spark_sql(expression) == text
