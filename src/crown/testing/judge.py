"""DuckDB as judge: it gets the same changes as a view, recomputes the query, and both must agree.

Tables are stored here as multisets of rows and passed to DuckDB for each query: slow but simple, as a judge should be.
A failure prints the query, the schema, all changes so far as Python text, and what differs.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, Unpack

import pyarrow as pa
import sqlglot

from crown.changes import CHANGE_TYPE, DELETE, INSERT
from crown.errors import CrownError
from crown.functions import PythonFunctions, declare
from crown.sql import load_schema
from crown.sql.schema.schema import SchemaLike
from crown.testing.batches import Batch, Change, read_batch
from crown.testing.compare import differences, hashable, multiset, split_delta, tuples
from crown.testing.dialect import NOW, in_duckdb
from crown.testing.functions import register
from crown.view import View
from crown.view.engines import OnInvalid
from crown.view.interface import Profiles, Row

if TYPE_CHECKING:
    import duckdb

_numbers = itertools.count()
_TABLES = "SELECT table_name FROM duckdb_tables() WHERE schema_name = current_schema() ORDER BY table_oid"


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return one database for all judges of this process: opening one takes longer than most judges live."""
    try:
        import duckdb
    except ImportError as error:
        raise CrownError(
            "the judge needs DuckDB", code="CROWN-NOT-INSTALLED", hint="pip install 'crown-ivm[testing]'"
        ) from error
    return duckdb.connect(config={"threads": 1})


def _own_schema(owner: object) -> duckdb.DuckDBPyConnection:
    """Return a connection with its own schema, which is dropped with its owner."""
    connection = _database().cursor()
    name = f"of_{next(_numbers)}"
    connection.execute(f"CREATE SCHEMA {name}")
    connection.execute(f"SET schema = '{name}'")
    connection.execute("SET TimeZone = 'UTC'")
    weakref.finalize(owner, connection.execute, f"DROP SCHEMA {name} CASCADE")
    return connection


class ViewOptions(TypedDict, total=False):
    """Options of `View`; a view that is judged has no windows."""

    profiles: Profiles | None
    threads: int
    on_invalid: OnInvalid
    dialect: str
    functions: PythonFunctions | None


class Judge:
    """Keeps the tables of `sql` under changes, and answers the query over them by recomputation in DuckDB.

    `schema` is what `View` takes. A table with a PRIMARY KEY takes upserts: a new row for a key replaces the old one.
    Tables must not have windows. A query with LIMIT or an ASOF JOIN needs an order that leaves no ties, or DuckDB may
    choose other rows.

    >>> sql, schema = "SELECT a, COUNT(*) AS n FROM r GROUP BY a", "CREATE TABLE r (a INT, b INT)"
    >>> view, judge = View(sql, schema), Judge(sql, schema)
    >>> judge.follow(view, {"r": [(1, 2), (1, 3)]}).to_pylist()
    [{'a': 1, 'n': 2, '_change_type': 'insert'}]
    >>> judge.follow(view, [Change("r", (1, 2), -1)]).num_rows
    2

    `follow` is short for

    >>> batch = [Change("r", (1, 3), -1)]
    >>> delta = view.apply(judge.as_arrow(batch))
    >>> judge.apply(batch)
    >>> judge.check_delta(delta)               # nothing missing, nothing extra, nothing twice
    >>> judge.check_result(view.to_arrow())
    """

    def __init__(
        self, sql: str, schema: SchemaLike, *, dialect: str = "spark", functions: PythonFunctions | None = None
    ) -> None:
        self.sql = sql
        self.schema = schema
        self.history: list[list[Change] | datetime] = []
        self.tables: dict[str, Counter[Row]] = {}
        self._given: dict[Row, Row] = {}  # rows with nested values, by how `tables` has them
        self._keys: dict[str, tuple[int, ...]] = {}
        self._columns: dict[str, list[str]] = {}
        self._arrow_schemas: dict[str, pa.Schema] = {}
        self._connection = _own_schema(self)
        self.functions = declare(functions)
        self._question = register(self._connection, in_duckdb(sql, dialect), self.functions, self)
        for statement in _statements(schema, dialect):
            self._connection.execute(statement)
        for (table,) in self._connection.execute(_TABLES).fetchall():
            described = self._connection.execute(f'DESCRIBE "{table}"').fetchall()
            self._columns[table] = [column[0] for column in described]
            self._keys[table] = tuple(i for i, column in enumerate(described) if column[3] == "PRI")
            self.tables[table] = Counter()
        self._stale = set(self.tables)
        self.result = self._first_answer()
        # The first delta of a global aggregate shows its one row as an insert, although the row was
        # there before.
        self._shown: Counter[Row] = Counter()
        self._before = self._shown

    def _first_answer(self) -> Counter[Row]:
        import duckdb

        try:
            return self.recompute()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            raise CrownError(
                "DuckDB can't answer this query",
                code="CROWN-ARGUMENT",
                reason=str(error).splitlines()[0],
                hint="compare the view with rows that you know, or rewrite the query so that both accept it",
            ) from error

    def follow(self, view: View, batch: Batch | datetime) -> pa.Table:
        """Apply one batch to the view and here, check delta, result and length, and return the delta.

        A datetime is the time that `now()` returns from then on: see `View.advance`.
        """
        windowed = [table.name for table in view.plan.tables if table.window is not None]
        if windowed:
            raise CrownError(
                f"table {windowed[0]} has a window",
                code="CROWN-ARGUMENT",
                reason="the judge recomputes over all rows, and does not know which have expired",
                hint="test the query without windows, or delete the expired rows and call check_result yourself",
            )
        if isinstance(batch, datetime):
            delta = view.advance(batch)
            self.advance(batch)
        else:
            changes = read_batch(batch, self._columns)
            delta = view.apply(self.as_arrow(changes))
            self.apply(changes)
        self.check_delta(delta)
        self.check_result(view.to_arrow())
        assert len(view) == self.result.total(), f"len(view) is {len(view)}, but it has {self.result.total()} rows"
        return delta

    def apply(self, changes: Batch) -> None:
        """Apply one batch of changes, in order, and recompute."""
        batch = read_batch(changes, self._columns)
        self.history.append(batch)
        for change in batch:
            self._apply(change)
        self._before = self._shown
        self.result = self._shown = self.recompute()

    def advance(self, now: datetime) -> None:
        """Take the time that `now()` returns (UTC if it has no time zone), and recompute."""
        self.history.append(now)
        moment = now if now.tzinfo is not None else now.replace(tzinfo=UTC)
        self._connection.execute(f"SET VARIABLE {NOW} = TIMESTAMPTZ '{moment.isoformat()}'")
        self._before = self._shown
        self.result = self._shown = self.recompute()

    def as_arrow(self, changes: Batch) -> dict[str, pa.Table]:
        """Return a batch as one Arrow table of changes per base table, order kept within each."""
        batch = read_batch(changes, self._columns)
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
        found = hashable(change.row)
        if found != change.row:
            self._given[found] = change.row
        if key := self._keys[change.table]:
            wanted = [found[i] for i in key]
            same = [row for row in rows if [row[i] for i in key] == wanted]
            assert same or change.weight > 0, f"the test itself deletes an absent row: {change}"
            for old in same:
                del rows[old]
            if change.weight < 0:
                return
        rows[found] += change.weight
        assert rows[found] >= 0, f"the test itself deletes an absent row: {change}"
        if not rows[found]:
            del rows[found]

    def table_rows(self, table: str) -> list[Row]:
        """Return the rows of a table as they were given."""
        return [self._given.get(row, row) for row in self.tables[table].elements()]

    def recompute(self) -> Counter[Row]:
        """Return DuckDB's answer over the tables as they are, as a multiset."""
        for table in self._stale:
            self._load(table)
        self._stale.clear()
        return multiset(self.rows())

    def rows(self) -> list[Row]:
        """Return DuckDB's answer over the tables as they are, in its order."""
        return self._connection.execute(self._question).fetchall()

    def _load(self, table: str) -> None:
        rows = self.table_rows(table)
        self._connection.execute(f'DELETE FROM "{table}"')
        if rows:
            values = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
            flat = [value for row in rows for value in row]
            self._connection.execute(f'INSERT INTO "{table}" VALUES {values}', flat)

    def check_result(self, rows: pa.Table | Iterable[Row], *, where: str = "full result") -> None:
        """Compare the full result, duplicates repeated."""
        self._compare(self.result, multiset(tuples(rows)), where)

    def check_delta(self, delta: pa.Table, *, where: str = "delta") -> None:
        """Compare the net change of the last batch, with `_change_type` and, for bags, `_multiplicity`."""
        came, went = split_delta(delta)
        assert not came & went, f"{where}: a row is both inserted and deleted"
        # DuckDB divides decimals as doubles, so its answer may change in the last bit where Crown's
        # does not at all.
        came, went = differences(came, went)
        expected_came, expected_went = differences(self.result, self._before)
        self._compare(expected_came, came, f"{where}, inserted rows")
        self._compare(expected_went, went, f"{where}, deleted rows")

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
        yield f"  batches = {[_as_text(batch) for batch in self.history]!r}"
        yield "  crown.testing.check(sql, schema, batches)"


def _as_text(batch: list[Change] | datetime) -> list[tuple[str, Row, int]] | datetime:
    return batch if isinstance(batch, datetime) else [(c.table, c.row, c.weight) for c in batch]


def check(sql: str, schema: SchemaLike, batches: Iterable[Batch | datetime], **options: Unpack[ViewOptions]) -> View:
    """Apply the batches to a new view and compare it with DuckDB after each; return the view.

    `options` go to `View`. A batch is what `View.apply` takes, or a list of `Change`; a datetime among them is the time
    that `now()` returns in the query from then on.

    >>> batches = [{"r": [(1, 2), (1, 3)]}, [("r", (1, 2), -1)]]
    >>> list(check("SELECT a, SUM(b) AS total FROM r GROUP BY a", "CREATE TABLE r (a INT, b INT)", batches))
    [(1, 3)]
    """
    view = View(sql, schema, **options)
    judge = Judge(sql, schema, dialect=options.get("dialect", "spark"), functions=options.get("functions"))
    for batch in batches:
        judge.follow(view, batch)
    return view


def _statements(schema: SchemaLike, dialect: str) -> list[str]:
    """Return the schema as statements for DuckDB."""
    loaded = load_schema(schema, dialect=dialect)
    created = []
    for table in loaded.tables.values():
        columns = [f"`{column.name}` {column.type.sql_name}" for column in table.columns]
        if table.primary_key:
            columns.append(f"PRIMARY KEY ({', '.join(f'`{name}`' for name in table.primary_key)})")
        created.append(f"CREATE TABLE `{table.name}` ({', '.join(columns)})")
    tables = sqlglot.transpile("; ".join(created), read="spark", write="duckdb")
    views = []
    for view in loaded.views.values():
        names = f" ({', '.join(view.columns)})" if view.columns else ""
        views.append(f"CREATE VIEW {view.name}{names} AS {view.query.sql(dialect='duckdb')}")
    return tables + views


def _shorten(rows: Counter[Row]) -> str:
    shown = ", ".join(f"{row!r} x{count}" for row, count in rows.most_common(10))
    return f"{shown or 'nothing'}{', ...' if len(rows) > 10 else ''}"
