"""The benchmark suite measures what it says: same stream for all, answers compared, limits kept."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from benchmarks import experiments, report, runner, store
from benchmarks.checksum import checksum
from benchmarks.data import Data
from benchmarks.job import Job, Outcome
from benchmarks.many_views import SCHEMA, STREAM, queries
from benchmarks.stream import Stream, of_changes
from benchmarks.workloads import WORKLOADS
from crown.workload import streams

# So small a graph may have no dumbbell, and the short lives of the three tables are over at the
# end.
MAY_BE_EMPTY = ("dumbbell", "dumbbell_project", "three_hop_tables", "two_comb")


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


def test_lines_for_the_peers_keep_order_strings_and_nulls(tmp_path: Path) -> None:
    names = pa.table({"id": [7, 8], "name": ["Bo Berg", "Çelik"], "_change_type": ["insert", "insert"]})
    replies = pa.table({"id": [1, 2, 1], "reply_of": [None, 5, None], "_change_type": ["insert", "insert", "delete"]})
    stream = Stream(("names", "replies"), np.array([1, 0, 1, 1, 0], dtype=np.int8), (names, replies), 5)
    lines = stream.write_lines(tmp_path / "stream.tsv").read_text().splitlines()
    assert lines == ["+\t1\t1\t", "+\t0\t7\tBo Berg", "+\t1\t2\t5", "-\t1\t1\t", "+\t0\t8\tÇelik"]


def stream_of(workload: str, data: Data) -> tuple[str, int]:
    """Where a stream for the workload is, and the threshold of its filter."""
    # A social network needs some people before anything meets.
    data = replace(data, scale=0.02) if workload.startswith("snb") else data
    if workload != "three_hop_tables":
        return str(data.fifo(workload)), data.threshold(workload)
    edges = data.edges()
    changes = streams.enclosing(edges.slice(0, 20), edges.slice(20, 5), window=5, steps=3)
    return str(of_changes(changes).save(Path(data.cache) / "enclosing").resolve()), 0


@pytest.mark.parametrize("workload", WORKLOADS)
def test_crown_and_duckdb_agree_on_every_workload(workload: str, data: Data) -> None:
    from benchmarks.engines import crown, duckdb

    stream, threshold = stream_of(workload, data)
    job = Job("crown", workload, stream, batch=400, filter=threshold)
    ours, theirs = crown.run(job), duckdb.run(job)
    assert ours.status == theirs.status == "ok"
    assert ours.checksum == theirs.checksum is not None
    # Two empty answers would say nothing.
    assert ours.checksum != 0 or workload in MAY_BE_EMPTY


def test_old_plan_agrees_with_crown(data: Data) -> None:
    from benchmarks.engines import crown, pairwise

    for workload in pairwise.PLANS:
        stream, threshold = stream_of(workload, data)
        job = Job("crown", workload, stream, batch=400, filter=threshold)
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
    request = experiments.Request(data, command="crown bench run memory", progress=lambda step: None)
    result = experiments.experiment("memory").run(request)
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


def test_an_experiment_may_be_run_in_parts() -> None:
    def of(command: str, ratios: dict[str, float], *workloads: str) -> store.Result:
        rows = [{"workload": workload, "by": command} for workload in workloads]
        settings = {"workloads": list(workloads)}
        result = store.Result("runtime", command, {"graph": "g"}, {"seconds": 1}, rows, ratios, settings)
        return replace(result, elapsed_seconds=2.0)

    stored = replace(of("a", {"star: duckdb": 1.0, "comb: duckdb": 2.0}, "star", "comb"), machine=store.machine())
    joined = store.joined(stored, of("b", {"star: duckdb": 3.0}, "star", "hop"))
    assert [(row["workload"], row["by"]) for row in joined.rows] == [("star", "b"), ("comb", "a"), ("hop", "b")]
    assert joined.ratios == {"star: duckdb": 3.0, "comb: duckdb": 2.0}
    assert (joined.command, joined.elapsed_seconds) == ("a; b", 4.0)
    assert joined.settings == {"workloads": ["star", "comb", "hop"]}
    with pytest.raises(ValueError, match="other limits"):
        store.joined(replace(stored, limits={"seconds": 2}), of("b", {}, "star"))


def test_a_ratio_that_fell_by_more_than_the_tolerance_is_a_regression() -> None:
    before = {"star: duckdb": 10.0, "three_hop: duckdb": 10.0, "three_hop: flink": 10.0}
    now = {"star: duckdb": 7.9, "three_hop: duckdb": 8.1, "two_comb: duckdb": 1.0}
    assert store.regressions(before, now, 0.2) == {"star: duckdb": (10.0, 7.9)}


@pytest.mark.parametrize(("second", "exit_code"), [(9.0, 0), (7.0, 1)])
def test_what_seems_worse_is_measured_again(second: float, exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store.Result("runtime", "", Data().describe(), {"seconds": 1, "memory_gib": 1}, [])
    stored.ratios = {"star: duckdb": 10.0, "three_hop: duckdb": 10.0}
    stored.settings = {"scale": 0.2, "workloads": ["star", "three_hop"]}
    asked: list[tuple[str, ...]] = []

    def measure(
        name: str, peers: object, graph: object, social: object, scale: float, *rest: Any
    ) -> list[store.Result]:
        asked.append(rest[0])
        ratios = {f"{workload}: duckdb": 10.0 for workload in rest[0]}
        return [replace(stored, ratios=ratios | {"star: duckdb": 7.0 if len(asked) == 1 else second})]

    monkeypatch.setattr(store, "load", lambda name: stored)
    command = importlib.import_module("crown.cli.bench")
    monkeypatch.setattr(command, "measure", measure)
    ran = CliRunner().invoke(command.bench, ["check"])
    assert ran.exit_code == exit_code, ran.output
    assert asked == [("star", "three_hop"), ("star",)]
    assert f"{exit_code} of 2 ratios" in ran.output


def test_samples_cover_the_stream_and_lie_where_they_should(data: Data) -> None:
    stream = Stream.load(data.fifo("three_hop"))
    window = len(stream) - stream.mark
    parts = list(stream.samples(20, start=window, places=4, repeat=2))
    assert [end for end, _, _ in parts][-1] == stream.mark
    assert sum(len(changes["G"]) for _, changes, _ in parts) == stream.mark
    sampled = [(end, len(changes["G"])) for end, changes, timed in parts if timed]
    assert [size for _, size in sampled] == [20] * 8
    assert sampled[0][0] == window + 20


def test_crossing_is_where_the_costs_meet() -> None:
    from benchmarks.experiments.crossing import crossing

    costs = {"crown": {100: 1.0, 10_000: 100.0}, "duckdb": {100: 10.0, 10_000: 10.0}}
    rows = [
        {"engine": engine, "parameter": interval, "seconds_per_refresh": cost}
        for engine, by_interval in costs.items()
        for interval, cost in by_interval.items()
    ]
    assert crossing(rows, "duckdb") == pytest.approx(1_000)
    assert crossing([row for row in rows if row["parameter"] == 100], "duckdb") == 100


def test_rows_of_the_chain_are_those_that_it_holds(data: Data) -> None:
    from benchmarks.engines import pairwise
    from benchmarks.experiments.dumbbell import chain_rows

    edges = data.edges().slice(0, 400)
    stream = of_changes(streams.insertion_only({"G": edges})).save(Path(data.cache) / "insertions")
    held = pairwise.run(Job("pairwise", "dumbbell", str(stream), batch=100)).details["state_rows"]
    # Beside the views the chain keeps six of the seven atoms, and the first view is the first atom.
    assert chain_rows(edges) == held - 7 * len(edges)


def test_a_stopped_run_tells_how_far_it_came(data: Data) -> None:
    stopped = runner.run(Job("duckdb", "three_hop", str(data.fifo("three_hop")), batch=1, seconds=0.5))
    assert stopped.status == "not done in 0 s"
    assert 0 < stopped.updates < 2000


def test_latency_is_told_update_by_update(data: Data) -> None:
    request = experiments.Request(data, seconds=1.0, workloads=("three_hop",), progress=lambda step: None)
    result = experiments.experiment("latency").run(request)
    assert [row["engine"] for row in result.rows] == ["crown", "duckdb"]
    for row in result.rows:
        assert 0 < row["p50_us"] <= row["p90_us"] <= row["p99_us"] <= row["max_us"]
        assert row["seconds"] == pytest.approx(row["updates"] / row["updates_per_second"])
    assert result.ratios["three_hop: duckdb, p50"] > 0


def test_hard_streams_have_an_answer(data: Data) -> None:
    from benchmarks.experiments.enclosureness import INNER, core

    outer, inner = (set(map(tuple, zip(*t.to_pydict().values(), strict=True))) for t in core(data.edges()))
    assert len(inner) == INNER
    assert not inner & outer
    assert {(target, source) for source, target in inner} <= outer


def test_an_engine_that_is_stopped_is_asked_for_a_beginning(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.experiments import runtime

    def run(job: Job, *, python: str) -> Outcome:
        updates = len(Stream.load(job.folder))
        return Outcome("not done in 10 s") if updates > 50 else Outcome(seconds=0.5, updates=updates)

    monkeypatch.setattr(runner, "run", run)
    request = experiments.Request(data, progress=lambda step: None)
    outcome = runtime._furthest(request, "flink", "flink", "three_hop", data.fifo("three_hop"))
    assert outcome.updates == len(Stream.load(data.fifo("three_hop"))) // 100 <= 50
    assert outcome.status == f"not done in 10 s; in 0.5 s the first {outcome.updates} updates"


@pytest.mark.parametrize("wrong", [False, True])
def test_a_stopped_engine_is_judged_on_a_beginning_that_it_ends(
    wrong: bool, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.experiments import judge

    asked: list[tuple[str, int, int | None]] = []

    def run(job: Job, *, python: str) -> Outcome:
        updates = len(Stream.load(job.folder))
        asked.append((job.engine, updates, job.filter))
        if job.engine == "crown":
            return Outcome(checksum=7, inserted=1, deleted=0)
        return Outcome("not done in 60 s") if updates > 60 else Outcome(checksum=8 if wrong else 7, inserted=1)

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(judge, "UPDATES", (80, 40, 20))
    request = experiments.Request(data, progress=lambda step: None)
    stopped = Outcome("not done in 10 s", seconds=10.0, updates=200)
    arguments = (request, stopped, "duckdb", "duckdb", "three_hop", data.fifo("three_hop"))
    if wrong:
        with pytest.raises(experiments.Mismatch, match="wrong on the first 40 updates"):
            judge.answer(*arguments, filter=5)
    else:
        assert judge.answer(*arguments, filter=5) == "same on the first 40 updates"
    assert asked == [("duckdb", 100, 5), ("duckdb", 80, 5), ("duckdb", 40, 5), ("crown", 40, 5)]


def test_an_engine_that_ended_is_judged_by_its_whole_answer(data: Data) -> None:
    from benchmarks.experiments import judge

    request = experiments.Request(data, progress=lambda step: None)
    ended = Outcome(checksum=3, seconds=1.0, updates=10)
    assert judge.answer(request, ended, "duckdb", "duckdb", "three_hop", data.fifo("three_hop")) is None


def test_with_one_delta_for_each_update_the_deltas_are_compared_too(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.experiments import judge

    def run(job: Job, *, python: str) -> Outcome:
        assert job.batch == 0
        return Outcome(checksum=0, inserted=2 if job.engine == "dbsp" else 3, deleted=3)

    monkeypatch.setattr(runner, "run", run)
    request = experiments.Request(data, progress=lambda step: None)
    stream = data.fifo("three_hop")
    assert judge.agreement(request, "duckdb", "duckdb", "three_hop", stream, batch=0).startswith("same on")
    with pytest.raises(experiments.Mismatch, match="2 came, 3 went"):
        judge.agreement(request, "dbsp", "dbsp", "three_hop", stream, batch=0)


def test_many_views_together_apart_and_in_duckdb_agree(data: Data) -> None:
    from benchmarks.engines import crown_views

    stream = str(replace(data, scale=0.02).fifo(STREAM))
    for number in (1, 12):
        job = Job("crown_views", STREAM, stream, options={"views": number})
        together, apart = crown_views.run(job), crown_views.run(replace(job, options={"views": number, "apart": True}))
        joined = crown_views.run(replace(job, options={"views": number, "joins": True}))
        assert together.checksum == apart.checksum == joined.checksum not in (0, None)
        assert (together.inserted, together.deleted) == (apart.inserted, apart.deleted)
        assert (joined.inserted, joined.deleted) == (apart.inserted, apart.deleted)
        # (The capacity of a hash table depends on its seed.)
        assert 0 < together.details["state_bytes"] <= 1.01 * apart.details["state_bytes"]


def test_each_of_many_views_has_an_answer_and_it_is_duckdbs(data: Data) -> None:
    import duckdb

    import crown

    stream = Stream.load(replace(data, scale=0.02).fifo(STREAM))
    connection = duckdb.connect()
    rows = {name: stream.head(stream.mark).between(0, stream.mark)[name] for name in stream.names}
    for name, table in rows.items():
        kept = table.filter(pc.not_equal(table["_change_type"], "delete")).drop_columns(["_change_type"])
        gone = table.filter(pc.equal(table["_change_type"], "delete")).drop_columns(["_change_type"])
        connection.register("kept", kept)
        connection.register("gone", gone)
        connection.sql(f"CREATE TABLE {name} AS FROM kept EXCEPT ALL FROM gone")
    for sql in queries(8):
        view = crown.View(sql, SCHEMA)
        view.apply(rows)
        theirs = connection.sql(sql).fetchall()
        assert sorted(view) == sorted(theirs)
        assert theirs, sql
