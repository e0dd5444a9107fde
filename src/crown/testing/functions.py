"""The user's Python functions in DuckDB."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from crown.arrow import arrow_type
from crown.ir.functions import Declared

if TYPE_CHECKING:
    import duckdb

_numbers = itertools.count()


def register(connection: duckdb.DuckDBPyConnection, sql: str, functions: Mapping[str, Declared], owner: object) -> str:
    """Let DuckDB call the functions as long as `owner` lives, and return the query that calls them there.

    Judges share a database, so each function has a unique name.
    """
    if not functions:
        return sql
    names = {name: f"{name}_{next(_numbers)}" for name in functions}
    for name, function in functions.items():
        connection.create_function(  # type: ignore[call-overload]  # (it takes the words too)
            names[name],
            _evaluated(function),
            [_in_duckdb(type_.sql_name) for type_ in function.arguments],
            _in_duckdb(function.returns.sql_name),
            type="arrow",
            null_handling="special",
        )
        weakref.finalize(owner, connection.remove_function, names[name])
    query = sqlglot.parse_one(sql, read="duckdb")
    for call in list(query.find_all(exp.Anonymous)):
        name = str(call.this).lower()
        if name in functions:
            # DuckDB's sums are wider than Spark's, and a function takes its own types only.
            types = [_in_duckdb(type_.sql_name) for type_ in functions[name].arguments]
            given = zip(call.expressions, types, strict=True)
            call.set("this", names[name])
            call.set("expressions", [exp.cast(value, to, copy=False, dialect="duckdb") for value, to in given])
    return query.sql("duckdb")


def _evaluated(function: Declared) -> Callable[..., pa.Array]:
    def evaluate(*columns: pa.ChunkedArray) -> pa.Array:
        rows = pa.table(list(columns), names=[str(n) for n in range(len(columns))])
        if not function.strict:
            return function.evaluate(rows)["value"].combine_chunks()
        present = [all(column[row].is_valid for column in columns) for row in range(rows.num_rows)]
        values = iter(function.evaluate(rows.filter(pa.array(present)))["value"].to_pylist())
        return pa.array([next(values) if is_present else None for is_present in present], arrow_type(function.returns))

    # DuckDB counts the parameters.
    kind = inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(f"argument{n}", kind) for n in range(len(function.arguments))]
    evaluate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return evaluate


def _in_duckdb(type_: str) -> str:
    return exp.DataType.build(type_, dialect="spark").sql("duckdb")
