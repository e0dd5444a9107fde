"""Real-time mode: deltas of each change as it comes, and what a consumer makes of them after a failure."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crown.errors import PlanError
from crown.spark import maintain, rejected, snapshot
from crown.spark.failure import crown_error
from crown.spark.settings import JAR
from tests.spark.broker import Kafka, jars
from tests.spark.streams import GRAPH, GRAPH_QUERIES, Feed, collect_batches, end, wait_until
from tests.support.judge import Change, Judge

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAR.exists(), reason="there is no jar: install a JDK and run make setup"),
]

TWO_TABLES = GRAPH + "; CREATE TABLE h (src BIGINT, dst BIGINT)"
JOIN = "SELECT g.src, g.dst AS mid, h.dst FROM g JOIN h ON g.dst = h.src"
ONE = {"out": JOIN}
VIEWS = {
    "joined": JOIN,
    "middle": "SELECT g.dst AS mid, COUNT(*) AS n FROM g JOIN h ON g.dst = h.src GROUP BY g.dst",
    "seldom": "SELECT src, dst FROM g WHERE src = 1 AND dst = 1",
}
TOP = {**VIEWS, "top": "SELECT mid, n FROM middle ORDER BY n DESC, mid LIMIT 2"}
CELL_SHIFT = 40


def valid(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documented rule: a record is void if a later attempt of its cell began with a state before its batch."""
    records = list(records)
    cells: dict[int, set[tuple[int, int]]] = {}
    for record in records:
        cells.setdefault(record["_position"] >> CELL_SHIFT, set()).add((record["_attempt"], record["_after"]))

    def is_void(record: dict[str, Any]) -> bool:
        attempts = cells[record["_position"] >> CELL_SHIFT]
        return any(attempt > record["_attempt"] and after < record["_batch"] for attempt, after in attempts)

    once = {(record["_attempt"], record["_position"]): record for record in records if not is_void(record)}
    return list(once.values())


def total(records: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for record in records:
        row = tuple(value for name, value in record.items() if not name.startswith("_"))
        weight = {"insert": 1, "delete": -1, "none": 0}[record["_change_type"]] * (record.get("_multiplicity") or 1)
        found[row] += weight
    return Counter({row: count for row, count in found.items() if count})


def test_the_rule_for_consumers() -> None:
    def record(batch: int, after: int, attempt: int, word: str = "insert", cell: int = 0) -> dict[str, Any]:
        marks = {"_batch": batch, "_after": after, "_attempt": attempt, "_position": cell << CELL_SHIFT}
        return {"x": batch, "_change_type": word, **marks}

    first, second, other = record(0, -1, 10), record(1, 0, 20), record(1, -1, 20, cell=1)
    assert valid([first, second, other, second]) == [first, second, other]
    # Batch 1 failed; the cell's changes come again in batch 2, without deltas.
    again = record(2, 0, 30, "none")
    assert valid([first, second, other, again]) == [first, other, again]
    assert total(valid([again, second, first])) == {(0,): 1}


@pytest.mark.parametrize("cells", [1, 2], indirect=True)
def test_changes_one_at_a_time_add_up(spark: SparkSession, cells: int, rng: random.Random, tmp_path: Path) -> None:
    """Each batch with its deletions before the insertions that they take back; in micro-batches, where it works too."""
    judge = Judge(JOIN, TWO_TABLES)
    feed = Feed(tmp_path / "in", judge)
    records: list[dict[str, Any]] = []
    for number in range(3):
        rows = [(rng.randrange(5), rng.randrange(5)) for _ in range(20)]
        kept = [Change(rng.choice("gh"), row) for row in rows]
        gone = [Change(change.table, change.row, -1) for change in kept if rng.random() < 0.4]
        feed.write([*gone, *kept])
        judge.apply([*kept, *gone])
        deltas = maintain(spark, judge.sql, feed.tables(spark), cells=cells, real_time=True)
        (batch,) = collect_batches(deltas, tmp_path / "checkpoint").values()
        assert {row["_batch"] for row in batch.to_pylist()} == {number}
        records += batch.to_pylist()
        assert len(valid(records)) == len(records)
        assert total(records) == judge.result
    judge.check_result(snapshot(spark, str(tmp_path / "checkpoint")).toArrow(), where="snapshot")


def judged(views: dict[str, str]) -> dict[str, Judge]:
    written = {name: sql.replace("FROM middle", f"FROM ({views.get('middle')})") for name, sql in views.items()}
    return {name: Judge(sql, TWO_TABLES) for name, sql in written.items()}


@pytest.mark.parametrize(("cells", "queries"), [(2, VIEWS), (1, TOP)], indirect=["cells"])
def test_several_views_change_by_change(
    spark: SparkSession, cells: int, queries: dict[str, str], rng: random.Random, tmp_path: Path
) -> None:
    """In micro-batches, as above. Every view tells of every attempt of each cell, also without deltas."""
    judges = judged(queries)
    feed = Feed(tmp_path / "in", judges["joined"])
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in queries}
    for number in range(2):
        changes = [Change(rng.choice("gh"), (rng.randrange(5), rng.randrange(5))) for _ in range(12)]
        changes += [Change(change.table, change.row, -1) for change in changes if rng.random() < 0.4]
        feed.write(changes)
        views = maintain(spark, queries, feed.tables(spark), cells=cells, real_time=True)
        heard = []
        for name, judge in judges.items():
            judge.apply(changes)
            (batch,) = collect_batches(views[name], tmp_path / f"checkpoint-{name}").values()
            rows = batch.to_pylist()
            records[name] += rows
            heard.append({row["_position"] >> CELL_SHIFT for row in rows if row["_batch"] == number})
            assert total(records[name]) == judge.result, name
            assert len(valid(records[name])) == len(records[name])
        assert all(cells_ == heard[0] for cells_ in heard), heard
    assert any(row["_change_type"] == "none" for row in records["seldom"])
    for name, judge in judges.items():
        shown = snapshot(spark, str(tmp_path / "checkpoint-joined"), view=name)
        judge.check_result(shown.toArrow(), where=f"snapshot of {name}")


def test_where_several_views_can_go_in_real_time(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", Judge(JOIN, TWO_TABLES))
    feed.write([])
    tables = feed.tables(spark)
    with pytest.raises(PlanError, match=r"CROWN-SPARK-REALTIME[\s\S]*2 cells meet for top"):
        maintain(spark, TOP, tables, cells=2, real_time=True)
    views = maintain(spark, VIEWS, tables, cells=2, real_time=True)
    kafka = {"kafka": "127.0.0.1:1", "topic": "a"}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"joined": {"parquet": "x"}}, r"CROWN-SPARK-REALTIME[\s\S]*only Kafka's can divide it"),
        ({"joined": lambda deltas, batch: None}, r"CROWN-SPARK-REALTIME[\s\S]*only Kafka's can divide it"),
        ({"joined": kafka, "middle": kafka}, r"CROWN-SINK-TARGET[\s\S]*joined and middle have the same topic a"),
        (
            {"joined": kafka, "middle": {"kafka": "127.0.0.1:2", "topic": "b"}},
            r"CROWN-SPARK-REALTIME[\s\S]*joined and middle can't go to Kafka with different servers",
        ),
        ({"joined": {"kafka": "127.0.0.1:1"}}, r"CROWN-SINK-TARGET[\s\S]*topic is missing"),
        ({"joined": {**kafka, "keys": ["src"]}}, r"CROWN-SINK-TARGET[\s\S]*no option keys"),
        ({"joined": {**kafka, "key": "src"}}, r"CROWN-SINK-TARGET[\s\S]*list of columns"),
        ({"joined": {**kafka, "key": ["n"]}}, "CROWN-SINK-KEY"),
    ]
    for sinks, message in refused:
        with pytest.raises(PlanError, match=message):
            views.start(sinks, checkpoint=str(tmp_path / "c"))


def test_a_deletion_without_an_insertion_follows_on_invalid(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    judge = Judge(JOIN, TWO_TABLES)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (9, 9), -1), Change("g", (1, 2)), Change("h", (2, 3))])
    tables = feed.tables(spark)
    with pytest.raises(Exception, match="CROWN-CHANGE-ABSENT") as failure:
        collect_batches(maintain(spark, JOIN, tables, cells=cells, real_time=True), tmp_path / "strict")
    assert "(cells)" in str(crown_error(str(failure.value)))
    side = str(tmp_path / "rejects")
    options: Any = {"on_invalid": "quarantine", "rejects": side, "real_time": True}
    (batch,) = collect_batches(maintain(spark, JOIN, tables, cells=cells, **options), tmp_path / "lenient").values()
    assert total(batch.to_pylist()) == {(1, 2, 3): 1}
    (row,) = rejected(spark, side).collect()
    assert (row.table, row.position) == ("g", 0)
    assert "CROWN-CHANGE-ABSENT" in row.reason


def test_what_can_not_run_in_real_time_says_why(spark: SparkSession, cells: int, tmp_path: Path) -> None:
    judge = Judge(JOIN, TWO_TABLES)
    feed = Feed(tmp_path / "in", judge)
    feed.write([Change("g", (1, 2))])
    tables = feed.tables(spark)
    static = {**tables, "h": spark.read.parquet(str(tmp_path / "in" / "h"))}
    inner = {**tables, "h": maintain(spark, "SELECT src, dst FROM g", tables, cells=cells)}
    refused: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        (GRAPH_QUERIES[3], tables, {}, "cells meet"),
        (JOIN, tables, {"keys": {"g": ["src"]}}, "table g has a key"),
        (JOIN, tables, {"windows": {"h": {"rows": 5}}}, "table h has a key or a window"),
        (JOIN, static, {}, "table h is static"),
        (JOIN, inner, {}, "table h is a view"),
    ]
    for sql, given, options, reason in refused:
        with pytest.raises(PlanError, match="CROWN-SPARK-REALTIME") as failure:
            maintain(spark, sql, given, cells=cells, real_time=True, **options)
        assert reason in str(failure.value)
    writer: Any = maintain(spark, JOIN, tables, cells=cells).writeStream
    with pytest.raises(PlanError, match="real_time=True"):
        writer.trigger(realTime="5 seconds")


class Application:
    def __init__(self, kafka: Kafka, run: str, directory: Path, queries: dict[str, str], cells: int) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        given = [kafka.servers, ",".join(jars("connector")), run, str(directory), json.dumps(queries), str(cells)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.real_time_driver", *given],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "started\n"

    def kill(self) -> None:
        end(self.process)


def live_run(
    kafka: Kafka, rng: random.Random, directory: Path, cells: int, kills: int, queries: dict[str, str] = ONE
) -> None:
    """Send changes while the application runs, is killed and started again; what its consumer has is the answer."""
    run = uuid.uuid4().hex[:8]
    kafka.create(f"g{run}", f"h{run}", *(f"{name}{run}" for name in queries))
    judges = judged(queries)
    first = f"{next(iter(queries))}{run}"
    for strike in range(kills + 1):
        application = Application(kafka, run, directory, queries, cells)
        try:
            for _ in range(2):
                rows = [(rng.randrange(6), rng.randrange(6)) for _ in range(30)]
                kept = [Change(rng.choice("gh"), row) for row in rows]
                gone = [Change(change.table, change.row, -1) for change in kept if rng.random() < 0.3]
                for judge in judges.values():
                    judge.apply([*kept, *gone])
                changes = [*kept, *gone]
                # No key: partitions and so the order of a row's changes are left to chance.
                rng.shuffle(changes)
                kafka.send((f"{change.table}{run}", "", as_json(change)) for change in changes)
            if strike < kills:
                wait_until(lambda: kafka.read(first), seconds=600)
            else:
                for name, judge in judges.items():
                    topic, wanted = f"{name}{run}", judge.result
                    right = wait_until(lambda t=topic, w=wanted: answer(kafka, t) == w, seconds=600)
                    assert right, (name, answer(kafka, topic), wanted)
        finally:
            application.kill()
    assert all(key == {name: value[name] for name in ("src", "mid", "dst")} for _, key, value in kafka.read(first))


def as_json(change: Change) -> str:
    word = "insert" if change.weight > 0 else "delete"
    return json.dumps({"src": change.row[0], "dst": change.row[1], "_change_type": word})


def answer(kafka: Kafka, topic: str) -> Counter[tuple[Any, ...]]:
    return total(valid(value for _, _, value in kafka.read(topic)))


@pytest.mark.parametrize("kills", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_kafka_to_kafka(kafka: Kafka, rng: random.Random, kills: int, tmp_path: Path) -> None:
    live_run(kafka, rng, tmp_path, cells=2, kills=kills)


@pytest.mark.parametrize("kills", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_several_views_from_kafka_to_kafka(kafka: Kafka, rng: random.Random, kills: int, tmp_path: Path) -> None:
    live_run(kafka, rng, tmp_path, cells=2, kills=kills, queries=VIEWS)


@pytest.mark.slow
def test_views_over_views_from_kafka_to_kafka(kafka: Kafka, rng: random.Random, tmp_path: Path) -> None:
    live_run(kafka, rng, tmp_path, cells=1, kills=2, queries=TOP)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_kafka_to_kafka_for_long(kafka: Kafka, rng: random.Random, number: int, tmp_path: Path) -> None:
    live_run(kafka, rng, tmp_path, cells=1 + number % 2, kills=3)
