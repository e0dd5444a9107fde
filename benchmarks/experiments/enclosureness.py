"""Streams of a chosen hardness: 3-Hop over three tables, where the middle encloses many short lives around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result
from benchmarks.stream import of_changes
from crown.workload import profile, streams

TITLE = "Enclosureness: cost of one update against the lambda of the stream"
OUTER, INNER, STEPS = 400, 10, 20
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    edges = context.data.edges()
    for share in SHARES:
        changes = streams.enclosing(
            edges.slice(0, OUTER), edges.slice(OUTER, INNER), window=max(1, round(share * OUTER)), steps=STEPS
        )
        stream = of_changes(changes).save(Path(context.data.cache) / f"enclosing-{share}").resolve()
        measured = profile(changes)
        # One delta for each update: in a batch the short lives would cancel before they cost anything.
        for engine in ("crown", *(peer for peer in context.peers if peer in ("dbsp", "differential"))):
            outcome = context.run(engine, "three_hop_tables", stream, batch=0)
            cost = outcome.seconds / outcome.updates * 1e6 if outcome.seconds and outcome.updates else None
            rows.append(
                row_of(outcome, engine, "three_hop_tables", parameter=measured.enclosureness, microseconds=cost)
            )
    compare(rows)
    return Result("enclosureness", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="microseconds", x="lambda of the stream", y="microseconds per update")
