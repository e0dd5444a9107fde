"""From a table's log to the lifespans of an atom's rows: filter, bind, and let equal rows be one.

The kernel does the same while it runs; here DuckDB evaluates the expressions over the whole log at once.
"""

from __future__ import annotations

import dataclasses

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot

from crown.errors import InvalidChange
from crown.expression import Call, Column, Expression, Literal
from crown.plan.model import Atom, Table
from crown.workload.lifespan import BEFORE, Lifespans, Moments, lifespans, row_codes
from crown.workload.log import TableLog

_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "AND",
    "or": "OR",
    "is_not_distinct": "IS NOT DISTINCT FROM",
    "like": "LIKE",
    "concat": "||",
}
_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def table_rows(log: TableLog, table: Table) -> TableLog:
    """The log with the plan's columns of the table, in their types; upserts made explicit where there is a key."""
    available = {name.lower(): name for name in log.rows.column_names}
    columns = []
    for column in table.columns:
        if column.name.lower() not in available:
            raise InvalidChange(
                f"the log of {table.name} has no column {column.name}",
                code="CROWN-LOG",
                reason=f"the query reads it; the log has {', '.join(log.rows.column_names) or 'no columns'}",
            )
        source = _quoted(available[column.name.lower()])
        columns.append(f"CAST({source} AS {duckdb_type(column.type)}) AS {_quoted(column.name)}")
    computed = []
    for extra in table.computed:
        sql = sqlglot.transpile(extra.sql, read="spark", write="duckdb")[0]
        computed.append(f"CAST({sql} AS {duckdb_type(extra.type)}) AS {_quoted(extra.name)}")
    inner = f"SELECT {', '.join(['_row', *columns])} FROM log"
    rows = _run(f"SELECT {', '.join(['*', *computed])} FROM ({inner}) ORDER BY _row", _numbered(log))
    result = dataclasses.replace(log, rows=rows.drop_columns(["_row"]))
    return _explicit_upserts(result, table.primary_key) if table.primary_key else result


def atom_lifespans(log: TableLog, atom: Atom) -> Lifespans:
    """When the atom's rows lived; `log` is of `table_rows`."""
    conditions = [] if atom.filter is None else [duckdb_sql(atom.filter)]
    values: dict[str, str] = {}
    for binding in atom.bindings:
        value = duckdb_sql(binding.expression)
        if binding.variable in values:
            conditions.append(f"({values[binding.variable]}) = ({value})")
        else:
            values[binding.variable] = value
    conditions += [f"({values[variable]}) IS NOT NULL" for variable in atom.not_null]
    selected = ", ".join(["_row", *(f"{sql} AS {_quoted(name)}" for name, sql in values.items())])
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = _run(f"SELECT {selected} FROM log{where} ORDER BY _row", _numbered(log))
    kept = rows["_row"].to_numpy()
    return lifespans(row_codes(rows.drop_columns(["_row"])), log.change[kept], log.moment[kept])


def duckdb_type(name: str) -> str:
    """The DuckDB name of one of Crown's types; decimals are spelled alike."""
    return _TYPES.get(name, name.upper())


def duckdb_sql(expression: Expression) -> str:
    """An expression of a plan as DuckDB SQL.

    >>> duckdb_sql(Call("gt", (Column("a", "int64"), Literal(3, "int64")), "boolean"))
    '("a" > CAST(3 AS BIGINT))'
    """
    match expression:
        case Column(name, _):
            return _quoted(name)
        case Literal(value, type_):
            return _literal(value, type_)
        case Call("case", arguments, _):
            parts = [duckdb_sql(a) for a in arguments]
            whens = " ".join(f"WHEN {w} THEN {t}" for w, t in zip(parts[:-1:2], parts[1::2], strict=True))
            return f"(CASE {whens} ELSE {parts[-1]} END)"
        case Call("cast", (argument,), type_):
            return f"CAST({duckdb_sql(argument)} AS {duckdb_type(type_)})"
        case Call("in", (first, *others), _):
            return f"({duckdb_sql(first)} IN ({', '.join(duckdb_sql(o) for o in others)}))"
        case Call("not", (argument,), _):
            return f"(NOT {duckdb_sql(argument)})"
        case Call("negate", (argument,), _):
            return f"(- {duckdb_sql(argument)})"
        case Call("is_null", (argument,), _):
            return f"({duckdb_sql(argument)} IS NULL)"
        case Call(function, arguments, _):
            parts = [duckdb_sql(a) for a in arguments]
            if function in _OPERATORS:
                return f"({f' {_OPERATORS[function]} '.join(parts)})"
            return f"{function}({', '.join(parts)})"


def _literal(value: object, type_: str) -> str:
    if value is None:
        return f"CAST(NULL AS {duckdb_type(type_)})"
    if type_ == "date":
        return f"(DATE '1970-01-01' + {value})"
    if type_ == "timestamp":
        return f"make_timestamptz({value})"
    if type_ == "timestamp_ntz":
        return f"make_timestamp({value})"
    if type_ == "binary":
        return f"unhex('{value}')"
    if isinstance(value, str):
        escaped = value.replace("'", "''")
        return f"CAST('{escaped}' AS {duckdb_type(type_)})"
    return f"CAST({str(value).lower()} AS {duckdb_type(type_)})"


def _numbered(log: TableLog) -> pa.Table:
    """The rows with their order of arrival, which a query engine need not keep by itself."""
    return log.rows.append_column("_row", pa.array(np.arange(len(log))))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _run(sql: str, log: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("log", log)
        try:
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise InvalidChange(
                "the log's rows don't fit the query", code="CROWN-LOG", reason=str(error).splitlines()[0]
            ) from error


def _explicit_upserts(log: TableLog, key: tuple[str, ...]) -> TableLog:
    """Inserting a row for a key that is there replaces the old row: adds the deletion that this implies."""
    codes = row_codes(log.rows.select(list(key)))
    rows = row_codes(log.rows)
    order = np.argsort(codes, kind="stable")
    same_key = codes[order][1:] == codes[order][:-1]
    replaces = np.flatnonzero(same_key & (log.change[order][1:] > 0) & (log.change[order][:-1] > 0)) + 1
    again = rows[order[replaces]] == rows[order[replaces - 1]]
    new, old = order[replaces[~again]], order[replaces[~again] - 1]
    keep = np.setdiff1d(np.arange(len(log)), order[replaces[again]])

    source = np.r_[keep, old]
    change = np.sign(np.r_[log.change[keep], -log.change[old]])
    moment: Moments = np.r_[log.moment[keep], np.maximum(log.moment[new] - 1, BEFORE)]
    arrival = np.argsort(moment, kind="stable")
    return TableLog(log.rows.take(pa.array(source[arrival])), change[arrival], moment[arrival])
