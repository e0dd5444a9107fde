"""Computed columns: scalar functions that the kernel does not have, evaluated by DuckDB before it sees a change."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from crown.errors import InvalidChange
from crown.plan.model import Table
from crown.view.types import arrow_type


@cache
def _in_duckdb(sql: str) -> str:
    import sqlglot

    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def add_computed(table: Table, changes: pa.Table) -> pa.Table:
    """The changes with the table's computed columns."""
    import duckdb

    texts = [f'{_in_duckdb(column.sql)} AS "{column.name}"' for column in table.computed]
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
