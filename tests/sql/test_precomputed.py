"""Calls of Python functions that become columns of their tables."""

from __future__ import annotations

import pytest

from crown.errors import PlanError
from crown.functions import declare, function
from crown.sql.precomputed import precompute

TABLES = {"r": ["k", "x"], "s": ["k", "y"]}
FUNCTIONS = declare(
    {
        "half": function(lambda x: x // 2, returns="BIGINT", arguments=["BIGINT"]),
        "both": function(lambda x, y: x + y, returns="BIGINT", arguments=["BIGINT", "BIGINT"]),
        "shown": function(str, returns="STRING", arguments=["BIGINT"], nulls="pass"),
    }
)


def test_a_call_is_a_column_of_its_table_and_equal_calls_are_one() -> None:
    sql = "SELECT half(a.x) AS h, SUM(y) AS n FROM r a JOIN s ON HALF(y + 1) = a.k WHERE half(x) > 0 GROUP BY half(a.x)"
    other = "SELECT half(r.x) AS h, half(r.k) AS g FROM r"
    queries, columns = precompute({"a": sql, "b": other}, TABLES, FUNCTIONS)
    found = {column.name: (column.table, column.function.name, column.arguments) for column in columns}
    assert sorted(found.values()) == [("r", "half", ("k",)), ("r", "half", ("x",)), ("s", "half", ("y + 1",))]
    of_k, of_x, of_y = (next(name for name, (*_, of) in found.items() if of == (arg,)) for arg in ("k", "x", "y + 1"))
    assert queries["b"] == f"SELECT r.{of_x} AS h, r.{of_k} AS g FROM r", "columns are shared by queries"
    assert queries["a"] == (
        f"SELECT a.{of_x} AS h, SUM(y) AS n FROM r AS a JOIN s ON s.{of_y} = a.k WHERE a.{of_x} > 0 GROUP BY a.{of_x}"
    )


def test_a_query_without_calls_stays_as_it_is() -> None:
    assert precompute({"q": "SELECT k FROM r"}, TABLES, FUNCTIONS) == ({"q": "SELECT k FROM r"}, [])


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT both(r.x, s.y) AS b FROM r JOIN s ON r.k = s.k", "columns of several tables"),
        ("SELECT half(k) AS h FROM r, s", "k is not a column of one table"),
        ("SELECT half(n) AS h FROM (SELECT COUNT(*) AS n FROM r) AS q", "n is not a column of one table"),
        ("SELECT half(3) AS h FROM r", "it reads no column"),
        ("SELECT both(x) AS h FROM r", "takes 2 arguments"),
        ("SELECT shown(s.y) AS h FROM r LEFT JOIN s ON r.k = s.k", "it takes NULLs"),
    ],
)
def test_other_calls_are_refused(sql: str, why: str) -> None:
    with pytest.raises(PlanError, match=why) as raised:
        precompute({"q": sql}, TABLES, FUNCTIONS)
    assert raised.value.code == "CROWN-SPARK-FUNCTION"
