"""Answers on the first part of the stream, for engines whose timing runs drop their output or are stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments import Mismatch, Request
from benchmarks.job import Outcome
from benchmarks.stream import Stream, head

BLIND = ("flink", "pathway", "spark_join", "crown_spark")
# Engines that do not end the first of these in time are compared on the next.
UPDATES = (5_000, 1_500, 150)
STATIC = ("person", "tag")
# Star without pre-aggregation pays the fourth power of a node's edges: its part ends before this
# many joined rows.
STAR_ROWS = 3_000_000
SECONDS = 60.0
# Who is known to be wrong, so that the table says it and the run goes on: Flink 2.3's MultiJoin
# gives rows that are not in the answer on several self-joins (4-Hop project, 2-Comb, Dumbbell
# project) and lacks rows on others (SNB Q2, Q3).
KNOWN_WRONG = ("flink, MultiJoin",)


def answer(
    request: Request, outcome: Outcome, name: str, engine: str, workload: str, stream: Path, **options: Any
) -> str | None:
    """Of a run that a limit stopped, on half of what it did. None: it came far enough to tell the whole answer."""
    if engine == "crown" or outcome.checksum is not None or not outcome.stopped:
        return None
    # A run of samples tells how many it took, not how far it came.
    half = 0 if options.get("options", {}).get("samples") else outcome.updates // 2
    beginnings = (half, *(updates for updates in UPDATES if updates < half)) if half else UPDATES[1:]
    return agreement(request, name, engine, workload, stream, beginnings, **options)


def agreement(
    request: Request,
    name: str,
    engine: str,
    workload: str,
    stream: Path,
    beginnings: Sequence[int] = UPDATES,
    **options: Any,
) -> str:
    """In words: the same, not compared and why, or wrong where that is known. Any other difference fails the run."""
    options["options"] = {**options.get("options", {}), "collect": True, "samples": None}
    for updates in beginnings:
        size = part(Stream.load(stream), workload, updates)
        beginning = head(stream, size)
        theirs = request.run(engine, workload, beginning, label=f"{name}, to compare,", seconds=SECONDS, **options)
        if theirs.checksum is not None or not theirs.stopped:
            break
    if theirs.checksum is None:
        return f"not compared: {theirs.status}"
    alike = {option: options[option] for option in ("filter", "batch") if option in options}
    ours = request.run("crown", workload, beginning, label="crown, to compare,", seconds=SECONDS, **alike)
    if ours.checksum is None:
        return f"not compared: crown {ours.status}"
    same, empty = theirs.checksum == ours.checksum, not ours.checksum
    if options.get("batch") == 0 and theirs.inserted is not None:
        # Each update has its own delta, so the deltas are compared too. (Within a batch, an engine
        # may also report rows that come and go.)
        same = same and (theirs.inserted, theirs.deleted) == (ours.inserted, ours.deleted)
        empty = not ours.inserted
    if same:
        return f"same{', empty,' if empty else ''} on the first {size:,} updates"
    difference = f"wrong on the first {size:,} updates: {_rows(theirs)}, not {_rows(ours)}"
    if name not in KNOWN_WRONG:
        raise Mismatch(f"{name} on {workload}: {difference}")
    return difference


def _rows(outcome: Outcome) -> str:
    inserted, deleted = outcome.inserted or 0, outcome.deleted or 0
    return f"{inserted - deleted:,} rows ({inserted:,} came, {deleted:,} went)"


def part(stream: Stream, workload: str, updates: int) -> int:
    if workload != "star":
        # Tables that never change come first: before the others there is no answer.
        static = sum(len(table) for name, table in zip(stream.names, stream.tables, strict=True) if name in STATIC)
        return min(static + updates, stream.mark)
    source = stream.tables[0]["src"].to_numpy()[:updates]
    edges: dict[int, int] = {}
    rows = 0
    for position, node in enumerate(source.tolist()):
        count = edges[node] = edges.get(node, 0) + 1
        rows += count**4 - (count - 1) ** 4
        if rows > STAR_ROWS:
            return max(1, position)
    return int(np.minimum(len(source), stream.mark))
