"""DuckDB as judge: it gets the same changes as a view, recomputes the query, and both must agree.

    judge = Judge("SELECT a, COUNT(*) AS n FROM r GROUP BY a", "CREATE TABLE r (a INT, b INT)")
    changes = [Change("r", (1, 2)), Change("r", (1, 2), -1)]
    delta = view.apply(judge.as_arrow(changes))
    judge.apply(changes)
    judge.check_delta(delta)               # nothing missing, nothing extra, nothing twice
    judge.check_result(view.to_arrow())

Tables are kept here as multisets of rows and handed to DuckDB for each question: slow and plain, as a judge should be.
A failure prints the query, the schema, all changes so far as Python text, and what differs.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import itertools
import math
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

import crown
from crown.changes import CHANGE_TYPE, DELETE, INSERT, MULTIPLICITY, SIGN
from crown.sql import parse
from tests.support.oracle import ask, in_duckdb
from tests.support.reference import evaluate

Row = tuple[Any, ...]
_numbers = itertools.count()


@dataclass(frozen=True)
class Change:
    """`weight` +1 for an insert, -1 for a delete."""

    table: str
    row: Row
    weight: int = 1


@functools.cache
def database() -> duckdb.DuckDBPyConnection:
    """One database for all judges of this process: to open one takes longer than most of them live."""
    return duckdb.connect(config={"threads": 1})


def own_schema(owner: object) -> duckdb.DuckDBPyConnection:
    """A connection with a schema to itself, which goes with its owner."""
    connection = database().cursor()
    name = f"of_{next(_numbers)}"
    connection.execute(f"CREATE SCHEMA {name}")
    connection.execute(f"SET schema = '{name}'")
    connection.execute("SET TimeZone = 'UTC'")
    weakref.finalize(owner, connection.execute, f"DROP SCHEMA {name} CASCADE")
    return connection


class Judge:
    """Keeps tables under changes and answers `sql` (Spark's dialect) over them by recomputation.

    `schema` is CREATE TABLE text. A table with a PRIMARY KEY takes upserts: a new row for a key replaces the old one.
    """

    def __init__(self, sql: str, schema: str) -> None:
        self.sql = sql
        self.schema = schema
        self.history: list[list[Change]] = []
        self.tables: dict[str, Counter[Row]] = {}
        self._keys: dict[str, tuple[int, ...]] = {}
        self._columns: dict[str, list[str]] = {}
        self._arrow_schemas: dict[str, pa.Schema] = {}
        self._connection = own_schema(self)
        self._question = in_duckdb(sql)
        for statement in sqlglot.transpile(schema, read="spark", write="duckdb"):
            self._connection.execute(statement)
        for (table,) in self._connection.execute("SHOW TABLES").fetchall():
            described = self._connection.execute(f'DESCRIBE "{table}"').fetchall()
            self._columns[table] = [column[0] for column in described]
            self._keys[table] = tuple(i for i, column in enumerate(described) if column[3] == "PRI")
            self.tables[table] = Counter()
        self._stale = set(self.tables)
        self.result = self.recompute()
        # The first delta of a global aggregate shows its one row as an insert, although the row was there before.
        self._shown: Counter[Row] = Counter()
        self._before = self._shown

    def apply(self, changes: Iterable[Change]) -> None:
        """Take one batch of changes, in order, and recompute."""
        batch = list(changes)
        self.history.append(batch)
        for change in batch:
            self._apply(change)
        self._before = self._shown
        self.result = self._shown = self.recompute()

    def as_arrow(self, changes: Iterable[Change]) -> dict[str, pa.Table]:
        """A batch as one Arrow table of changes per base table, order kept within each."""
        batch = list(changes)
        tables = {}
        for table in dict.fromkeys(change.table for change in batch):
            schema = self._arrow_schema(table)
            mine = [change for change in batch if change.table == table]
            arrays = [pa.array([c.row[i] for c in mine], field.type) for i, field in enumerate(schema)]
            words = pa.array([INSERT if c.weight > 0 else DELETE for c in mine])
            tables[table] = pa.table([*arrays, words], names=[*schema.names, CHANGE_TYPE])
        return tables

    def _arrow_schema(self, table: str) -> pa.Schema:
        if table not in self._arrow_schemas:
            empty = self._connection.sql(f'SELECT * FROM "{table}" LIMIT 0').to_arrow_table()
            self._arrow_schemas[table] = empty.schema
        return self._arrow_schemas[table]

    def _apply(self, change: Change) -> None:
        rows = self.tables[change.table]
        self._stale.add(change.table)
        if change.weight > 0 and (key := self._keys[change.table]):
            wanted = [change.row[i] for i in key]
            for old in [row for row in rows if [row[i] for i in key] == wanted]:
                del rows[old]
        rows[change.row] += change.weight
        assert rows[change.row] >= 0, f"the test itself deletes an absent row: {change}"
        if not rows[change.row]:
            del rows[change.row]

    def recompute(self) -> Counter[Row]:
        for table in self._stale:
            self._load(table)
        self._stale.clear()
        return multiset(self.rows())

    def rows(self) -> list[Row]:
        """DuckDB's answer over the tables as they are, in its order."""
        return list(ask(self._connection, self._question, self._evaluate))

    def _evaluate(self) -> list[Row]:
        tables = {}
        for name, rows in self.tables.items():
            tables[name] = [dict(zip(self._columns[name], row, strict=True)) for row in rows.elements()]
        return evaluate(parse(self.sql, self.schema), tables)

    def _load(self, table: str) -> None:
        rows = list(self.tables[table].elements())
        self._connection.execute(f'DELETE FROM "{table}"')
        if rows:
            values = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
            flat = [value for row in rows for value in row]
            self._connection.execute(f'INSERT INTO "{table}" VALUES {values}', flat)

    def check_result(self, rows: pa.Table | Iterable[Row], *, where: str = "full result") -> None:
        """`rows`: the full result, duplicates repeated."""
        self._compare(self.result, multiset(_tuples(rows)), where)

    def check_delta(self, delta: pa.Table, *, where: str = "delta") -> None:
        """`delta`: the net change of the last batch, with `_change_type` and, for bags, `_multiplicity`."""
        came, went = split_delta(delta)
        assert not came & went, f"{where}: a row both comes and goes"
        # DuckDB divides decimals as doubles, so its answer may change in the last bit where Crown's does not at all.
        came, went = differences(came, went)
        expected_came, expected_went = differences(self.result, self._before)
        self._compare(expected_came, came, f"{where}, rows that came")
        self._compare(expected_went, went, f"{where}, rows that went")

    def _compare(self, expected: Counter[Row], got: Counter[Row], where: str) -> None:
        missing, extra = differences(expected, got)
        if missing or extra:
            raise AssertionError("\n".join(self._report(where, missing, extra)))

    def _report(self, where: str, missing: Counter[Row], extra: Counter[Row]) -> Iterator[str]:
        yield f"Crown and DuckDB disagree after batch {len(self.history)}: {where}"
        yield f"  missing: {_shorten(missing)}"
        yield f"  extra:   {_shorten(extra)}"
        yield f"  tables:  { {name: dict(rows) for name, rows in self.tables.items()} }"
        yield "To replay:"
        yield f"  sql = {self.sql!r}"
        yield f"  schema = {self.schema!r}"
        yield f"  batches = {[[(c.table, c.row, c.weight) for c in batch] for batch in self.history]!r}"
        yield "  tests.support.judge.replay(sql, schema, batches)"


def replay(sql: str, schema: str, batches: list[list[tuple[str, Row, int]]], **options: Any) -> None:
    """Run a reported failure again; `options` go to `crown.View`."""
    view = crown.View(sql, schema=schema, **options)
    judge = Judge(sql, schema)
    for batch in batches:
        changes = [Change(*change) for change in batch]
        delta = view.apply(judge.as_arrow(changes))
        judge.apply(changes)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())


def split_delta(delta: pa.Table) -> tuple[Counter[Row], Counter[Row]]:
    """The rows that came and the rows that went, as multisets."""
    names = [name for name in delta.column_names if name not in (CHANGE_TYPE, MULTIPLICITY)]
    words = delta[CHANGE_TYPE].to_pylist()
    weights = delta[MULTIPLICITY].to_pylist() if MULTIPLICITY in delta.column_names else [1] * len(words)
    came: Counter[Row] = Counter()
    went: Counter[Row] = Counter()
    for word, weight, row in zip(words, weights, _tuples(delta.select(names)), strict=True):
        (came if SIGN[word] > 0 else went)[tuple(map(normal, row))] += weight
    return came, went


def multiset(rows: Iterable[Row]) -> Counter[Row]:
    return Counter(tuple(map(normal, row)) for row in rows)


def normal(value: Any) -> Any:
    """One form for values that SQL holds equal: one NaN, no negative zero, times in UTC, dates as times, bytes."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if type(value) is datetime.date:  # a date plus an interval is a date to Spark, a timestamp to DuckDB
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value


def differences(expected: Counter[Row], got: Counter[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """What is missing and what is extra; rows that differ only by rounding of floats count as equal."""
    missing, extra = expected - got, got - expected
    for row in list(missing):
        for other in list(extra):
            if missing[row] and extra[other] and _close(row, other):
                common = min(missing[row], extra[other])
                missing[row] -= common
                extra[other] -= common
    return +missing, +extra


def _close(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(_close_values, left, right))


def _close_values(left: Any, right: Any) -> bool:
    inexact = isinstance(left, float) or isinstance(right, float)
    numbers = isinstance(left, int | float | decimal.Decimal) and isinstance(right, int | float | decimal.Decimal)
    if inexact and numbers:
        # Spark's AVG of decimals is a decimal, rounded; DuckDB's is a float.
        places = [v.as_tuple().exponent for v in (left, right) if isinstance(v, decimal.Decimal)]
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=max(1e-9, *(0.51 * 10.0 ** int(e) for e in places), 0.0))
    return bool(left == right)


def _tuples(rows: pa.Table | Iterable[Row]) -> Iterator[Row]:
    if not isinstance(rows, pa.Table):
        return iter(rows)
    if not rows.num_columns:
        return iter([()] * rows.num_rows)
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _shorten(rows: Counter[Row]) -> str:
    shown = ", ".join(f"{row!r} x{count}" for row, count in rows.most_common(10))
    return f"{shown or 'nothing'}{', ...' if len(rows) > 10 else ''}"


def follow(judge: Judge, views: Mapping[str, crown.View], batches: Iterable[list[Change]]) -> None:
    """Give the batches to the judge and to views of its query: all must agree after each, on delta, result and len."""
    for batch in batches:
        changes = judge.as_arrow(batch)
        deltas = {name: view.apply(changes) for name, view in views.items()}
        judge.apply(batch)
        for name, view in views.items():
            judge.check_delta(deltas[name], where=f"delta, {name}")
            judge.check_result(view.to_arrow(), where=f"full result, {name}")
            assert len(view) == judge.result.total(), f"len, {name}"
