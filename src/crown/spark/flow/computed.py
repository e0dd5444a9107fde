"""Python functions on Spark: Python workers compute them as columns of the changes before these are dispatched.

The engines run in the executors' JVMs, which can't call Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from crown.arrow import arrow_type
from crown.functions import PythonFunctions, declare
from crown.ir.functions import Declared
from crown.spark.schema import spark_type
from crown.sql.precomputed import precompute


def with_functions(
    queries: Mapping[str, str],
    tables: Mapping[str, DataFrame],
    functions: PythonFunctions | None,
    *,
    dialect: str = "spark",
) -> tuple[Mapping[str, str], Mapping[str, DataFrame]]:
    """Return queries by name and their tables, with each call replaced by a column."""
    declared = declare(functions)
    if not declared:
        return queries, tables
    own = {name: frame.columns for name, frame in tables.items()}
    computed_queries, columns = precompute(queries, own, declared, dialect=dialect)
    frames = dict(tables)
    for column in columns:
        function = column.function
        arguments = [
            F.expr(text).cast(spark_type(type_))
            for text, type_ in zip(column.arguments, function.arguments, strict=True)
        ]
        # (PySpark's type hints have no function with a variable number of arguments.)
        computed = arrow_udf(_evaluated(function), spark_type(function.returns))  # type: ignore[call-overload]
        frames[column.table] = frames[column.table].withColumn(column.name, computed(*arguments))
    return computed_queries, frames


def _evaluated(function: Declared) -> Callable[..., pa.Array]:
    def evaluate(*columns: pa.Array) -> pa.Array:
        rows = pa.table([_plain(column) for column in columns], names=[str(n) for n in range(len(columns))])
        present = [not function.strict or all(c[row].is_valid for c in columns) for row in range(rows.num_rows)]
        values = iter(function.evaluate(rows.filter(pa.array(present)))["value"].to_pylist())
        return pa.array([next(values) if is_present else None for is_present in present], arrow_type(function.returns))

    evaluate.__annotations__ = {"columns": pa.Array, "return": pa.Array}  # by which Spark knows what it takes
    return evaluate


def _plain(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
