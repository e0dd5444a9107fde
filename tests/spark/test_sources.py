"""Sources, malformed records and the side output of rejected changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crown.errors import SchemaError
from crown.spark import delta_feed, files, kafka, maintain, rejected
from crown.spark.failure import crown_error
from tests.spark.streams import collect_batches, total

pytestmark = pytest.mark.spark


def test_quarantine_keeps_the_rest_and_tells_why_and_where(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [
        '{"src": 1, "dst": 2}',
        "not json",
        '{"src": 7, "dst": 7, "_change_type": "delete"}',
        '{"src": 2, "dst": 3}',
    ]
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    changes = files(spark, str(tmp_path / "in"), "src BIGINT, dst BIGINT", format="json")
    sql = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    deltas = maintain(
        spark, sql, {"g": changes}, cells=cells, on_invalid="quarantine", rejects=str(tmp_path / "rejects")
    )
    batches = collect_batches(deltas, tmp_path / "checkpoint")
    assert total(batches.values()) == {(1, 3): 1}
    found = {(row.table, row.position): row for row in rejected(spark, str(tmp_path / "rejects")).collect()}
    assert set(found) == {("g", 1), ("g", 2)}
    assert found["g", 1].row == "not json"
    assert json.loads(found["g", 2].row)
    assert all(row.reason and row.batch == 0 and row.partition == 0 for row in found.values())


def test_a_malformed_record_is_an_error_by_default(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("src,dst,_change_type\n1,2,insert\nx,y,insert\n")
    changes = files(spark, str(tmp_path / "in"), "src BIGINT, dst BIGINT, _change_type STRING", format="csv")
    deltas = maintain(spark, "SELECT src, dst FROM g", {"g": changes}, cells=cells)
    with pytest.raises(Exception, match="CROWN-CHANGE-MALFORMED"):
        collect_batches(deltas, tmp_path / "checkpoint")


def test_a_csv_file_without_names_says_what_is_wrong(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,2,insert\n")
    schema = "src BIGINT, dst BIGINT, _change_type STRING"
    changes = files(spark, str(tmp_path / "in"), schema, format="csv")
    with pytest.raises(Exception, match="FAILED_READ_FILE") as failure:
        collect_batches(maintain(spark, "SELECT src FROM g", {"g": changes}, cells=cells), tmp_path / "named")
    error = crown_error(str(failure.value))
    assert error.code == "CROWN-SOURCE-FILE"
    assert error.reason is not None and "header does not conform" in error.reason
    changes = files(spark, str(tmp_path / "in"), schema, format="csv", options={"header": False})
    deltas = maintain(spark, "SELECT src FROM g", {"g": changes}, cells=cells)
    assert total(collect_batches(deltas, tmp_path / "unnamed").values()) == {(1,): 1}


def test_delta_change_feed_columns(spark: SparkSession) -> None:
    feed = spark.range(1).selectExpr("id", "'insert' _change_type", "1L _commit_version", "now() _commit_timestamp")
    assert delta_feed(feed).columns == ["id", "_change_type"]
    with pytest.raises(SchemaError, match="CROWN-SOURCE-FEED"):
        delta_feed(spark.range(1))


def test_options_are_checked(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="CROWN-SOURCE-OPTION"):
        files(spark, "in", "a BIGINT", format="xml")
    with pytest.raises(SchemaError, match="CROWN-SOURCE-OPTION"):
        kafka(spark, "a BIGINT", topic="t", servers="s", value="avro")
    with pytest.raises(SchemaError, match="CROWN-SOURCE-OPTION"):
        kafka(spark, "a BIGINT", topic="t", servers="s", decimals="string")


def test_errors_of_spark_are_named() -> None:
    assert crown_error("Job aborted").code == "CROWN-SPARK-QUERY"
