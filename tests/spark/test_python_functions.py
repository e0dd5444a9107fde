"""Python functions on Spark: computed in Python workers before the changes are dispatched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import crown
from crown.spark import run_batch

pytestmark = pytest.mark.spark


@crown.function(returns="DOUBLE", arguments=["DOUBLE"], vectorised=True)
def doubled(x: pa.Array) -> pa.Array:
    return pc.multiply(x, 2.0)


def half(k: int) -> int:
    return k // 2


def test_functions_are_what_a_view_computes(spark: SparkSession) -> None:
    sql = "SELECT half(r.k) AS h, SUM(doubled(r.x)) AS total FROM r JOIN s ON half(r.k) = s.k GROUP BY half(r.k)"
    functions: dict[str, Callable[..., Any]] = {"doubled": doubled, "half": half}
    rows: dict[str, list[Any]] = {"r": [(1, 0.5), (2, 1.5), (3, None), (4, 2.0), (None, 1.0)], "s": [(0,), (1,), (1,)]}
    view = crown.View(sql, "CREATE TABLE r (k BIGINT, x DOUBLE); CREATE TABLE s (k BIGINT)", functions=functions)
    view.apply(rows)
    frames = {
        "r": spark.createDataFrame(rows["r"], "k BIGINT, x DOUBLE"),
        "s": spark.createDataFrame(rows["s"], "k BIGINT"),
    }
    found = run_batch(spark, sql, frames, cells=2, functions=functions).select("h", "total").collect()
    assert sorted(map(tuple, found)) == sorted(view) == [(0, 1.0), (1, 6.0)]
