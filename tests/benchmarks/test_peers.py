"""Each peer that is installed gives Crown's answers, to every query that it has a program for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import experiments
from benchmarks.data import Data
from benchmarks.engines import flink
from benchmarks.experiments import judge
from benchmarks.many_views import STREAM

pytestmark = pytest.mark.peer

LARGE = 50_000  # rows of a delta
REWRITTEN = ("four_hop_project", "star", "dumbbell_project", "snb_q4")
QUERIES = (
    *("three_hop", "four_hop", "two_comb", "dumbbell", "snb_q1", "snb_q2", "snb_q3"),
    *(name + variant for name in REWRITTEN for variant in ("", "_rewritten")),
)


@pytest.mark.parametrize("engine", ["differential", "dbsp", "flink", "pathway", "spark_join"])
def test_peers_agree_with_crown(engine: str, tmp_path: Path) -> None:
    data = Data(scale=0.002, cache=str(tmp_path))
    request = experiments.Request(data, seconds=120, progress=lambda step: None)
    stream = data.insertions("three_hop", 300)
    assert judge.agreement(request, engine, engine, "three_hop", stream).startswith("same on")


@pytest.mark.parametrize("engine", ["differential", "dbsp", "pathway"])
@pytest.mark.parametrize("query", QUERIES)
def test_peers_with_plans_of_their_own_agree_on_every_query(engine: str, query: str, tmp_path: Path) -> None:
    workload = query.removesuffix("_rewritten")
    data = Data(scale=0.02, cache=str(tmp_path))
    request = experiments.Request(data, seconds=120, progress=lambda step: None)
    options = {"variant": query.removeprefix(workload)}
    answer = judge.agreement(request, engine, engine, workload, data.fifo(workload), options=options)
    # Two empty answers would say nothing.
    assert answer.startswith("same on"), answer


@pytest.mark.parametrize("workload", flink.REWRITTEN)
def test_what_flinks_users_would_write_gives_the_same_answer(workload: str, tmp_path: Path) -> None:
    data = Data(scale=0.02, cache=str(tmp_path))
    request = experiments.Request(data, seconds=120, progress=lambda step: None)
    options = {"variant": "_rewritten"}
    answer = judge.agreement(request, "flink", "flink", workload, data.fifo(workload), options=options)
    assert answer.startswith("same on"), answer


@pytest.mark.parametrize("engine", ["differential", "dbsp"])
def test_large_deltas_are_counted_whole(engine: str, tmp_path: Path) -> None:
    """DBSP gives a large delta out in parts."""
    data = Data(scale=0.02, cache=str(tmp_path))
    request = experiments.Request(data, seconds=120, progress=lambda step: None)
    stream = data.insertions("four_hop", judge.UPDATES[0])
    delta = request.run("crown", "four_hop", stream, batch=judge.UPDATES[0])
    assert delta.inserted is not None
    assert delta.inserted > LARGE
    answer = judge.agreement(request, engine, engine, "four_hop", stream, batch=judge.UPDATES[0])
    assert answer.startswith("same on"), answer


@pytest.mark.parametrize("number", [4, 12])
@pytest.mark.parametrize("engine", ["differential", "dbsp"])
def test_many_views_over_one_input_agree_with_crown(engine: str, number: int, tmp_path: Path) -> None:
    data = Data(scale=0.02, cache=str(tmp_path))
    request = experiments.Request(data, seconds=120, progress=lambda step: None)
    stream = data.fifo(STREAM)
    ours = request.run("crown_views", STREAM, stream, options={"views": number})
    theirs = request.run(engine, STREAM, stream, options={"query": f"snb_views_{number}"})
    assert theirs.status == "ok", theirs.status
    # Two empty answers would say nothing.
    assert ours.checksum == theirs.checksum not in (0, None)
