"""Reduce a table's log to the lifespans of an atom's rows: filter, bind, and merge equal rows.

DuckDB casts the log to the table's types; the kernel itself decides which rows belong to the atom, and with which
values, as it does at run time.
"""

from __future__ import annotations

import dataclasses

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crown import _kernel
from crown.arrow import arrow_type
from crown.errors import InvalidChange
from crown.ir.expression import Column
from crown.ir.plan import Atom, Binding, Node, Plan, TreeStage, Variable
from crown.ir.serial import to_json
from crown.ir.tables import Table, TableColumn
from crown.types import INT64
from crown.workload.lifespan import BEFORE, Lifespans, Moments, lifespans, row_codes
from crown.workload.log import TableLog

_ROW = "$row"  # a row's position in the log
# DuckDB must not see anything but the log.
_CONFINED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
}
_TYPES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
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
        columns.append(f"CAST({source} AS {_TYPES.get(column.type, column.type)}) AS {_quoted(column.name)}")
    text = f"SELECT {', '.join([_quoted(_ROW), *columns])} FROM log ORDER BY {_quoted(_ROW)}"
    rows = _run(text, _numbered(log))
    result = dataclasses.replace(log, rows=rows.drop_columns([_ROW]))
    return _explicit_upserts(result, table.primary_key) if table.primary_key else result


def atom_lifespans(log: TableLog, table: Table, atom: Atom) -> Lifespans:
    """When the atom's rows lived; `log` is of `table_rows`."""
    rows = atom_rows(log.rows, table, atom)
    kept = rows[_ROW].to_numpy()
    return lifespans(row_codes(rows.drop_columns([_ROW])), log.change[kept], log.moment[kept])


def atom_rows(rows: pa.Table, table: Table, atom: Atom) -> pa.Table:
    """Return the atom's variables for those of the table's rows that are rows of the atom, and the rows' positions."""
    # A column declared NOT NULL may contain NULL: such a row is an error for a view, but not for a
    # profile.
    types = {c.name: c.type for c in table.columns}
    columns = (*(TableColumn(name, type_) for name, type_ in types.items()), TableColumn(_ROW, INT64, False))
    numbered = dataclasses.replace(atom, bindings=(*atom.bindings, Binding(_ROW, Column(_ROW, INT64))))
    bound = {binding.variable: binding.expression.type for binding in numbered.bindings}
    tree = TreeStage(
        id="$rows",
        variables=tuple(Variable(name, type_, name != _ROW) for name, type_ in bound.items()),
        atoms=(numbered,),
        nodes=(Node(atom.name, tuple(bound), 0, None, (), True),),
        outputs=tuple(bound),
        mode="set",
    )
    shown = tuple(TableColumn(v.name, v.type, v.nullable) for v in tree.variables)
    plan = Plan(sql="", tables=(Table(table.name, columns),), stages=(tree,), columns=shown, bag=False)
    source = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    source = source.select([c.name for c in columns]).cast(pa.schema([(c.name, arrow_type(c.type)) for c in columns]))
    engine = _kernel.Engine(to_json(plan), deltas=False)
    engine.apply([(table.name, source)])
    found = pa.table(engine.rows())
    return found.take(pc.sort_indices(found, sort_keys=[(_ROW, "ascending")]))


def _numbered(log: TableLog) -> pa.Table:
    """Return the rows with their order of arrival, which a query engine need not keep by itself."""
    return log.rows.append_column(_ROW, pa.array(np.arange(len(log))))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _run(sql: str, log: pa.Table) -> pa.Table:
    with duckdb.connect(config=_CONFINED) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        connection.register("log", log)
        try:
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise InvalidChange(
                "the rows of the log do not match the query", code="CROWN-LOG", reason=str(error).splitlines()[0]
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
