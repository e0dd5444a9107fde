"""Streams of a chosen hardness: 3-Hop over three tables, where the middle encloses many short lives around it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.experiments import Context, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.store import Result
from benchmarks.stream import Stream, of_changes
from crown.workload import profile, streams

TITLE = "Enclosureness: cost of one update against the lambda of the stream"
COLUMNS = {"microseconds": "µs per update"}
OUTER, INNER, STEPS = 400, 20, 20
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
PEERS = ("differential", "dbsp")


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    edges = dense_part(context.data.edges(), OUTER + INNER)
    for share in SHARES:
        changes = streams.enclosing(
            edges.slice(INNER, OUTER), edges.slice(0, INNER), window=max(1, round(share * OUTER)), steps=STEPS
        )
        stream = context.data.saved(partial(_stream, changes), "enclosing", OUTER, INNER, STEPS, share)
        measured = profile(changes)
        # One delta for each update: in a batch the short lives would cancel before they cost anything.
        for engine in ("crown", "pairwise", *context.asked(PEERS)):
            outcome = context.run(engine, "three_hop_tables", stream, batch=0)
            cost = outcome.seconds / outcome.updates * 1e6 if outcome.seconds and outcome.updates else None
            rows.append(
                row_of(outcome, engine, "three_hop_tables", parameter=measured.enclosureness, microseconds=cost)
            )
    compare(rows)
    return Result("enclosureness", context.command, context.data.describe(), context.limits, rows)


def _stream(changes: streams.Stream) -> Stream:
    """Without the last deletions, so that the answer at the end is not empty."""
    whole = of_changes(changes)
    return whole.head(len(whole) - 2 * INNER - 2)


def dense_part(edges: pa.Table, wanted: int) -> pa.Table:
    """The first `wanted` edges among the best connected nodes: where hops meet, so that there is an answer."""
    source, target = edges["src"].to_numpy(), edges["dst"].to_numpy()
    nodes, ends, counts = np.unique(np.r_[source, target], return_inverse=True, return_counts=True)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(nodes))
    # An edge is inside the best k nodes when the worse of its ends is.
    worse = np.maximum(rank[ends[: len(source)]], rank[ends[len(source) :]])
    chosen = np.sort(np.argsort(worse, kind="stable")[:wanted])
    return edges.take(pa.array(chosen))


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="microseconds", x="lambda of the stream", y="microseconds per update")
