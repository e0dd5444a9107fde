"""Dumbbell: Crown's bags and tree against the old plan, a chain of pairwise change-propagating joins.

The chain keeps every triangle with every path of three edges from it, which no machine holds for long. So both are
compared at equal progress: the chain runs until a limit stops it, after N updates, and Crown's time and state are taken
at exactly the same N. What the chain would hold with a full window is counted without running it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import stream as streams_on_disk
from benchmarks.experiments import Request, compare, row_of
from benchmarks.experiments.bars import draw
from benchmarks.job import Outcome
from benchmarks.store import Result

TITLE = "Dumbbell against a chain of pairwise joins on the same kernel tables, at equal progress"
COLUMNS = {"state_mib": "state MiB"}
WINDOW = 20_000
SLIDING = 4  # a window this many times smaller is one that the chain can hold, so that it slides
BATCH = 100
PEERS = ("differential", "dbsp")


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    edges = request.data.edges()
    window = min(WINDOW, len(edges) // 5)
    for size in (window // SLIDING, window):
        stream = request.data.window("dumbbell", size)
        chain = request.run("pairwise", "dumbbell", stream, batch=BATCH)
        reached = chain.updates
        if not reached:
            raise RuntimeError(f"the chain of pairwise joins did nothing: {chain.status}")
        here = {"parameter": f"window {size:,}, first {reached:,} updates"}
        chain.checksum = chain.details["checksum"]
        rows.append(_row(chain, "pairwise", **here))
        beginning = streams_on_disk.head(stream, reached)
        own = request.run("crown", "dumbbell", beginning, batch=BATCH)
        rows.append(_row(own, "crown", **here))
        if own.seconds and chain.seconds:
            ratios[f"seconds, window {size}"] = chain.seconds / own.seconds
            ratios[f"state, window {size}"] = chain.details["state_bytes"] / own.details["state_bytes"]
        for peer in request.asked(PEERS):
            rows.append(_row(request.run(peer, "dumbbell", beginning, batch=BATCH), peer, **here))
    whole = {"parameter": f"window {window:,}, whole stream"}
    for engine in ("crown", *request.asked(PEERS)):
        rows.append(_row(request.run(engine, "dumbbell", stream, batch=BATCH), engine, **whole))
    project = request.run("crown", "dumbbell_project", stream, batch=BATCH)
    rows.append(_row(project, "crown", workload="dumbbell_project", **whole))
    compare(rows)
    facts = request.data.describe() | {
        "rows_of_the_chain_with_a_full_window": chain_rows(edges.slice(0, window)),
        "first_updates_that_fill_the_window": window,
    }
    return Result("dumbbell", request.command, facts, request.limits, rows, ratios)


def _row(outcome: Outcome, engine: str, workload: str = "dumbbell", **more: Any) -> dict[str, Any]:
    """State is that at the end of a part of the stream, and the largest along the whole, which ends empty."""
    held = outcome.details.get("peak_state_bytes" if "whole" in more["parameter"] else "state_bytes")
    return row_of(outcome, engine, workload, state_bytes=held, state_mib=held and held / 2**20, **more)


def chain_rows(edges: pa.Table) -> int:
    """How many rows the chain's views hold over these edges: V2 to V6, counted by multiplying out the paths."""
    nodes, ends = np.unique(np.r_[edges["src"].to_numpy(), edges["dst"].to_numpy()], return_inverse=True)
    source, target = ends[: len(edges)], ends[len(edges) :]
    paths = [np.ones(len(nodes), dtype=np.int64)]
    for _ in range(3):
        longer = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(longer, source, paths[-1][target])
        paths.append(longer)
    triangles = _triangles(source, target, len(nodes))
    two_paths = int(paths[2].sum())
    return two_paths + sum(int((triangles * length).sum()) for length in paths)


def _triangles(source: np.ndarray, target: np.ndarray, nodes: int) -> np.ndarray:
    """Directed triangles by their first node."""
    following: list[set[int]] = [set() for _ in range(nodes)]
    before: list[set[int]] = [set() for _ in range(nodes)]
    for start, end in zip(source.tolist(), target.tolist(), strict=True):
        following[start].add(end)
        before[end].add(start)
    return np.array([sum(len(following[x] & before[p]) for x in following[p]) for p in range(nodes)], dtype=np.int64)


def chart(result: Result, axes: Any) -> None:
    """Seconds of both engines where both stopped; the tables tell the rest."""
    rows = sorted((row for row in result.rows if "first" in row["parameter"]), key=lambda row: row["engine"] != "crown")
    rows.sort(key=lambda row: [other["parameter"] for other in result.rows].index(row["parameter"]))
    draw(replace(result, rows=rows), axes, value="seconds", y="seconds for the same updates", group="parameter")
