"""A PostgreSQL table kept equal to the view: one transaction per batch, which also records the batch.

The driver first collects all deltas of a batch, so that Spark's stateful operators have run whatever happens to the
transaction: Spark does not commit a batch whose operators did not run. Then it applies them, and retries if the
connection is lost. The recorded batch shows whether a transaction was committed if the reply to COMMIT was lost.

Deletes find their rows by an index over a hash of the whole row, which PostgreSQL computes such that equal rows have
equal hashes (NULLs, NaN and both zeros included).
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from crown.errors import CrownError, PlanError, SchemaError, StateError
from crown.spark.sinks.copying import WEIGHT, encoder, postgres_type, readable
from crown.spark.sinks.ownership import FORMAT, Owner, Step, check_format, data_columns, next_batch, step, stream_id
from crown.spark.sinks.weights import weight_of

T = TypeVar("T")

# Written beside the table, in its schema.
_NOTES = "crown_targets"
_LONGEST_NAME = 63
_OLDEST_SERVER = 140000
_ATTEMPTS = 6
_HELD_BYTES = 64 << 20
_PIECE = 1 << 18
_KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "p": "a partitioned table",
    "f": "a foreign table",
    "i": "an index",
}
_NAME = re.compile(r'(?:"((?:[^"]|"")+)"|([^."]+))(?:\.|$)')


class PostgresTarget:
    """The sink: `apply` is for `foreachBatch`, `check` for before the stream starts."""

    def __init__(
        self, connection: str, table: str, schema: StructType, checkpoint: str, *, overwrite: bool = False
    ) -> None:
        self._connection = connection
        self._table = _parts(table)
        self._shown = table
        self._schema = schema
        self._fields = [schema[name] for name in data_columns(schema)]
        self._types = [postgres_type(field) for field in self._fields]
        self._checkpoint = checkpoint
        self._overwrite = overwrite
        for name in [*self._table, *(field.name for field in self._fields)]:
            _check_name(name)

    def check(self, spark: SparkSession) -> None:
        stream, batch = stream_id(spark, self._checkpoint), next_batch(self._checkpoint)
        self._connected(lambda cursor: _Table(self, cursor).step(stream, batch), attempts=1)

    def apply(self, deltas: DataFrame, batch: int) -> None:
        stream = stream_id(deltas.sparkSession, self._checkpoint) or ""
        with tempfile.SpooledTemporaryFile(_HELD_BYTES) as rows:
            self._take(deltas, rows)

            def write(cursor: Any) -> None:
                rows.seek(0)
                _Table(self, cursor).apply(stream, batch, rows)

            self._connected(write, attempts=_ATTEMPTS)

    def _take(self, deltas: DataFrame, file: IO[bytes]) -> None:
        """All deltas in the form that COPY reads, each with its weight."""
        encode = encoder(self._fields)
        weight = weight_of(deltas.columns).alias(WEIGHT)
        for row in deltas.select(*readable(self._fields), weight).toLocalIterator(prefetchPartitions=True):
            file.write(encode(row))

    def _connected(self, work: Callable[[Any], T], *, attempts: int) -> T:
        """Run `work` in one transaction and return its result; retry once if the connection is lost."""
        psycopg = _psycopg()
        for attempt in range(attempts):
            try:
                with psycopg.connect(self._connection) as connection, connection.cursor() as cursor:
                    return work(cursor)
            except psycopg.OperationalError as error:
                if attempt + 1 == attempts:
                    raise StateError(
                        f"PostgreSQL can't be reached for the table {self._shown}",
                        code="CROWN-SINK-CONNECTION",
                        reason=str(error).strip(),
                        hint="check that the server runs and accepts connections, then restart the stream, "
                        "which continues where it stopped",
                    ) from error
                time.sleep(min(2**attempt, 10) / 4)
            except psycopg.Error as error:
                raise StateError(
                    f"PostgreSQL can't write to the table {self._shown}",
                    code="CROWN-SINK-POSTGRES",
                    reason=str(error).strip(),
                    hint="fix the cause and restart the stream, which continues where it stopped",
                ) from error
        raise AssertionError("no attempt was made")


class _Table:
    """The table in one transaction."""

    def __init__(self, target: PostgresTarget, cursor: Any) -> None:
        from psycopg import sql

        self._sql = sql
        self._target = target
        self._cursor = cursor
        self._table: Any = None
        self._notes: Any = None
        self._schema, self._name = self._located(target._table)
        self._table = sql.Identifier(self._schema, self._name)
        self._notes = sql.Identifier(self._schema, _NOTES)
        self._names = [field.name for field in target._fields]

    def step(self, stream: str | None, batch: int) -> Step:
        """Return what the batch will do; nothing is changed."""
        self._check_kind()
        todo = step(self._target._shown, self._owner(), stream, batch, overwrite=self._target._overwrite)
        if todo in (Step.NEXT, Step.REPEAT) or (todo is Step.FIRST and self._exists(self._name)):
            self._check_columns()
        return todo

    def apply(self, stream: str, batch: int, rows: IO[bytes]) -> None:
        self._lock()
        todo = self.step(stream, batch)
        if todo is Step.REPEAT:
            return
        if todo is not Step.NEXT:
            self._prepare(todo)
        self._stage(rows)
        self._delete()
        self._do(
            "INSERT INTO {table} ({names}) SELECT {staged} FROM pg_temp.crown_changes, generate_series(1, weight)",
            names=self._list(self._names),
            staged=self._list(self._staged()),
        )
        self._do(
            "INSERT INTO {notes} (target, stream, batch) VALUES ({name}, {stream}, {batch}) ON CONFLICT (target) "
            "DO UPDATE SET stream = EXCLUDED.stream, batch = EXCLUDED.batch",
            name=self._name,
            stream=stream,
            batch=batch,
        )

    def _delete(self) -> None:
        """Delete as many copies of each row as the batch says."""
        same = self._sql.SQL(" AND ").join(
            self._sql.SQL("stored.{} IS NOT DISTINCT FROM gone.{}").format(*map(self._sql.Identifier, pair))
            for pair in zip(self._names, self._staged(), strict=True)
        )
        self._do(
            "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM (SELECT stored.ctid AS place, gone.weight, "
            "row_number() OVER (PARTITION BY gone.number) AS copy FROM pg_temp.crown_changes gone JOIN {table} stored "
            "ON {hash} = gone.hash AND {same} WHERE gone.weight < 0) copies WHERE copy <= -weight))",
            hash=self._hash(self._names, "stored"),
            same=same,
        )
        deleted = self._cursor.rowcount
        wanted = self._one("SELECT coalesce(sum(-weight), 0) FROM pg_temp.crown_changes WHERE weight < 0")
        if wanted is not None and wanted[0] != deleted:
            raise StateError(
                f"somebody else has changed the table {self._target._shown}",
                code="CROWN-SINK-CHANGED",
                reason=f"{wanted[0] - deleted} of {wanted[0]} rows to delete are not in the table",
                hint="only Crown may write to it; to start over, use a new checkpoint and "
                "materialize(..., overwrite=True)",
            )

    def _lock(self) -> None:
        """Allow one writer at a time: another one waits, and then sees who owns the table."""
        if self._cursor.connection.info.server_version < _OLDEST_SERVER:
            raise PlanError(
                "the PostgreSQL server is too old",
                code="CROWN-SINK-POSTGRES",
                reason="rows are found by the hash of a record, which servers before version 14 can't compute",
                hint="use PostgreSQL 14 or newer",
            )
        self._do("SELECT pg_advisory_xact_lock(hashtextextended({schema}, 0))", schema=f"crown {self._schema}")

    def _located(self, parts: Sequence[str]) -> tuple[str, str]:
        """Return the table's schema (that where unqualified names are created, if it has none) and name."""
        *above, name = parts
        if above:
            found = self._one("SELECT nspname FROM pg_namespace WHERE nspname = {name}", name=above[0])
            missing = f"there is no schema {above[0]!r} in the database"
        else:
            found = self._one("SELECT current_schema()")
            missing = "the connection has no schema to create tables in"
        if found is None or found[0] is None:
            raise StateError(
                missing,
                code="CROWN-SINK-SCHEMA",
                reason=f"it should contain the table {self._target._shown}",
                hint=f'create it (CREATE SCHEMA "{above[0]}"), or name another'
                if above
                else 'name one: "schema.table"',
            )
        return str(found[0]), name

    def _owner(self) -> Owner | None:
        if not self._exists(self._name):
            return None
        if self._exists(_NOTES):
            # Tables of notes from before there were format numbers have no such column.
            noted = self._one(
                "SELECT to_jsonb(noted) -> 'format', stream, batch FROM {notes} noted WHERE target = {name}",
                name=self._name,
            )
            if noted is not None:
                check_format(self._target._shown, FORMAT if noted[0] is None else noted[0])
                return Owner(noted[1], noted[2])
        return Owner(None, 0) if self._one("SELECT 1 FROM {table} LIMIT 1") else None

    def _exists(self, name: str) -> bool:
        return self._kind(name) is not None

    def _kind(self, name: str) -> str | None:
        """Return what PostgreSQL calls the kind of a relation; None if there is none of the name."""
        found = self._one(
            "SELECT relkind::text FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE nspname = {schema} AND relname = {name}",
            schema=self._schema,
            name=name,
        )
        return None if found is None else str(found[0])

    def _check_kind(self) -> None:
        """Reject a view and the like: rows are found by their place in one table."""
        kind = self._kind(self._name)
        if kind is not None and kind != "r":
            raise PlanError(
                f"{self._target._shown} is {_KINDS.get(kind, 'not a table')}",
                code="CROWN-SINK-POSTGRES",
                reason="the sink inserts rows into a plain table, and deletes them there",
                hint="name a table, or one that does not exist yet",
            )

    def _check_columns(self) -> None:
        found = self._columns()
        wanted = dict(zip(self._names, self._target._types, strict=True))
        if found != wanted:
            raise StateError(
                f"the table {self._target._shown} does not have the columns of the view",
                code="CROWN-SINK-COLUMNS",
                reason=f"it has {_shown(found)}; the view has {_shown(wanted)}",
                hint="rename or cast the view's columns, change the table, or replace it with a new checkpoint and "
                "materialize(..., overwrite=True)",
            )

    def _columns(self) -> dict[str, str]:
        self._do(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = {schema} AND relname = {name} "
            "AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            schema=self._schema,
            name=self._name,
        )
        return dict(self._cursor.fetchall())

    def _prepare(self, todo: Step) -> None:
        """An empty table of the view's columns, its index and the table of notes."""
        if todo is Step.REPLACE and self._exists(self._name):
            if self._columns() == dict(zip(self._names, self._target._types, strict=True)):
                self._do("TRUNCATE {table}")
            else:
                self._do("DROP TABLE {table}")
        columns = self._defined(self._names)
        self._do("CREATE TABLE IF NOT EXISTS {table} ({columns})", columns=columns)
        index = f"{self._name.encode()[: _LONGEST_NAME - 10].decode(errors='ignore')}_crown_row"
        self._do(
            "CREATE INDEX IF NOT EXISTS {index} ON {table} (({hash}))",
            index=self._sql.Identifier(index),
            hash=self._hash(self._names),
        )
        self._do(
            "CREATE TABLE IF NOT EXISTS {notes} (target text PRIMARY KEY, stream text NOT NULL, batch bigint NOT NULL, "
            "format integer NOT NULL DEFAULT {format})",
            format=FORMAT,
        )

    def _stage(self, rows: IO[bytes]) -> None:
        """The batch's changes in a table of this transaction: net, each row once, with its hash."""
        staged = self._staged()
        columns = self._list(staged)
        self._do(
            "CREATE TEMP TABLE crown_copied ({columns}, weight bigint) ON COMMIT DROP", columns=self._defined(staged)
        )
        copy = self._sql.SQL("COPY pg_temp.crown_copied ({}, weight) FROM STDIN").format(columns)
        with self._cursor.copy(copy) as copying:
            while piece := rows.read(_PIECE):
                copying.write(piece)
        self._do(
            "CREATE TEMP TABLE crown_changes ON COMMIT DROP AS SELECT row_number() OVER () AS number, {hash} AS hash, "
            "{columns}, sum(weight)::bigint AS weight FROM pg_temp.crown_copied GROUP BY {columns} "
            "HAVING sum(weight) <> 0",
            columns=columns,
            hash=self._hash(staged),
        )
        self._do("ANALYZE pg_temp.crown_changes")

    def _staged(self) -> list[str]:
        return [f"c{position}" for position in range(len(self._names))]

    def _hash(self, names: Sequence[str], alias: str | None = None) -> Any:
        identifiers = [self._sql.Identifier(*([alias] if alias else []), name) for name in names]
        return self._sql.SQL("hash_record_extended(ROW({}), 0)").format(self._sql.SQL(", ").join(identifiers))

    def _defined(self, names: Sequence[str]) -> Any:
        return self._sql.SQL(", ").join(
            self._sql.SQL("{} {}").format(self._sql.Identifier(name), self._sql.SQL(type_))
            for name, type_ in zip(names, self._target._types, strict=True)
        )

    def _list(self, names: Sequence[str]) -> Any:
        return self._sql.SQL(", ").join(map(self._sql.Identifier, names))

    def _do(self, text: str, **parts: Any) -> None:
        """Run a statement. Values are part of its text, like names: a name may contain a parameter placeholder."""
        composed = {
            name: part if isinstance(part, self._sql.Composable) else self._sql.Literal(part)
            for name, part in {"table": self._table, "notes": self._notes, **parts}.items()
        }
        self._cursor.execute(self._sql.SQL(text).format(**composed))

    def _one(self, text: str, **parts: Any) -> tuple[Any, ...] | None:
        self._do(text, **parts)
        found: tuple[Any, ...] | None = self._cursor.fetchone()
        return found


def _parts(table: str) -> tuple[str, ...]:
    """
    >>> _parts("reports.hops"), _parts('"a.b"')
    (('reports', 'hops'), ('a.b',))
    """
    found = _NAME.findall(table)
    parts = tuple(quoted.replace('""', '"') if quoted else plain for quoted, plain in found)
    if not 1 <= len(parts) <= 2 or sum(match.end() - match.start() for match in _NAME.finditer(table)) != len(table):
        raise SchemaError(
            f"{table!r} is not a table name",
            code="CROWN-SINK-NAME",
            hint='write "table" or "schema.table"; quote a part that contains a dot',
        )
    return parts


def _check_name(name: str) -> None:
    if len(name.encode()) > _LONGEST_NAME or "\0" in name:
        raise SchemaError(
            f"{name!r} is not a valid name in PostgreSQL",
            code="CROWN-SINK-NAME",
            reason=f"names have at most {_LONGEST_NAME} bytes and no NUL character",
            hint="choose a shorter name; rename a column with AS",
        )


def _shown(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise CrownError(
            "psycopg is not installed", code="CROWN-NOT-INSTALLED", hint="pip install crown-ivm[postgres]"
        ) from error
    return psycopg
