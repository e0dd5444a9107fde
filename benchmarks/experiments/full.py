"""Full enumeration: the whole result every tenth of the stream, by a view with linked deltas off and by recomputing."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.bars import draw
from benchmarks.store import Result
from benchmarks.stream import Stream

TITLE = "Full enumeration every tenth of the stream"
COLUMNS = {"pull_seconds": "seconds of results"}
WORKLOADS = ("three_hop", "four_hop_project", "star", "snb_q1", "snb_q4")
PULLS = 10


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in request.workloads or WORKLOADS:
        stream = request.data.fifo(workload)
        batch = max(1, len(Stream.load(stream)) // PULLS)
        outcome = request.run("crown_pulled", workload, stream, batch=batch)
        rows.append(row_of(outcome, "crown, linked deltas off", workload, **outcome.details))
        outcome = request.run("duckdb", workload, stream, batch=batch)
        answer = judge.answer(request, outcome, "duckdb", "duckdb", workload, stream)
        seconds = outcome.details.get("query_seconds")
        rows.append(row_of(outcome, "duckdb", workload, pull_seconds=seconds, answer=answer))
    compare(rows)
    return Result("full", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", y="updates per second, ten results included")
