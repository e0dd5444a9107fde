"""Parquet files that are read where they are dispatched: the same answers as by Spark's rows, and clear errors."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from crown.errors import SchemaError
from crown.spark import files, maintain, rejected
from crown.spark.schema import DELETED
from crown.spark.sources.parquet import read_changes
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, collect_batches, random_changes, total
from tests.support.judge import Change, Judge

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("python_engine")]  # its session also parses schemas


def read(path: Path, schema: str) -> list[dict[str, Any]]:
    columns = StructType.fromDDL(schema)
    assert isinstance(columns, StructType)
    return [row for batch in read_changes(str(path), columns) for row in batch.to_pylist()]


def write(path: Path, columns: dict[str, pa.Array], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), path, **options)
    return path


def test_words_become_directions(tmp_path: Path) -> None:
    words = ["insert", "delete", None, "update_preimage", "update_postimage", "replace"]
    file = write(tmp_path / "a.parquet", {"k": pa.array(range(6)), "_change_type": pa.array(words)})
    assert [row[DELETED] for row in read(file, "k BIGINT")] == [False, True, False, True, False, None]
    plain = write(tmp_path / "b.parquet", {"k": pa.array([1, 2])})
    assert [row[DELETED] for row in read(plain, "k BIGINT")] == [False, False]


def test_columns_match_as_in_spark(tmp_path: Path) -> None:
    columns = {"ID": pa.array([1], pa.int32()), "price": pa.array([2], pa.int16()), "extra": pa.array(["x"])}
    file = write(tmp_path / "day=2024-02-03" / "city=New%20York" / "a.parquet", columns)
    schema = "id BIGINT, price DECIMAL(10,2), day DATE, city STRING, absent STRING"
    (row,) = read(file, schema)
    assert read(Path(f"file:{file}"), schema) == [row]
    assert row.pop(DELETED) is False
    assert list(row) == ["id", "price", "day", "city", "absent"]
    assert (row["id"], row["price"], str(row["day"])) == (1, Decimal("2.00"), "2024-02-03")
    assert (row["city"], row["absent"]) == ("New York", None)


def test_times_of_the_old_kind_are_instants(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456)
    column = pa.array([moment], pa.timestamp("ns"))
    old = write(tmp_path / "a.parquet", {"t": column}, use_deprecated_int96_timestamps=True)
    assert read(old, "t TIMESTAMP")[0]["t"] == moment.replace(tzinfo=UTC)
    local = write(tmp_path / "b.parquet", {"t": pa.array([moment], pa.timestamp("us"))})
    assert read(local, "t TIMESTAMP_NTZ")[0]["t"] == moment
    with pytest.raises(SchemaError, match="CROWN-SOURCE-TYPE"):
        read(local, "t TIMESTAMP")


@pytest.mark.parametrize(
    ("column", "schema"),
    [
        (pa.array(["1"]), "k BIGINT"),
        (pa.array([1.5]), "k BIGINT"),
        (pa.array([1]), "k STRING"),
        (pa.array([1.5]), "k FLOAT"),
        (pa.array([b"x"]), "k STRING"),
    ],
)
def test_another_type_is_an_error(tmp_path: Path, column: pa.Array, schema: str) -> None:
    with pytest.raises(SchemaError, match=r"column k of .*a\.parquet"):
        read(write(tmp_path / "a.parquet", {"k": column}), schema)


def test_a_value_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        read(write(tmp_path / "a.parquet", {"k": pa.array([1 << 40])}), "k INT")


def test_dictionaries_and_large_strings(tmp_path: Path) -> None:
    names = pa.array(["ann", "bob", "ann"])
    columns = {"a": names.dictionary_encode(), "b": names.cast(pa.large_string())}
    found = read(write(tmp_path / "a.parquet", columns), "a STRING, b STRING")
    assert [(row["a"], row["b"]) for row in found] == [(name, name) for name in names.to_pylist()]


def test_no_parquet_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no parquet")
    for name in ("a.parquet", "b.parquet"):
        with pytest.raises(SchemaError, match="CROWN-SOURCE-FILE"):
            read(tmp_path / name, "k BIGINT")


def slow(*values: int) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(("cells", "query"), [slow(1, 2), slow(3, 0), (3, 3)], indirect=["cells"])
def test_every_delta_is_exact(spark: SparkSession, cells: int, query: int, rng: random.Random, tmp_path: Path) -> None:
    """Query 3 compares all rows with a number, so Spark reads them: its selection comes first."""
    sql = GRAPH_QUERIES[query]
    judge = Judge(sql, GRAPH)
    feed = Feed(tmp_path / "in", judge)
    history = []
    for _ in range(4):
        history.append(random_changes(rng, judge.tables, 12))
        feed.write(history[-1])
        judge.apply(history[-1])
    deltas = maintain(spark, sql, feed.tables(spark, by_name=True), cells=cells)
    batches = collect_batches(deltas, tmp_path / "checkpoint")
    judge = Judge(sql, GRAPH)
    for number, changes in enumerate(history):
        judge.apply(changes)
        judge.check_delta(batches[number], where=f"batch {number}")


def test_spark_sees_names_only(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (i, i + 1)) for i in range(50)])
    source = feed.tables(spark, by_name=True)["g"]
    for table, rows in ((source, 1), (source.where("src < 1000"), 50)):
        deltas = maintain(spark, judge.sql, {"g": table}, cells=cells)
        query = (
            deltas.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / str(rows)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [rows]


def test_unknown_words_are_set_aside(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    words = ["insert", "upsert", "insert"]
    columns = {"src": pa.array([1, 5, 2]), "dst": pa.array([2, 6, 3]), "_change_type": pa.array(words)}
    directory = tmp_path / "ü %41"
    write(directory / "a.parquet", columns)
    changes = files(spark, str(directory), "src BIGINT, dst BIGINT")
    deltas = maintain(
        spark, GRAPH_QUERIES[0], {"g": changes}, cells=cells, on_invalid="quarantine", rejects=str(tmp_path / "rejects")
    )
    assert total(collect_batches(deltas, tmp_path / "checkpoint").values()) == {(1, 3): 1}
    (row,) = rejected(spark, str(tmp_path / "rejects")).collect()
    assert (row.table, row.position) == ("g", 1)
    assert "_change_type" in row.reason
    strict = maintain(spark, GRAPH_QUERIES[0], {"g": changes}, cells=cells)
    with pytest.raises(Exception, match="CROWN-CHANGE-MALFORMED"):
        collect_batches(strict, tmp_path / "strict")
