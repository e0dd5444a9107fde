"""Computed columns: scalar functions that the kernel does not have, evaluated by DuckDB before it sees a change."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from crown.arrow import arrow_type
from crown.errors import InvalidChange
from crown.ir.tables import Table

if TYPE_CHECKING:
    from sqlglot import exp


@cache
def in_duckdb(sql: str) -> str:
    """Spark's text in DuckDB's dialect.

    >>> in_duckdb("dayofweek(d)")
    '(DAYOFWEEK(CAST(d AS DATE)) + 1)'
    """
    import sqlglot

    return sqlglot.parse_one(sql, read="spark").transform(_counted_as_in_spark).sql("duckdb")


def _counted_as_in_spark(node: exp.Expr) -> exp.Expr:
    """DuckDB counts the days of a week from 0 for Sunday; Spark's `dayofweek` from 1, its `weekday` from Monday."""
    from sqlglot import exp

    if isinstance(node, exp.DayOfWeek):
        return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
    if isinstance(node, exp.Anonymous) and node.name.lower() == "weekday":
        return exp.paren(exp.Sub(this=exp.func("isodow", *node.expressions), expression=exp.Literal.number(1)))
    return node


def add_computed(table: Table, changes: pa.Table) -> pa.Table:
    """The changes with the table's computed columns."""
    import duckdb

    texts = [f'{in_duckdb(column.sql)} AS "{column.name}"' for column in table.computed]
    # Every column has its declared type, whatever the data came in: the functions follow Spark's types.
    declared = {column.name: arrow_type(column.type) for column in table.columns}
    fields = [pa.field(f.name, declared.get(f.name, f.type), f.nullable) for f in changes.schema]
    try:
        source = changes.cast(pa.schema(fields))
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("changes", source)
            computed = connection.sql(f"SELECT {', '.join(texts)} FROM changes").to_arrow_table()
    except (duckdb.Error, pa.ArrowException) as error:
        raise InvalidChange(
            f"the computed columns of table {table.name} can't be evaluated",
            code="CROWN-CHANGE-COMPUTED",
            reason=str(error).splitlines()[0],
            hint="check the values that the query's functions read",
        ) from error
    for column in table.computed:
        changes = changes.append_column(column.name, computed[column.name].cast(arrow_type(column.type)))
    return changes
