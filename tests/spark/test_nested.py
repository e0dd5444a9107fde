"""Columns with arrays, structs and maps on Spark: read, joined, grouped, stored and written, against Spark's own SQL.

NULLs are at every level, arrays and maps may be empty, rows are deleted by value, and there are few different values,
so that many rows are equal.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from crown._kernel import value_order
from crown.errors import SchemaError
from crown.spark import debezium, files, maintain, materialize, read_materialized, rejected, snapshot
from crown.spark.pipeline.console import _sink_table
from crown.spark.required import ENGINE
from crown.spark.schema import as_struct
from crown.spark.settings import JAR
from crown.spark.sources.decoding import RowReader
from crown.spark.sources.encodings import Encodings, Unreadable
from crown.spark.sources.kafka import read_object
from tests.spark.streams import run_to_end

pytestmark = pytest.mark.spark

TABLES = {
    "p": "id BIGINT, tags ARRAY<STRING>, m MAP<STRING, ARRAY<DOUBLE>>, "
    "s STRUCT<A: INT, `b c`: STRUCT<d: DECIMAL(20,2), day: DATE>>",
    "q": "k BIGINT, tags ARRAY<STRING>, days MAP<DATE, TIMESTAMP>, "
    "h ARRAY<STRUCT<t: TIMESTAMP, n: TIMESTAMP_NTZ, ok: BOOLEAN, raw: BINARY, x: FLOAT, i: SMALLINT, y: TINYINT>>",
}
VIEWS = {
    "carried": "SELECT p.*, q.h, q.days FROM p JOIN q ON p.id = q.k",
    "by_value": "SELECT p.id, q.k, p.s FROM p JOIN q ON p.tags = q.tags",
    "grouped": "SELECT s, tags, COUNT(*) AS n, MAX(tags) AS most FROM p GROUP BY s, tags",
    "different": "SELECT DISTINCT h FROM q WHERE h IS NOT NULL",
    "apart": "SELECT id, s.`b c`.d, m['a'] AS a, tags[0] AS first FROM p WHERE size(tags) > 0",
    "made": "SELECT p.id, named_struct('t', p.tags, 'm', p.m) AS z, array(p.s) AS y, q.days FROM p LEFT JOIN q "
    "ON p.id = q.k AND q.tags = array('a')",
    "collected": "SELECT id, sort_array(COLLECT_LIST(s.A)) AS all, COUNT(*) AS n FROM p GROUP BY id",
}
UTC = datetime.UTC
LEAVES: dict[type[DataType], list[Any]] = {
    StringType: ["", "a", "ä\0€"],
    BooleanType: [True, False],
    BinaryType: [b"", b"\0\xff"],
    DoubleType: [0.0, -0.0, 1.5, math.nan, -math.inf],
    FloatType: [0.5, math.nan],
    DateType: [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)],
    TimestampType: [datetime.datetime(1001, 2, 3, 4, 5, 6, 7, UTC), datetime.datetime(2024, 10, 27, 0, 30, tzinfo=UTC)],
    TimestampNTZType: [datetime.datetime(1582, 10, 7), datetime.datetime(2024, 3, 31, 2, 30, 0, 1)],
    DecimalType: [decimal.Decimal("-123456789012345678.25"), decimal.Decimal("0.10")],
}


def drawn(rng: random.Random, type_: DataType, *, nullable: bool = True) -> Any:
    if nullable and rng.random() < 0.2:
        return None
    match type_:
        case ArrayType():
            return [drawn(rng, type_.elementType) for _ in range(rng.choice((0, 1, 1, 2)))]
        case MapType():
            keys = {drawn(rng, type_.keyType, nullable=False) for _ in range(rng.randrange(3))}
            return [(key, drawn(rng, type_.valueType)) for key in keys]
        case StructType():
            return {field.name: drawn(rng, field.dataType) for field in type_.fields}
    return rng.choice(LEAVES.get(type(type_), [1, 2]))


def plain(value: Any) -> Any:
    """A value that can be counted; equal where the values are."""
    match value:
        case Row():
            return ("struct", *map(plain, value))
        case dict():
            return ("map", *sorted((repr(plain(key)), plain(item)) for key, item in value.items()))
        case list():
            return ("array", *map(plain, value))
        case bytearray():
            return bytes(value)
        case float():
            return "NaN" if math.isnan(value) else value + 0.0
    return value


def counted(rows: Iterable[Row]) -> Counter[Any]:
    return Counter(tuple(map(plain, row)) for row in rows)


class Tables:
    """The tables' current rows, and directories of their changes, with a file for each batch."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path, self.rng, self.written = path, rng, 0
        self.schemas = {name: as_struct(columns) for name, columns in TABLES.items()}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def write(self, size: int = 12) -> None:
        for name, schema in self.schemas.items():
            rows = self.rows[name]
            gone = [rows.pop(self.rng.randrange(len(rows))) for _ in range(min(len(rows) // 2, size // 3))]
            come = [drawn(self.rng, schema, nullable=False) for _ in range(size)]
            rows += come
            words = ["insert"] * len(come) + ["delete"] * len(gone)
            data = pa.Table.from_pylist([*come, *gone], to_arrow_schema(schema, timezone="UTC"))
            file = self.path / name / f"{self.written:06d}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pa.parquet.write_table(data.append_column("_change_type", pa.array(words)), file)
            os.utime(file, (1_700_000_000 + self.written,) * 2)
        self.written += 1

    def streams(self, spark: SparkSession) -> dict[str, DataFrame]:
        return {name: files(spark, str(self.path / name), TABLES[name], files_per_batch=1) for name in TABLES}

    def answer(self, spark: SparkSession, sql: str) -> Counter[Any]:
        """What Spark's own SQL says of the current rows."""
        for name, schema in self.schemas.items():
            data = pa.Table.from_pylist(self.rows[name], to_arrow_schema(schema, timezone="UTC"))
            spark.createDataFrame(data, schema).createOrReplaceTempView(name)
        return counted(spark.sql(sql).collect())


class Sum:
    """A sink: the sum of a view's deltas."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()

    def __call__(self, deltas: DataFrame, batch: int) -> None:
        copies = F.col("_multiplicity") if "_multiplicity" in deltas.columns else F.lit(1)
        for row in deltas.withColumn("copies", copies).drop("_multiplicity").collect():
            *values, word, copies = row
            self.rows[tuple(map(plain, values))] += copies if word == "insert" else -copies
        assert all(count >= 0 for count in self.rows.values())
        self.rows = +self.rows


def test_views_go_on_with_the_other_engine(spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "in", rng)
    checkpoint, target = str(tmp_path / "checkpoint"), str(tmp_path / "carried")
    sums = {name: Sum() for name in VIEWS if name != "carried"}
    for engine in ("jvm", "python") if JAR.exists() else ("python", "python"):
        spark.conf.set(ENGINE, engine)
        tables.write()
        tables.write()
        views = maintain(spark, VIEWS, tables.streams(spark), cells=2)
        sinks: dict[str, Any] = {**sums, "carried": {"parquet": target}}
        views.start(sinks, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()
        for name, sum_ in sums.items():
            assert sum_.rows == tables.answer(spark, VIEWS[name]), (engine, name)
        assert counted(read_materialized(spark, target).collect()) == tables.answer(spark, VIEWS["carried"]), engine
    spark.conf.unset(ENGINE)
    table = _sink_table(target)
    assert isinstance(table, pa.Table), table
    shown = sum(table["_multiplicity"].to_pylist()) if "_multiplicity" in table.column_names else table.num_rows
    assert shown == read_materialized(spark, target).count(), "the console's page of rows"
    for name in ("carried", "grouped"):
        assert counted(snapshot(spark, checkpoint, view=name).collect()) == tables.answer(spark, VIEWS[name]), name


def test_one_change_at_a_time(spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "in", rng)
    sum_ = Sum()
    for _ in range(2):
        tables.write(6)
        deltas = maintain(spark, VIEWS["carried"], tables.streams(spark), cells=2, real_time=True)
        own = deltas.drop("_batch", "_after", "_attempt", "_position").where("_change_type <> 'none'")
        writer = own.writeStream.foreachBatch(sum_).option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(writer.trigger(availableNow=True))
        assert sum_.rows == tables.answer(spark, VIEWS["carried"])


CONNECT = [
    {"field": "k", "type": "struct", "fields": [{"field": "a", "type": "int32"}, {"field": "b", "type": "array"}]},
    {
        "field": "prices",
        "type": "map",
        "keys": {"type": "int32"},
        "values": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    },
    {"field": "at", "type": "array", "items": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}},
]


def record(before: Any, after: Any) -> str:
    images = [{"field": name, "type": "struct", "fields": CONNECT} for name in ("before", "after")]
    payload = {"op": "c" if before is None else "d" if after is None else "u", "before": before, "after": after}
    return json.dumps({"schema": {"fields": images}, "payload": payload})


def test_from_debezium_by_a_nested_key_to_postgres(spark: SparkSession, tmp_path: Path, postgres: str) -> None:
    import psycopg

    keys = [{"a": 1, "b": ["x", None]}, {"a": 1, "b": []}, {"a": None, "b": None}]
    first = {"k": keys[0], "prices": [[7, "AeJA"], [8, None]], "at": [1, None, 1_700_000_000_000_000]}
    second = {"k": keys[1], "prices": None, "at": []}
    third = {"k": keys[2], "prices": [], "at": None}
    changed = {**first, "prices": [[7, "AeI="]]}
    batches = [
        [record(None, row) for row in (first, second, third)],
        [record(first, changed), record(second, None), record(None, {**second, "at": ["soon"]})],
    ]
    (tmp_path / "in").mkdir()
    for number, lines in enumerate(batches):
        file = tmp_path / "in" / f"{number}.txt"
        file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + number,) * 2)
    records = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    schema = "k STRUCT<a: INT, b: ARRAY<STRING>> NOT NULL, prices MAP<INT, DECIMAL(8,2)>, at ARRAY<TIMESTAMP>"
    deltas = maintain(
        spark,
        "SELECT k, prices, at FROM t",
        {"t": debezium(records, schema)},
        keys={"t": ["k"]},
        cells=2,
        batch=True,
        on_invalid="quarantine",
        rejects=str(tmp_path / "rejects"),
    )
    writer = materialize(deltas, checkpoint=str(tmp_path / "checkpoint"), postgres=postgres, table="nested")
    run_to_end(writer.trigger(availableNow=True))
    with psycopg.connect(postgres) as opened:
        stored = opened.execute("SELECT k, prices, at FROM nested ORDER BY k").fetchall()
    at = ["1970-01-01T00:00:00.000001Z", None, "2023-11-14T22:13:20.000000Z"]
    assert stored == [(keys[2], {}, None), (keys[0], {"7": 4.82}, at)]
    (row,) = rejected(spark, str(tmp_path / "rejects")).collect()
    assert "column at: 'soon' is not a timestamp" in row.reason
    with pytest.raises(SchemaError, match="CROWN-SCHEMA-KEY"):
        maintain(spark, "SELECT at FROM t", {"t": debezium(records, schema)}, keys={"t": ["prices"]}, cells=2)


def test_json_of_nested_columns() -> None:
    days = MapType(DateType(), BooleanType())
    row = StructType().add("a", ArrayType(LongType())).add("s", StructType().add("N", DoubleType())).add("d", days)
    rows = RowReader(row, Encodings(decimals="string"))

    def read(**columns: Any) -> list[Any]:
        (change,) = read_object(rows, json.dumps(columns), None)
        return list(change.row)

    assert read() == [None, None, None]
    assert read(a=[1, None], s={"n": 1.5, "other": 2}, d={}) == [[1, None], {"N": 1.5}, []]
    day = datetime.date(2024, 2, 29)
    assert read(d={"2024-02-29": None})[2] == read(d=[["2024-02-29", None]])[2] == [(day, None)]
    numbers = RowReader(StructType().add("m", MapType(IntegerType(), StringType())), Encodings())
    assert read_object(numbers, '{"m": {"1": "x"}}', None)[0].row == [[(1, "x")]]
    for wrong in (
        {"a": 1},
        {"a": [1, "x"]},
        {"a": {"0": 1}},
        {"s": [1.5]},
        {"s": {"N": "x"}},
        {"d": 1},
        {"d": {"today": True}},
        {"d": [["2024-02-29", True], ["2024-02-29", False]]},
        {"d": [[None, True]]},
        {"d": [["2024-02-29"]]},
    ):
        with pytest.raises(Unreadable, match=r"column [asd]: "):
            read(**wrong)


def test_deltas_have_an_order_by_nested_values() -> None:
    rows = pa.table({"a": [[1], None, [], [1, None], [None], [1, 0]], "_change_type": ["insert"] * 6})
    order = pa.table(value_order(rows))["place"].to_pylist()
    assert [rows["a"][place].as_py() for place in order] == [[], [1], [1, 0], [1, None], [None], None]
