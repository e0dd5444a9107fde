"""Schemas from text, files, dicts, Arrow and Spark; options of tables."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crown.errors import SchemaError, SqlError
from crown.ir.tables import TableColumn, Window
from crown.sql import load_schema, parse
from crown.types import DATE, INT64, STRING, TIMESTAMP, DataType

TEXT = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, total DECIMAL(10, 2) NOT NULL, note VARCHAR(20), at TIMESTAMP, day DATE);
CREATE TABLE line (
  order_id BIGINT, number INT, at TIMESTAMP_NTZ, CONSTRAINT k PRIMARY KEY (order_id, number)
) USING parquet WINDOW (RANGE INTERVAL 2 DAYS ON at) PROFILE fifo;
CREATE VIEW big (id, t) AS SELECT id, total FROM orders WHERE total > 100;
"""


def test_text() -> None:
    schema = load_schema(TEXT)
    orders, line = schema.tables["orders"], schema.tables["line"]
    assert orders.columns == (
        TableColumn("id", INT64, False),
        TableColumn("total", DataType("decimal(10,2)"), False),
        TableColumn("note", STRING, True),
        TableColumn("at", TIMESTAMP, True),
        TableColumn("day", DATE, True),
    )
    assert orders.primary_key == ("id",)
    assert orders.profile == "arbitrary"
    assert line.primary_key == ("order_id", "number")
    assert not line.columns[1].nullable
    assert line.profile == "fifo"
    assert line.window == Window(interval=2 * 86_400_000_000, column="at")
    assert schema.views["big"].columns == ("id", "t")


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.sql"
    path.write_text(TEXT)
    assert load_schema(path).tables == load_schema(TEXT).tables
    assert load_schema(str(path)).tables == load_schema(TEXT).tables


def test_dict() -> None:
    schema = load_schema(
        {
            "g": {"src": "bigint", "dst": "int64 not null"},
            "h": {
                "columns": {"a": "int", "b": "decimal(5, 1)", "d": "date"},
                "primary_key": "a",
                "not_null": ["b"],
                "profile": "insert_only",
                "window": {"interval": datetime.timedelta(days=3), "column": "d"},
            },
        }
    )
    assert schema.tables["g"].columns == (TableColumn("src", INT64), TableColumn("dst", INT64, False))
    assert [c.nullable for c in schema.tables["h"].columns] == [False, False, True]
    assert schema.tables["h"].window == Window(interval=3, column="d")


def test_arrow() -> None:
    arrow = pa.schema(
        [
            pa.field("i", pa.int16(), nullable=False),
            pa.field("t", pa.timestamp("ns", tz="Europe/Rome")),
            pa.field("n", pa.timestamp("us")),
            pa.field("s", pa.dictionary(pa.int32(), pa.large_string())),
            pa.field("p", pa.decimal128(7, 3)),
        ]
    )
    found = load_schema({"a": arrow}).tables["a"].columns
    assert [c.type for c in found] == ["int16", "timestamp", "timestamp_ntz", "string", "decimal(7,3)"]
    assert not found[0].nullable
    assert load_schema({"a": pa.table({"x": [1]})}).tables["a"].columns == (TableColumn("x", INT64),)


def test_spark() -> None:
    from pyspark.sql import types as spark

    struct = spark.StructType(
        [
            spark.StructField("l", spark.LongType(), nullable=False),
            spark.StructField("d", spark.DecimalType(12, 4)),
            spark.StructField("t", spark.TimestampType()),
            spark.StructField("n", spark.TimestampNTZType()),
            spark.StructField("b", spark.ByteType()),
        ]
    )
    found = load_schema({"a": struct}).tables["a"].columns
    assert [c.type for c in found] == ["int64", "decimal(12,4)", "timestamp", "timestamp_ntz", "int8"]
    assert [c.nullable for c in found] == [False, True, True, True, True]


@pytest.mark.parametrize(
    "schema, code",
    [
        ("CREATE TABLE t (a BIGINT", "CROWN-SCHEMA-SYNTAX"),
        ("SELECT 1", "CROWN-SCHEMA-STATEMENT"),
        ("CREATE TABLE t (a GEOGRAPHY PRIMARY KEY)", "CROWN-SCHEMA-TYPE"),
        ("CREATE TABLE t (a INT, A INT)", "CROWN-SCHEMA-DUPLICATE"),
        ("CREATE TABLE t (a INT); CREATE TABLE T (a INT)", "CROWN-SCHEMA-DUPLICATE"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "CROWN-SCHEMA-KEY"),
        ("CREATE TABLE t (a INT) WINDOW (RANGE INTERVAL 1 DAY ON a)", "CROWN-SCHEMA-OPTION"),
        ("CREATE TABLE t (a INT) WITH (window = 'ROWS 2')", "CROWN-SCHEMA-OPTION"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('profile' = 'insert_only')", "CROWN-SCHEMA-OPTION"),
        ("", "CROWN-SCHEMA-EMPTY"),
        ("missing.sql", "CROWN-SCHEMA-FILE"),
        ({"t": {"a": "money"}}, "CROWN-SCHEMA-TYPE"),
        ({"t": {}}, "CROWN-SCHEMA-EMPTY"),
        ({"t": {"columns": {"a": "int"}, "primary_key": ["b"]}}, "CROWN-SCHEMA-KEY"),
        ({"t": {"columns": {"a": "int"}, "colour": "red"}}, "CROWN-SCHEMA-OPTION"),
        ({"t": {"columns": {"a": "int"}, "window": 0}}, "CROWN-SCHEMA-OPTION"),
        ({"t": 5}, "CROWN-SCHEMA-KIND"),
        (5, "CROWN-SCHEMA-KIND"),
        ({"t": {"columns": pa.schema([("a", pa.float16())]), "primary_key": "a"}}, "CROWN-SCHEMA-TYPE"),
    ],
)
def test_errors(schema: Any, code: str) -> None:
    with pytest.raises(SchemaError) as caught:
        load_schema(schema)
    assert caught.value.code == code


def test_options_by_argument() -> None:
    query = parse("SELECT a FROM t", {"t": {"a": "int"}}, profiles={"T": "static"}, windows={"t": 10})
    assert query.tables[0].profile == "static"
    assert query.tables[0].window == Window(rows=10)
    with pytest.raises(SchemaError):
        parse("SELECT a FROM t", {"t": {"a": "int"}}, profiles={"u": "static"})
    with pytest.raises(SchemaError):
        parse("SELECT a FROM t", {"t": {"a": "int"}}, profiles={"t": "wild"})


def test_options_in_from() -> None:
    schema = {"t": {"a": "int", "at": "timestamp"}}
    query = parse("SELECT x.a FROM t x WINDOW (RANGE INTERVAL '5' MINUTE ON at) PROFILE fifo, t y", schema)
    assert query.tables[0].window == Window(interval=300_000_000, column="at")
    assert query.tables[0].profile == "fifo"
    with pytest.raises(SqlError) as caught:
        parse("SELECT x.a FROM t x WINDOW (ROWS 1), t y WINDOW (ROWS 2)", schema)
    assert caught.value.code == "CROWN-SQL-WINDOW"


def test_text_in_literals_and_comments_is_no_option() -> None:
    sql = "SELECT a, 'WINDOW (ROWS 1)' AS w FROM t -- PROFILE fifo"
    query = parse(sql, {"t": {"a": "int"}})
    assert query.tables[0].window is None
    assert query.tables[0].profile == "arbitrary"


def test_other_dialects() -> None:
    schema = {"t": {"a": "int", "b": "int"}}
    assert parse('SELECT "a" FROM t ORDER BY a', schema, dialect="duckdb").order[0].nulls_first is False
    assert parse("SELECT a FROM t ORDER BY a", schema).order[0].nulls_first is True
    with pytest.raises(SqlError) as caught:
        parse("SELECT a FROM t", schema, dialect="klingon")
    assert caught.value.code == "CROWN-SQL-DIALECT"


def test_unused_columns_are_left_out_but_the_key_stays() -> None:
    described = {"columns": {"a": "int", "b": "int", "c": "int"}, "primary_key": "b"}
    query = parse("SELECT COUNT(*) FROM t", {"t": described})
    assert [c.name for c in query.tables[0].columns] == ["b"]
    query = parse("SELECT COUNT(*) FROM t", {"t": {"a": "int", "b": "int"}})
    assert [c.name for c in query.tables[0].columns] == ["a"]
