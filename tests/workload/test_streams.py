"""Streams: each kind keeps its promise, and replaying it always gives a valid state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from crown.workload import power_law_graph, profile, streams

EDGES = power_law_graph(60, 400, seed=5)
MARKS = pa.table({"node": list(range(60)), "created": [10 * i for i in range(60)]})
EVENTS = pa.table({"node": [i % 60 for i in range(200)], "created": [3 * i for i in range(200)]})
TAGS = pa.table({"id": [1, 2, 3]})

KINDS: dict[str, tuple[str, Callable[[], streams.Stream]]] = {
    "insertion only": ("insert_only", lambda: streams.insertion_only({"graph": EDGES, "marks": MARKS})),
    "count window": ("fifo", lambda: streams.count_window({"graph": EDGES}, 50)),
    "count window, not drained": ("fifo", lambda: streams.count_window({"graph": EDGES}, 50, drain=False)),
    "count window larger than all": ("fifo", lambda: streams.count_window({"graph": EDGES}, 1000)),
    "time window": (
        "fifo",
        lambda: streams.time_window({"marks": MARKS, "events": EVENTS}, 70, time="created"),
    ),
    "arbitrary": ("arbitrary", lambda: streams.arbitrary({"graph": EDGES, "marks": MARKS}, seed=3)),
    "all out, first in first": ("fifo", lambda: streams.delete_all({"graph": EDGES}, order="fifo")),
    "all out, last in first": ("arbitrary", lambda: streams.delete_all({"graph": EDGES}, order="lifo")),
    "all out, in random order": ("arbitrary", lambda: streams.delete_all({"graph": EDGES}, order="random")),
}


def replay(stream: streams.Stream, updates: int | None) -> dict[str, Counter[tuple[object, ...]]]:
    """The state after all changes; fails on a deletion of what is not there."""
    state: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in stream}
    moment = 0
    for batch in streams.batches(stream, updates):
        for name, changes in batch:
            for row in changes.to_pylist():
                change, sequence = row.pop("_change_type"), row.pop("_sequence")
                if updates is None:
                    assert sequence == moment
                moment += 1
                key = tuple(row.values())
                state[name][key] += 1 if change == "insert" else -1
                assert state[name][key] >= 0, (name, row)
    assert moment == sum(changes.num_rows for changes in stream.values())
    return {name: +rows for name, rows in state.items()}


@pytest.mark.parametrize("name", KINDS)
def test_kind_is_as_promised(name: str) -> None:
    kind, make = KINDS[name]
    stream = make()
    assert profile(stream).kind == kind
    state = replay(stream, None)
    if "drained" not in name and ("window" in name or "out" in name):
        assert not any(state.values())


def test_insertion_only_brings_every_row_once() -> None:
    state = replay(streams.insertion_only({"graph": EDGES}), 64)
    assert state["graph"] == Counter(zip(EDGES["src"].to_pylist(), EDGES["dst"].to_pylist(), strict=True))


def test_count_window_holds_its_size() -> None:
    live = largest = 0
    for change in streams.count_window({"graph": EDGES}, 50)["graph"]["_change_type"].to_pylist():
        live += 1 if change == "insert" else -1
        largest = max(largest, live)
    assert largest == 50


def test_time_window_leaves_static_tables_alone() -> None:
    stream = streams.time_window({"events": EVENTS, "tag": TAGS}, 30, time="created", static=("tag",))
    assert stream["tag"]["_change_type"].to_pylist() == ["insert"] * 3
    assert stream["tag"]["_sequence"].to_pylist() == [0, 1, 2]
    assert profile(stream).profiles() == {"events": "fifo", "tag": "insert_only"}


def test_batches_cover_the_stream_in_order() -> None:
    stream = streams.arbitrary({"graph": EDGES, "marks": MARKS}, seed=4)
    assert replay(stream, 37) == replay(stream, None)
    sizes = [sum(changes.num_rows for _, changes in batch) for batch in streams.batches(stream, 37)]
    assert set(sizes[:-1]) == {37}


@pytest.mark.parametrize("target", [2, 5, 20])
def test_enclosing_has_the_chosen_enclosureness(target: int) -> None:
    inner = EDGES.slice(0, 1)
    outer = EDGES.slice(0, 400)
    window = streams.window_for(target, inner_rows=1, steps=4)
    stream = streams.enclosing(outer, inner, window=window, steps=4)
    replay(stream, None)
    assert profile(stream).enclosureness == pytest.approx(target, rel=0.2)


def test_the_same_seed_gives_the_same_stream() -> None:
    first, second, other = (streams.arbitrary({"graph": EDGES}, seed=seed)["graph"] for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)
