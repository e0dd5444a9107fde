"""3-Hop with a filter that keeps from 0.1% to all of the last hop's edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result

TITLE = "Selectivity: share of the last hop's edges that pass the filter"
SHARES = (0.001, 0.01, 0.1, 0.3, 1.0)
ENGINES = ("crown", "pairwise", "duckdb")


def run(request: Request) -> Result:
    stream = request.data.fifo("three_hop")
    target = np.sort(request.data.edges()["dst"].to_numpy())
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        threshold = -1 if share == 1.0 else int(target[int((1 - share) * len(target))])
        for engine in (*ENGINES, *(peer for peer in request.peers if peer in ("dbsp", "differential"))):
            options = {"filter": max(0, threshold), "batch": 1000}
            outcome = request.run(engine, "three_hop", stream, **options)
            answer = judge.answer(request, outcome, engine, engine, "three_hop", stream, **options)
            rows.append(row_of(outcome, engine, "three_hop", parameter=share, answer=answer))
    compare(rows)
    return Result("selectivity", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", x="share of edges that pass", y="updates per second")
