"""Streams of a chosen hardness: 3-Hop over three tables, where the middle encloses many short lives around it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.experiments import Request, compare, judge, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result
from benchmarks.stream import Stream, of_changes
from crown.workload import profile, streams

TITLE = "Enclosureness: cost of one update against the lambda of the stream"
COLUMNS = {"microseconds": "µs per update", "counter_changes": "counter changes per update"}
OUTER, INNER, STEPS = 800, 10, 20
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
PEERS = ("differential", "dbsp")


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    outer, inner = core(request.data.edges())
    for share in SHARES:
        window = max(1, round(share * len(outer)))
        changes = streams.enclosing(outer, inner, window=window, steps=STEPS)
        stream = request.data.saved(partial(_stream, changes), "enclosing", OUTER, INNER, STEPS, share)
        measured = profile(changes)
        # One delta for each update: in a batch the short lives would cancel before they cost
        # anything.
        for engine in ("crown", "pairwise", *request.asked(PEERS)):
            outcome = request.run(engine, "three_hop_tables", stream, batch=0)
            answer = judge.answer(request, outcome, engine, engine, "three_hop_tables", stream, batch=0)
            hardness = round(measured.enclosureness, 2)
            row = row_of(outcome, engine, "three_hop_tables", parameter=hardness, answer=answer)
            if outcome.seconds and outcome.updates:
                row["microseconds"] = outcome.seconds / outcome.updates * 1e6
            rows.append(row | {"counter_changes": outcome.details.get("counter_changes_per_update")})
    compare(rows)
    return Result("enclosureness", request.command, request.data.describe(), request.limits, rows)


def _stream(changes: streams.Stream) -> Stream:
    """Without the last deletions, so that the answer at the end is not empty."""
    whole = of_changes(changes)
    return whole.head(len(whole) - 2 * INNER - 2)


def core(edges: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Edges among the best connected nodes, where hops meet: those of the middle, and those of both ends.

    The edges of the ends have their reverse in the middle, where it comes last: so there is an answer at the end.
    """
    source, target = edges["src"].to_numpy(), edges["dst"].to_numpy()
    nodes, ends, counts = np.unique(np.r_[source, target], return_inverse=True, return_counts=True)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(nodes))
    # An edge is inside the best k nodes when the worse of its ends is.
    worse = np.maximum(rank[ends[: len(source)]], rank[ends[len(source) :]])
    best = np.argsort(worse, kind="stable")[: OUTER + INNER]
    pairs = set(zip(source[best].tolist(), target[best].tolist(), strict=True))
    inner = [edge for edge in best if source[edge] < target[edge] and (target[edge], source[edge]) in pairs][:INNER]
    turned = {(target[edge], source[edge]) for edge in inner}
    outer = sorted(
        (edge for edge in best if edge not in inner), key=lambda edge: (source[edge], target[edge]) in turned
    )
    return edges.take(pa.array(outer)), edges.take(pa.array(inner))


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="microseconds", x="lambda of the stream", y="microseconds per update")
