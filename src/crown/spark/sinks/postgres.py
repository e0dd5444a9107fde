"""A PostgreSQL table kept equal to the view: one transaction per batch, noted by the batch's number."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from crown.spark.schema import CHANGE_TYPE, COMES, MULTIPLICITY

_NOTES = "crown_batches"
_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamptz",
    TimestampNTZType: "timestamp",
}


class PostgresTarget:
    """The sink: `apply` is for `foreachBatch`. The driver writes, so that a batch is one transaction."""

    def __init__(self, connection: str, table: str, schema: StructType) -> None:
        self._connection = connection
        self._table = table
        self._fields = [field for field in schema.fields if field.name not in (CHANGE_TYPE, MULTIPLICITY)]

    def apply(self, deltas: DataFrame, batch: int) -> None:
        import psycopg
        from psycopg import sql

        names = sql.SQL(", ").join(sql.Identifier(field.name) for field in self._fields)
        table = sql.Identifier(*self._table.split("."))
        with psycopg.connect(self._connection) as connection, connection.cursor() as cursor:
            self._prepare(cursor, table)
            if not self._first_time(cursor, batch):
                return
            columns = sql.SQL(", ").join(
                sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.dataType)))
                for field in self._fields
            )
            cursor.execute(
                sql.SQL("CREATE TEMP TABLE crown_changes ({}, crown_weight bigint) ON COMMIT DROP").format(columns)
            )
            copy = sql.SQL("COPY crown_changes ({}, crown_weight) FROM STDIN").format(names)
            with cursor.copy(copy) as rows:
                for row in deltas.toLocalIterator(prefetchPartitions=True):
                    rows.write_row(_weighted(row, [field.name for field in self._fields]))
            self._delete(cursor, table)
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {table} ({names}) SELECT {names} FROM crown_changes, "
                    "generate_series(1, crown_weight) WHERE crown_weight > 0"
                ).format(table=table, names=names)
            )

    def _prepare(self, cursor: Any, table: Any) -> None:
        from psycopg import sql

        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.dataType)))
            for field in self._fields
        )
        # Two sinks may start at once, and CREATE TABLE IF NOT EXISTS is no lock.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('crown'))")
        cursor.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table, columns))
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {_NOTES} (target text PRIMARY KEY, batch bigint NOT NULL)")

    def _first_time(self, cursor: Any, batch: int) -> bool:
        """Note the batch; False when it was applied before."""
        cursor.execute(
            f"INSERT INTO {_NOTES} AS note VALUES (%s, %s) ON CONFLICT (target) "
            "DO UPDATE SET batch = EXCLUDED.batch WHERE note.batch < EXCLUDED.batch",
            (self._table, batch),
        )
        return bool(cursor.rowcount == 1)

    def _delete(self, cursor: Any, table: Any) -> None:
        """Delete as many copies of each row as the batch says, NULLs being equal."""
        from psycopg import sql

        same = sql.SQL(" AND ").join(
            sql.SQL("stored.{0} IS NOT DISTINCT FROM gone.{0}").format(sql.Identifier(field.name))
            for field in self._fields
        )
        stored = sql.SQL(", ").join(sql.SQL("stored.{}").format(sql.Identifier(field.name)) for field in self._fields)
        cursor.execute(
            sql.SQL(
                "DELETE FROM {table} WHERE ctid IN (SELECT place FROM (SELECT stored.ctid AS place, gone.crown_weight, "
                "row_number() OVER (PARTITION BY {partition}) AS copy FROM {table} stored JOIN crown_changes gone "
                "ON gone.crown_weight < 0 AND {same}) copies WHERE copy <= -crown_weight)"
            ).format(table=table, partition=stored, same=same)
        )


def _weighted(row: Any, names: list[str]) -> tuple[Any, ...]:
    weight = row[MULTIPLICITY] if MULTIPLICITY in row.__fields__ else 1
    sign = 1 if row[CHANGE_TYPE] in COMES else -1
    return (*(row[name] for name in names), sign * weight)


def _type(type_: DataType) -> str:
    if isinstance(type_, DecimalType):
        return f"numeric({type_.precision},{type_.scale})"
    return _TYPES[type(type_)]
