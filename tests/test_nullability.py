"""What the schema of a view says of NULL holds for its rows."""

from __future__ import annotations

import math

import pytest

import crown

SCHEMA = "CREATE TABLE t (k BIGINT NOT NULL, f DOUBLE NOT NULL, s STRING NOT NULL, n BIGINT)"


@pytest.mark.parametrize(
    "expression, nullable",
    [
        ("CAST(f AS DECIMAL(5,2))", True),  # of NaN
        ("CAST(k AS DECIMAL(20,0))", False),
        ("CAST(s AS DOUBLE)", False),  # text that is no number is an error
        ("TRY_CAST(s AS BIGINT)", True),
        ("CASE WHEN k > 0 THEN k END", True),
        ("CASE WHEN k > 0 THEN k ELSE 0 END", False),
        ("CASE WHEN k > 0 THEN n ELSE 0 END", True),
        ("COALESCE(n, k)", False),
        ("n IS NULL", False),
        ("ln(f)", True),
    ],
)
@pytest.mark.parametrize("query", ["SELECT {} AS x FROM t", "SELECT MAX(k) AS m, {} AS x FROM t GROUP BY {}"])
def test_a_column_is_nullable_exactly_if_it_can_be(query: str, expression: str, nullable: bool) -> None:
    view = crown.View(query.replace("{}", expression), SCHEMA)
    assert view.schema.field("x").nullable is nullable
    view.insert("t", [(1, math.nan, "1", None), (-1, -1.0, "-1", None)])
    shown = view.to_arrow()["x"]
    assert nullable or shown.null_count == 0, shown


@pytest.mark.parametrize(
    "expression, nullable",
    [("CAST(t.f + u.f AS DECIMAL(5,2))", True), ("CAST(CONCAT(t.s, u.s) AS DOUBLE)", False), ("t.f + u.f", False)],
)
def test_so_is_one_that_is_computed_from_two_tables(expression: str, nullable: bool) -> None:
    schema = {name: {"columns": {"f": "double", "s": "string"}, "not_null": ["f", "s"]} for name in "tu"}
    view = crown.View(f"SELECT {expression} AS x FROM t, u", schema)
    assert view.schema.field("x").nullable is nullable
    view.insert("t", [(math.nan, "1"), (1.0, "2")])
    view.insert("u", [(1.0, "1")])
    shown = view.to_arrow()["x"]
    assert shown.null_count == (1 if nullable else 0), shown
