"""Kafka in and out with a real broker: a pipeline that is killed, and a consumer that removes repeats."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crown.spark.pipeline import Pipeline
from tests.spark import broker
from tests.spark.broker import Kafka
from tests.spark.streams import end, ended, wait_until

pytestmark = pytest.mark.spark

PIPELINE = """
query = "SELECT a.src, COUNT(*) AS n, SUM(b.weight) AS total FROM g a JOIN h b ON a.dst = b.id GROUP BY a.src"
checkpoint = "checkpoint"
master = "local[2,4]"
cells = 1
on_invalid = "quarantine"
rejects = "rejects"

[tables.g]
format = "kafka"
servers = "{servers}"
topic = "g{run}"
schema = "src BIGINT, dst BIGINT"
options = {{maxOffsetsPerTrigger = {step}}}

[tables.h]
format = "kafka"
servers = "{servers}"
topic = "h{run}"
value = "debezium"
schema = "id BIGINT NOT NULL, weight DECIMAL(10,2)"
key = "id"
decimals = "string"
options = {{maxOffsetsPerTrigger = {step}}}

[sink]
format = "kafka"
servers = "{servers}"
topic = "out{run}"

[spark]
"spark.jars" = "{jars}"
"spark.ui.enabled" = false
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"""


class Source:
    """Changes of `g` as JSON and of `h` as Debezium's records, and the answer over them."""

    def __init__(self, rng: random.Random, run: str) -> None:
        self._rng, self._run = rng, run
        self.g: Counter[tuple[int, int]] = Counter()
        self.h: dict[int, int] = {}

    def records(self, count: int) -> Iterator[tuple[str, str, str | None]]:
        for _ in range(count):
            yield from self._edge() if self._rng.random() < 0.6 else self._weight()

    def _edge(self) -> Iterator[tuple[str, str, str | None]]:
        present = sorted(self.g.elements())
        if present and self._rng.random() < 0.3:
            row, word = self._rng.choice(present), "delete"
            self.g[row] -= 1
        else:
            row, word = (self._rng.randrange(20), self._rng.randrange(20)), "insert"
            self.g[row] += 1
        # A key keeps a row's changes in one partition, and so in order.
        yield f"g{self._run}", f"{row[0]}-{row[1]}", json.dumps({"src": row[0], "dst": row[1], "_change_type": word})

    def _weight(self) -> Iterator[tuple[str, str, str | None]]:
        identity, cents = self._rng.randrange(20), self._rng.randrange(1000)
        topic, key = f"h{self._run}", json.dumps({"id": identity})
        if identity in self.h and self._rng.random() < 0.3:
            del self.h[identity]
            yield topic, key, json.dumps({"op": "d", "before": {"id": identity, "weight": None}, "after": None})
            yield topic, key, None
        else:
            word = "u" if identity in self.h else "c"
            self.h[identity] = cents
            after = {"id": identity, "weight": f"{cents / 100:.2f}"}
            yield topic, key, json.dumps({"op": word, "before": None, "after": after})

    def answer(self) -> Counter[tuple[Any, ...]]:
        rows: dict[int, list[int]] = {}
        for src, dst in self.g.elements():
            if dst in self.h:
                found = rows.setdefault(src, [0, 0])
                found[0] += 1
                found[1] += self.h[dst]
        return Counter({(src, count, cents): 1 for src, (count, cents) in rows.items()})


def consume(records: list[tuple[int, dict[str, Any], dict[str, Any]]]) -> tuple[Counter[tuple[Any, ...]], int]:
    """What a consumer has that drops repeats by batch and position, and how many it dropped."""
    seen: dict[tuple[int, int], Any] = {}
    rows: Counter[tuple[Any, ...]] = Counter()
    dropped = 0
    for _, key, value in records:
        assert key == {"src": value["src"]}
        mark = value.pop("_batch"), value.pop("_position")
        if mark in seen:
            assert seen[mark] == value, "a repeated batch has other deltas under its numbers"
            dropped += 1
            continue
        seen[mark] = value
        row = (value["src"], value["n"], round(value["total"] * 100))
        rows[row] += 1 if value["_change_type"] == "insert" else -1
    assert all(count in (0, 1) for count in rows.values())
    return +rows, dropped


def write(directory: Path, kafka: Kafka, run: str, *, step: int = 1000) -> Path:
    file = directory / "pipeline.toml"
    jars = ",".join(broker.jars("connector"))
    file.write_text(PIPELINE.format(servers=kafka.servers, jars=jars, run=run, step=step))
    return file


def start(file: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from crown.cli import main; main()", "run", "--plain", str(file)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]


def finish(file: Path) -> str:
    """Run what is there to its end; on a busy machine Spark may give up on Python workers that take long to start."""
    file.write_text('trigger = "available"\n' + file.read_text())
    for _ in range(5):
        finished = start(file)
        output, errors = finished.communicate()
        if finished.returncode == 0:
            return output
        assert "failed to connect back" in errors, errors[-3000:]
    raise AssertionError("Python workers don't start")


def run_until(file: Path, batch: int, seconds: float) -> bool:
    """Run the pipeline, and kill it some time after a batch is committed."""
    done = file.parent / "checkpoint" / "commits" / str(batch)
    running = start(file)
    try:
        reached = wait_until(lambda: done.exists() or ended(running), seconds=600)
        time.sleep(seconds)
    finally:
        end(running)  # as a machine that fails does
    return reached


def forget_last_commit(commits: Path) -> None:
    """Leave the checkpoint as a driver does that fails after a batch is sent and before it is committed."""
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    # Such a driver has not planned the next batch either, though the one that was killed may have.
    for name in (str(last + 1), f".{last + 1}.crc"):
        (commits.parent / "offsets" / name).unlink(missing_ok=True)


@pytest.mark.parametrize("batches", [(2,), pytest.param((1, 3, 5), marks=pytest.mark.slow)], ids=str)
def test_a_killed_pipeline_and_a_consumer_that_removes_repeats(
    kafka: Kafka, batches: tuple[int, ...], tmp_path: Path, rng: random.Random
) -> None:
    run = str(rng.randrange(10**9))
    kafka.create(f"g{run}", f"h{run}", f"out{run}")
    source = Source(rng, run)
    kafka.send(source.records(500 * (max(batches) + 1)))
    bad = [(f"g{run}", "", "not json"), (f"g{run}", "", '{"src": "x"}'), (f"h{run}", "", '{"op": "c"}')]
    kafka.send(bad)
    file = write(tmp_path, kafka, run, step=200)
    for batch in batches:
        assert run_until(file, batch, rng.random()), "no batch in ten minutes"
    forget_last_commit(tmp_path / "checkpoint" / "commits")
    output = finish(file)
    rows, dropped = consume(kafka.read(f"out{run}"))
    assert rows == source.answer(), f"{dropped} repeats"
    assert dropped > 0, "a batch was sent twice"
    files = [path for path in (tmp_path / "rejects").iterdir() if not path.name.startswith(".")]  # checksums are hidden
    rejected = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted(row["row"] for row in rejected) == sorted(value for _, _, value in bad)
    assert "rejected" in output


def test_a_key_is_the_groups_and_a_delta_has_all_columns(kafka: Kafka, tmp_path: Path, rng: random.Random) -> None:
    run = str(rng.randrange(10**9))
    kafka.create(f"g{run}", f"h{run}", f"out{run}")
    kafka.send(
        [
            (f"g{run}", "", '{"src": 1, "dst": 2}'),
            (f"h{run}", '{"id": 2}', '{"op": "c", "before": null, "after": {"id": 2, "weight": "1.50"}}'),
        ]
    )
    file = write(tmp_path, kafka, run)
    finish(file)
    ((_, key, value),) = kafka.read(f"out{run}")
    assert key == {"src": 1}
    batch, position = value.pop("_batch"), value.pop("_position")
    assert isinstance(batch, int)
    assert isinstance(position, int)
    assert value == {"src": 1, "n": 1, "total": 1.5, "_change_type": "insert"}


def test_the_file_is_checked_with_the_connector(kafka: Kafka, tmp_path: Path) -> None:
    checked = Pipeline.read(write(tmp_path, kafka, "0")).check()
    assert "at least once" in checked.views[0].delivery
