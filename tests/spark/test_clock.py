"""`now()` on Spark: the time of each batch, from Spark's own log, and rows that leave as time goes by."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from crown.errors import PlanError
from crown.spark import files, maintain, read_materialized, run_batch, snapshot
from tests.spark.streams import wait_until

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, at TIMESTAMP"
RECENT = "SELECT id FROM events WHERE at > now() - INTERVAL 8 SECONDS"
VIEWS = {
    "recent": RECENT,
    "today": "SELECT id FROM events WHERE CAST(at AS DATE) <= CURRENT_DATE",
    "all_of_them": "SELECT COUNT(*) AS n FROM events",
}


def write(directory: Path, ages: dict[int, float]) -> None:
    """Write events that happened so many seconds ago."""
    now = datetime.now(UTC)
    times = pa.array([now - timedelta(seconds=age) for age in ages.values()], pa.timestamp("us", "UTC"))
    directory.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": list(ages), "at": times}), directory / f"{len(list(directory.iterdir()))}.parquet")


def events(spark: SparkSession, directory: Path) -> dict[str, DataFrame]:
    return {"events": files(spark, str(directory), SCHEMA, format="parquet")}


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in ((2, "python"), (1, "python"), (1, "jvm"))]


@pytest.mark.parametrize(("cells", "engine"), [(2, "jvm"), *SLOW], indirect=True)
def test_rows_leave_as_time_goes_by(spark: SparkSession, engine: str, cells: int, tmp_path: Path) -> None:
    """Without any change after the first, and at the same time for all views."""
    ages: dict[int, float] = {1: -6, 2: -36000, 3: 3600, 4: -3 * 86400}
    written = time.time()
    write(tmp_path / "in", ages)
    sinks = {name: {"parquet": str(tmp_path / name)} for name in VIEWS}
    views = maintain(spark, VIEWS, events(spark, tmp_path / "in"), cells=cells)
    query = views.start(sinks, checkpoint=str(tmp_path / "checkpoint"), trigger={"processingTime": "1 second"})
    try:
        commits = tmp_path / "checkpoint" / "commits"
        assert wait_until(lambda: (commits / "0").exists() or not query.isActive, seconds=300)
        assert query.isActive, query.exception()
        first = told(tmp_path / "checkpoint", 0)  # however long Spark took to begin
        due = [id_ for id_, age in ages.items() if written - age > first - 8]
        assert ids(read_materialized(spark, str(tmp_path / "recent"), version=0)) == due
        assert wait_until(lambda: ids(read_materialized(spark, str(tmp_path / "recent"))) == [2, 4], seconds=300)
        # The sink is written before Spark commits the batch.
        checkpoint = str(tmp_path / "checkpoint")
        assert wait_until(lambda: ids(snapshot(spark, checkpoint, view="recent")) == [2, 4], seconds=300)
    finally:
        query.stop()
    assert query.exception() is None
    assert set(ids(read_materialized(spark, str(tmp_path / "today")))) - {2} == {1, 3}, "2 may be of tomorrow"
    assert read_materialized(spark, str(tmp_path / "all_of_them")).collect() == [(4,)]


def told(checkpoint: Path, batch: int) -> int:
    """The time of a batch, from Spark's log."""
    (seconds,) = re.findall(r'"seconds": ?(\d+)', (checkpoint / "offsets" / str(batch)).read_text())
    return int(seconds)


def test_a_repeated_batch_has_its_time(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    """The second batch fails in the sink and runs again when a row's time is over: it is the same batch."""
    found: dict[int, list[tuple[int, str]]] = {}
    deadly = {1}

    def keep(deltas: DataFrame, batch: int) -> None:
        rows = sorted((row.id, row._change_type) for row in deltas.collect())
        assert found.setdefault(batch, rows) == rows, f"batch {batch} had other deltas the first time"
        if batch in deadly:
            deadly.clear()
            raise RuntimeError("the sink fails once")

    def run() -> None:
        deltas = maintain(spark, RECENT, events(spark, tmp_path / "in"), cells=cells)
        writer = deltas.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    write(tmp_path / "in", {1: -6})
    happened = time.time() + 6
    run()
    write(tmp_path / "in", {2: -36000})
    with pytest.raises(StreamingQueryException, match="the sink fails once"):
        run()
    assert wait_until(lambda: time.time() > happened + 9)
    run()
    run()
    rows: set[int] = set()
    for batch in sorted(found):
        rows -= {id_ for id_, word in found[batch] if word == "delete"}
        rows |= {id_ for id_, word in found[batch] if word == "insert"}
        is_recent = happened > told(tmp_path / "checkpoint", batch) - 8
        assert rows == ({1} if is_recent else set()) | ({2} if batch else set()), f"after batch {batch}"
    assert rows == {2}


def test_bounded_input_has_the_time_of_now(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", {1: 0, 2: 100})
    changes = {"events": spark.read.parquet(str(tmp_path / "in"))}
    assert ids(run_batch(spark, RECENT.replace("8 S", "50 S"), changes, cells=2)) == [1]


def test_real_time_mode_has_no_time(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", {1: 0})
    with pytest.raises(PlanError, match=r"CROWN-SPARK-REALTIME[\s\S]*reads the time"):
        maintain(spark, RECENT, events(spark, tmp_path / "in"), cells=1, real_time=True)
