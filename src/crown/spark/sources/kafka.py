"""Changes from a Kafka topic, as JSON or as Debezium's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from crown.changes import CHANGE_TYPE, DELETIONS, INSERT, INSERTIONS, MULTIPLICITY
from crown.errors import SchemaError
from crown.spark.schema import as_struct
from crown.spark.sources.debezium import DebeziumOptions, debezium
from crown.spark.sources.decoding import RecordChange, RowReader, decoded, parse_json
from crown.spark.sources.encodings import Encodings, Unreadable
from crown.spark.sources.native import remember_json

VALUES = ("json", "debezium")


def kafka(
    spark: SparkSession,
    schema: StructType | str,
    *,
    servers: str | None = None,
    topic: str | None = None,
    value: str = "json",
    options: Mapping[str, str | int | float | bool] | None = None,
    **encodings: Unpack[DebeziumOptions],
) -> DataFrame:
    """Return the records of a topic as changes, from its beginning on.

    With `value="json"` each record is one JSON object with the table's columns and, unless all are insertions,
    `_change_type`; timestamps are ISO texts, bytes base64. With `value="debezium"` records are Debezium's, and
    `encodings` are options of `debezium`. A record that doesn't fit `schema` is invalid, and `maintain` treats it by
    its `on_invalid`. In real-time mode JSON is read by Spark's own parser, which is more lenient: a column that a
    record lacks is NULL.

    `options` are those of Spark's Kafka source, e.g. `{"maxOffsetsPerTrigger": 100_000}`; they count before `servers`,
    `topic` and the first offset. Kafka keeps the order of a key in a partition, so send the changes of a table with a
    primary key under that key.
    """
    if value not in VALUES:
        raise SchemaError(
            f"value must not be {value!r}", code="CROWN-SOURCE-OPTION", hint=f"one of {', '.join(VALUES)}"
        )
    if encodings and value != "debezium":
        raise SchemaError(
            f"{sorted(encodings)[0]} is an option for Debezium records",
            code="CROWN-SOURCE-OPTION",
            hint='give value="debezium" too',
        )
    reader = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    if servers is not None:
        reader = reader.option("kafka.bootstrap.servers", servers)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    records = reader.options(**(options or {})).load().select("key", "value")
    if value == "debezium":
        return debezium(records, schema, **encodings)
    row = StructType([field for field in as_struct(schema).fields if field.name != CHANGE_TYPE])
    # In plain JSON, text can't be the bytes of a number.
    changes = decoded(records, RowReader(row, Encodings(decimals="string")), read_object, value="value", key="key")
    remember_json(changes, records, row)
    return changes


def read_object(rows: RowReader, text: str | None, key: str | None) -> list[RecordChange]:
    """Return the change of a record that is the row itself, with `_change_type` beside its columns."""
    if text is None:
        raise Unreadable(f"the record has no value: mark a deletion with {CHANGE_TYPE}")
    record = parse_json(text)
    values = rows.whole(record, None, "the record")
    word = record.get(CHANGE_TYPE)
    if word is not None and word not in (*INSERTIONS, *DELETIONS):
        raise Unreadable(f"{CHANGE_TYPE} is {word!r}, not one of {', '.join(INSERTIONS + DELETIONS)}")
    columns = rows.row.fieldNames()
    if MULTIPLICITY in columns:
        place = columns.index(MULTIPLICITY)
        values[place] = 1 if values[place] is None else values[place]
        if values[place] < 1:
            raise Unreadable(f"{MULTIPLICITY} is {values[place]}")
    elif record.get(MULTIPLICITY, 1) != 1:
        raise Unreadable(f"the record represents several rows: add {MULTIPLICITY} BIGINT to the schema")
    return [RecordChange(word or INSERT, values)]
