"""Debezium's records through a started stream: every encoding comes back, and nothing else becomes NULL."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crown.errors import SchemaError
from crown.spark import debezium, maintain, rejected
from crown.spark.failure import crown_error
from tests.spark.connect import COLUMNS, DDL, Mode, encoded, random_row, record
from tests.spark.streams import collect_batches, total
from tests.support.judge import multiset

pytestmark = pytest.mark.spark

WITH_SCHEMA = [
    Mode(True, decimals, timestamps)
    for decimals in ("precise", "variable", "numeric", "string", "double")
    for timestamps in ("millis", "micros", "nanos", "iso")
]
WITHOUT_SCHEMA: list[tuple[Mode, dict[str, Any]]] = [
    (Mode(False, "precise", "millis", "hex"), {"decimals": "precise", "timestamps": "millis", "binary": "hex"}),
    (
        Mode(False, "string", "micros", "base64-url-safe"),
        {"decimals": "string", "timestamps": {"moment": "micros", "clock": "micros"}, "binary": "base64-url-safe"},
    ),
    (Mode(False, "double", "nanos"), {"decimals": "double", "timestamps": "nanos"}),
    (Mode(False, "variable", "iso"), {"decimals": "precise"}),
]


def history(rng: random.Random, modes: list[Mode], rows: int) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    """Creates, updates and deletes as text, and what is left of them."""
    lines: list[str] = []
    now: dict[int, dict[str, Any]] = {}
    for identity in range(rows):
        mode = rng.choice(modes)
        now[identity] = row = random_row(rng, identity, mode)
        lines.append(record(rng.choice("cr"), None, row, mode))
        other = rng.randrange(identity + 1)
        # Values as they are in the table can be said in any mode only if they were made for the
        # coarsest.
        if other in now and rng.random() < 0.4:
            same = Mode(mode.schemas, mode.decimals, "micros" if mode.schemas else mode.timestamps, mode.binary)
            if rng.random() < 0.5:
                lines.append(record("d", now.pop(other), None, same))
            else:
                after = random_row(rng, other, same)
                lines.append(record("u", now[other], after, same))
                now[other] = after
    expected = multiset(tuple(row[name] for name in COLUMNS) for row in now.values())
    return lines, expected


@pytest.mark.parametrize("case", ["schemas", *range(len(WITHOUT_SCHEMA))])
def test_every_encoding_comes_back(spark: SparkSession, tmp_path: Path, rng: random.Random, case: str | int) -> None:
    modes, options = (
        (WITH_SCHEMA, {}) if isinstance(case, str) else ([WITHOUT_SCHEMA[case][0]], WITHOUT_SCHEMA[case][1])
    )
    lines, expected = history(rng, modes, 300)
    found = run(spark, tmp_path, lines, options=options)
    assert found - expected == expected - found == Counter()


def run(
    spark: SparkSession,
    path: Path,
    lines: list[str],
    *,
    schema: str = DDL,
    sql: str = "SELECT * FROM t",
    keys: Mapping[str, list[str]] | None = None,
    options: Mapping[str, Any] | None = None,
    quarantine: bool = False,
    cells: int = 2,
) -> Counter[tuple[Any, ...]]:
    (path / "in").mkdir(exist_ok=True)
    (path / "in" / "a.txt").write_text("\n".join(lines))
    changes = debezium(spark.readStream.text(str(path / "in")), schema, **(options or {}))
    deltas = maintain(
        spark,
        sql,
        {"t": changes},
        cells=cells,
        keys=keys,
        on_invalid="quarantine" if quarantine else "raise",
        rejects=str(path / "rejects"),
    )
    return total(collect_batches(deltas, path / "checkpoint").values())


SIMPLE = (
    "id BIGINT NOT NULL, name STRING, price DECIMAL(8,2), at TIMESTAMP, day DATE, truth BOOLEAN, raw BINARY, f FLOAT"
)
FAULTS = {
    "text in a number": {"id": "abc"},
    "digits as text in a number": {"id": "7"},
    "a number out of range": {"id": 2**63},
    "a fraction in a number": {"id": 1.5},
    "a boolean in a number": {"id": True},
    "a NULL in a NOT NULL column": {"id": None},
    "base64 where nothing says so": {"id": 1, "price": "AeJA"},
    "digits that may be base64": {"id": 1, "price": "1234"},
    "too many digits": {"id": 1, "price": 1.005},
    "too large": {"id": 1, "price": "12345678.00"},
    "text in a decimal": {"id": 1, "price": "about 3.5"},
    "a timestamp without a unit": {"id": 1, "at": 1_700_000_000_000_000},
    "a timestamp without a zone": {"id": 1, "at": "2024-01-01T00:00:00"},
    "no timestamp": {"id": 1, "at": "yesterday"},
    "no day": {"id": 1, "day": "2024-02-30"},
    "a day far away": {"id": 1, "day": 2**31},
    "a word in a boolean": {"id": 1, "truth": "true"},
    "a number in a boolean": {"id": 1, "truth": 2},
    "no base64": {"id": 1, "raw": "%%%"},
    "an object in text": {"id": 1, "name": {"a": 1}},
    "a list in text": {"id": 1, "name": [1]},
    "too large for a float": {"id": 1, "f": 1e39},
    "half of a surrogate pair": {"id": 1, "name": "a\ud800"},
    "a time zone that can't be": {"id": 1, "at": "2024-01-01T00:00:00+99:00"},
    "a value that was not sent": {"id": 1, "name": "__debezium_unavailable_value"},
}
VARIABLE = "io.debezium.data.VariableScaleDecimal"
OTHER_FAULTS = {
    "not JSON": "{",
    "a list": "[1]",
    "a number of a billion digits": '{"op": "c", "after": {"id": 1e999999999}}',
    "a decimal of thousands of digits": json.dumps(
        {
            "schema": {"fields": [{"field": "after", "fields": [{"field": "price", "name": VARIABLE}]}]},
            "payload": {"op": "c", "after": {"id": 1, "price": {"scale": 2, "value": "f39/" * 1000}}},
        }
    ),
    "another word for op": json.dumps({"op": "x", "after": {"id": 1}}),
    "no op": json.dumps({"id": 1}),
    "a create without after": json.dumps({"op": "c", "after": None}),
    "a truncate": json.dumps({"op": "t", "before": None, "after": None}),
    "a delete without before": json.dumps({"op": "d", "before": None, "after": None}),
    "an update without before and key": json.dumps({"op": "u", "before": None, "after": {"id": 1}}),
    "a partial before without a key": json.dumps(
        {"op": "u", "before": {"id": 1, "name": "__debezium_unavailable_value"}, "after": {"id": 1}}
    ),
}


def test_what_does_not_parse_is_invalid_and_tells_why(spark: SparkSession, tmp_path: Path) -> None:
    invalid = {name: json.dumps({"op": "c", "after": image}) for name, image in FAULTS.items()} | OTHER_FAULTS
    good = json.dumps({"op": "c", "after": {"id": 1, "name": "ann", "price": "3.50", "day": 1, "truth": True}})
    lines = [good, *invalid.values(), json.dumps({"payload": None}), "null", good]
    found = run(spark, tmp_path, lines, schema=SIMPLE, sql="SELECT id, name FROM t", quarantine=True)
    assert found == {(1, "ann"): 2}
    aside = rejected(spark, str(tmp_path / "rejects")).collect()
    assert sorted(row.row for row in aside) == sorted(invalid.values())
    reasons = {row.row: row.reason for row in aside}
    assert all("column" in reasons[invalid[name]] for name in FAULTS)
    assert "decimals=" in reasons[invalid["base64 where nothing says so"]]
    assert "timestamps=" in reasons[invalid["a timestamp without a unit"]]
    assert "PRIMARY KEY" in reasons[invalid["an update without before and key"]]
    assert "truncate" in reasons[invalid["a truncate"]]


def test_an_invalid_record_fails_the_batch_by_default(spark: SparkSession, tmp_path: Path) -> None:
    line = json.dumps({"op": "c", "after": {"id": 1, "price": "AeJA"}})
    with pytest.raises(Exception, match="CROWN-CHANGE-MALFORMED") as caught:
        run(spark, tmp_path, [line], schema=SIMPLE, sql="SELECT id FROM t")
    error = crown_error(str(caught.value))
    assert "decimals=" in str(error)
    assert "AeJA" in error.message


@pytest.mark.parametrize("cells", [1, 2])
def test_a_key_needs_no_before(spark: SparkSession, tmp_path: Path, cells: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    schema = "id BIGINT NOT NULL, name STRING NOT NULL, size INT"
    lines = [
        {"op": "c", "after": {"id": 1, "name": "ann", "size": 1}},
        {"op": "c", "after": {"id": 2, "name": "bob", "size": 2}},
        {"op": "c", "after": {"id": 3, "name": "cid", "size": 3}},
        # PostgreSQL's default replica identity: nothing, or the key with placeholders beside it.
        {"op": "u", "before": None, "after": {"id": 1, "name": "eve", "size": 5}},
        {"op": "d", "before": {"id": 2, "name": "", "size": 0}, "after": None},
        {"op": "u", "before": {"id": 3, "name": "__debezium_unavailable_value"}, "after": {"id": 4, "name": "dan"}},
    ]
    found = run(spark, tmp_path, list(map(json.dumps, lines)), schema=schema, keys={"t": ["id"]}, cells=cells)
    assert found == {(1, "eve", 5): 1, (4, "dan", None): 1}


def test_a_delete_by_the_key_of_its_message(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [
        {"value": json.dumps({"op": "c", "after": {"id": 1, "name": "ann"}}), "key": '{"id": 1}'},
        {"value": json.dumps({"op": "c", "after": {"id": 2, "name": "bob"}}), "key": '{"id": 2}'},
        {
            "value": json.dumps({"op": "d", "before": None, "after": None}),
            "key": '{"schema": {}, "payload": {"id": 1}}',
        },
        {"value": None, "key": '{"id": 1}'},
    ]
    (tmp_path / "in" / "a.json").write_text("\n".join(map(json.dumps, lines)))
    records = spark.readStream.schema("key STRING, value STRING").json(str(tmp_path / "in"))
    changes = debezium(records, "id BIGINT, name STRING")
    deltas = maintain(spark, "SELECT * FROM t", {"t": changes}, cells=2, keys={"t": ["id"]})
    assert total(collect_batches(deltas, tmp_path / "checkpoint").values()) == {(2, "bob"): 1}


def test_options_are_checked(spark: SparkSession) -> None:
    records = spark.range(1).selectExpr("cast(id AS string) value")
    for options, message in (
        ({"decimals": "exact"}, "precise"),
        ({"timestamps": "seconds"}, "millis"),
        ({"timestamps": {"when": "millis"}}, "when"),
        ({"binary": "utf8"}, "base64"),
    ):
        with pytest.raises(SchemaError, match=message):
            debezium(records, "id BIGINT, at TIMESTAMP", **options)
    with pytest.raises(SchemaError, match="column x"):
        debezium(records, "id BIGINT, x MAP<ARRAY<INT>, INT>")


def test_marks_are_no_columns_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """`SELECT *` shows the table's columns, whatever the source marks its records with."""
    found = run(spark, tmp_path, ['{"op": "c", "after": {"id": 1}}'], schema="id BIGINT")
    assert found == {(1,): 1}


def test_the_encoder_is_not_the_decoder() -> None:
    row = {"price": None, "day": None, "raw": b"\x01\xff"}
    assert encoded(row, Mode(False))["raw"] == "Af8="
