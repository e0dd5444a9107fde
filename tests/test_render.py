"""Expressions as SQL text, for people and for hosts."""

from __future__ import annotations

import pytest

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.render import to_spark_sql, to_text

A, B, S = Column("a", "int64"), Column("b", "int64"), Column("s", "string")
LESS = Call("lt", (A, B), "boolean")


@pytest.mark.parametrize(
    "expression, text",
    [
        (Call("and", (LESS, Call("is_null", (S,), "boolean")), "boolean"), "a < b AND s IS NULL"),
        (Call("and", (Call("or", (LESS, LESS), "boolean"), LESS), "boolean"), "(a < b OR a < b) AND a < b"),
        (Call("eq", (LESS, Call("is_null", (S,), "boolean")), "boolean"), "(a < b) = (s IS NULL)"),
        (Call("not", (Call("is_null", (A,), "boolean"),), "boolean"), "a IS NOT NULL"),
        (Call("in", (S, Literal("x'y", "string")), "boolean"), r"s IN ('x\'y')"),
        (Call("cast", (A,), "float64"), "a"),
        (Call("multiply", (Call("cast", (Call("add", (A, B), "int64"),), "float64"), A), "float64"), "(a + b) * a"),
        (Call("negate", (Call("add", (A, B), "int64"),), "int64"), "-(a + b)"),
        (Call("negate", (Literal(-1, "int64"),), "int64"), "-(-1)"),
        (Call("coalesce", (A, Literal(None, "int64")), "int64"), "coalesce(a, NULL)"),
        (Literal(True, "boolean"), "TRUE"),
        (Literal(9204, "date"), "DATE '1995-03-15'"),
        (Literal(1_500_000, "timestamp"), "TIMESTAMP '1970-01-01 00:00:01.500000'"),
        (Literal(1.5, "float64"), "1.5"),
        (Call("try_cast", (S,), "int32"), "TRY_CAST(s AS INT)"),
        (
            Call("add_microseconds", (Column("t", "timestamp"), Literal(-5_400_000_000, "int64")), "timestamp"),
            "t + INTERVAL '-90' MINUTE",
        ),
        (Call("rlike", (S, Literal("a+", "string")), "boolean"), "s RLIKE 'a+'"),
    ],
)
def test_expressions_read_well(expression: Expression, text: str) -> None:
    assert to_text(expression) == text


@pytest.mark.parametrize(
    "expression, text",
    [
        (Call("cast", (Column("order by", "int64"),), "float64"), "CAST(`order by` AS DOUBLE)"),
        (Call("concat", (S, Literal("\\", "string")), "string"), r"`s` || '\\'"),
        (Literal(1.5, "float64"), "1.5D"),
        (Literal(0.1, "float32"), "0.1F"),
        (Literal("NaN", "float64"), "DOUBLE('NaN')"),
        (Literal(0, "timestamp"), "TIMESTAMP '1970-01-01 00:00:00+00:00'"),
        (Literal(0, "timestamp_ntz"), "TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
        (Call("concat", (S, Literal("x'); DROP TABLE t; --", "string")), "string"), r"`s` || 'x\'); DROP TABLE t; --'"),
        (Column("a` FROM t; DROP TABLE t; --", "int64"), "`a`` FROM t; DROP TABLE t; --`"),
    ],
)
def test_hosts_read_back_the_same(expression: Expression, text: str) -> None:
    assert to_spark_sql(expression) == text
