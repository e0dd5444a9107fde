"""The benchmark suite measures what it says: same stream for all, answers compared, limits kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import experiments, report, runner, store
from benchmarks.checksum import checksum
from benchmarks.data import Data
from benchmarks.job import Job
from benchmarks.stream import Stream, of_changes
from benchmarks.workloads import WORKLOADS
from crown.workload import streams


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(scale=0.002, cache=str(tmp_path))


def test_checksum_is_of_the_multiset_and_not_of_its_order() -> None:
    rows = [pa.chunked_array([[1, 2, 3]]), pa.chunked_array([[4, 5, 6]])]
    turned = [pa.chunked_array([[3, 1, 2]]), pa.chunked_array([[6, 4, 5]])]
    assert checksum(rows, np.array([1, 1, 1])) == checksum(turned, np.array([1, 1, 1]))
    assert checksum(rows, np.array([1, 1, 1])) != checksum(rows, np.array([1, 1, 2]))
    assert checksum(rows, np.array([1, -1, 0])) != checksum(rows, np.array([-1, 1, 0]))


def test_stream_keeps_order_and_cuts_at_its_mark(tmp_path: Path) -> None:
    tables = {"a": pa.table({"x": [1, 2, 3, 4]}), "b": pa.table({"y": [7, 8]})}
    stream = of_changes(streams.count_window(tables, 2))
    loaded = Stream.load(stream.save(tmp_path / "stream"))
    assert loaded.names == stream.names
    assert loaded.mark == stream.mark
    for cut in (loaded.batches(3), loaded.runs(3)):
        seen: dict[str, list[pa.Table]] = {"a": [], "b": []}
        ends = []
        for end, changes in cut:
            ends.append(end)
            for name, rows in changes.items():
                seen[name].append(rows)
        assert stream.mark in ends
        assert ends[-1] == len(stream)
        for name, table in zip(stream.names, stream.tables, strict=True):
            assert pa.concat_tables(seen[name]).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_crown_and_duckdb_agree_on_every_workload(workload: str, data: Data) -> None:
    if workload == "three_hop_tables":
        edges = data.edges()
        changes = streams.enclosing(edges.slice(0, 20), edges.slice(20, 5), window=5, steps=3)
        stream = of_changes(changes).save(Path(data.cache) / "enclosing").resolve()
    else:
        stream = data.fifo(workload)
    from benchmarks.engines import crown, duckdb

    jobs = [Job(name, workload, str(stream), batch=400) for name in ("crown", "duckdb")]
    ours, theirs = crown.run(jobs[0]), duckdb.run(jobs[1])
    assert ours.status == theirs.status == "ok"
    assert ours.checksum == theirs.checksum is not None


def test_old_plan_agrees_with_crown(data: Data) -> None:
    from benchmarks.engines import crown, pairwise

    for workload in pairwise.PLANS:
        job = Job("crown", workload, str(data.fifo(workload)), batch=400, filter=10)
        assert crown.run(job).checksum == pairwise.run(job).checksum is not None, workload


def test_runner_reports_failures_and_limits_in_words(data: Data) -> None:
    stream = str(data.fifo("three_hop"))
    missing = runner.run(Job("no_such_engine", "three_hop", stream))
    assert missing.status.startswith("failed: ")
    assert "no_such_engine" in missing.status
    hungry = runner.run(Job("crown", "three_hop", stream, memory=1 << 20))
    assert hungry.status.startswith("over ")
    assert hungry.seconds is None


def test_disagreement_fails_the_run() -> None:
    row = {"workload": "star", "engine": "crown", "checksum": 1}
    experiments.compare([row, {**row, "engine": "duckdb"}, {**row, "engine": "flink", "checksum": None}])
    with pytest.raises(experiments.Mismatch, match="duckdb and crown"):
        experiments.compare([row, {**row, "engine": "duckdb", "checksum": 2}])


def test_experiment_is_stored_and_shown(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = experiments.Context(data, command="crown bench run memory", progress=lambda step: None)
    result = experiments.experiment("memory").run(context)
    assert all(row["status"] == "ok" for row in result.rows), result.rows
    monkeypatch.chdir(tmp_path)
    path = result.save()
    stored = json.loads(path.read_text())
    assert stored["command"] == "crown bench run memory"
    assert stored["machine"]["cores"]
    assert store.load("memory") == result
    page = report.write().read_text()
    assert "crown bench run memory" in page
    assert "three_hop" in page
    assert (tmp_path / "docs/images/bench-memory.svg").exists()
