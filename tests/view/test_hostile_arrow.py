"""Arrow data that breaks the format: refused with one `CrownError`, and the view is as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crown
from tests.conftest import SEED

SCHEMA = "CREATE TABLE t (k BIGINT, s STRING); CREATE TABLE u (k BIGINT)"
FUZZ = Path(__file__).parents[1] / "support" / "arrow_fuzz.py"


def overwritten(made: pa.Array, buffer: int, dtype: str, position: int, value: int) -> pa.RecordBatch:
    """A batch with the array, of which one number in a buffer changes after it was made: pyarrow checks only once."""
    copies = [None if b is None else np.frombuffer(b, np.uint8).copy() for b in made.buffers()]
    buffers = [None if copy is None else pa.py_buffer(copy) for copy in copies]
    if pa.types.is_dictionary(made.type):
        broken = pa.DictionaryArray.from_buffers(made.type, len(made), buffers, made.dictionary)
    else:
        broken = pa.Array.from_buffers(made.type, len(made), buffers)
    batch = batch_of(broken)
    victim = copies[buffer]
    assert victim is not None
    victim.view(dtype)[position] = value
    return batch


def batch_of(strings: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(range(len(strings))), strings], names=["k", "s"])


TEXT = pa.array(["a", "bc", "é"])
LARGE = TEXT.cast(pa.large_string())
VIEWS = pa.array(["short", "a text of more than twelve bytes", "x"], pa.string_view())
WORDS = TEXT.dictionary_encode()
NULLS = pa.array(["a", None, "c"])

BROKEN: dict[str, Callable[[], pa.RecordBatch]] = {
    "offset beyond the next": lambda: overwritten(TEXT, 1, "i4", 1, 4),
    "negative offset": lambda: overwritten(TEXT, 1, "i4", 1, -1),
    "offset far away": lambda: overwritten(TEXT, 1, "i4", 1, 2**31 - 1),
    "last offset beyond the bytes": lambda: overwritten(TEXT, 1, "i4", 3, 2**20),
    "last offset negative": lambda: overwritten(TEXT, 1, "i4", 3, -1),
    "large offset": lambda: overwritten(LARGE, 1, "i8", 1, 2**60),
    "large last offset": lambda: overwritten(LARGE, 1, "i8", 3, 2**60),
    "invalid UTF-8": lambda: overwritten(TEXT, 2, "u1", 0, 0xFF),
    "a character cut in two": lambda: overwritten(TEXT, 1, "i4", 2, 4),
    "view into no buffer": lambda: overwritten(VIEWS, 1, "i4", 6, 7),
    "view beyond its buffer": lambda: overwritten(VIEWS, 1, "i4", 7, 2**30),
    "view of a negative length": lambda: overwritten(VIEWS, 1, "i4", 4, -1),
    "view of too great a length": lambda: overwritten(VIEWS, 1, "i4", 4, 2**30),
    "view of another prefix": lambda: overwritten(VIEWS, 1, "i4", 5, 0),
    "view with invalid UTF-8": lambda: overwritten(VIEWS, 1, "u1", 4, 0xFF),
    "index beyond the dictionary": lambda: overwritten(WORDS, 1, "i4", 0, 3),
    "negative index": lambda: overwritten(WORDS, 1, "i4", 0, -1),
    "index into an empty dictionary": lambda: batch_of(
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int8()), pa.array([], pa.string()), safe=False)
    ),
    "broken dictionary": lambda: batch_of(
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), overwritten(TEXT, 1, "i4", 1, 100)["s"])
    ),
    "fewer NULLs than counted": lambda: batch_of(pa.Array.from_buffers(pa.string(), 3, NULLS.buffers(), null_count=2)),
    "a list": lambda: batch_of(pa.array([["a"], [], None])),
    "a struct": lambda: batch_of(pa.array([{"a": 1}] * 3)),
    "run-end encoded": lambda: batch_of(pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array(["a"]))),
    "a list within lists": lambda: batch_of(pa.nulls(3, _nested(200))),
}


def _nested(depth: int) -> pa.DataType:
    return pa.list_(_nested(depth - 1)) if depth else pa.string()


class Producer:
    """Data of a library that has nothing but the C stream."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


# Without the sizes of buffers, nobody can tell that these leave them.
UNKNOWABLE = {"last offset beyond the bytes", "large last offset"}
DOORS: dict[str, Callable[[crown.View, pa.RecordBatch], Any]] = {
    "apply a table": lambda view, batch: view.apply({"t": pa.Table.from_batches([batch])}),
    "apply a batch": lambda view, batch: view.apply({"t": batch}),
    "apply a reader": lambda view, batch: view.apply({"t": pa.RecordBatchReader.from_batches(batch.schema, [batch])}),
    "apply by name": lambda view, batch: view.apply({"t": batch.rename_columns(["K", "S"])}),
    "insert": lambda view, batch: view.insert("t", batch),
    "delete": lambda view, batch: view.delete("t", batch),
    "stream": lambda view, batch: view.apply({"t": batch}, stream=True).read_all(),
    "one by one": lambda view, batch: view.apply({"t": batch}, per_update=True),
    "another library": lambda view, batch: view.apply({"t": Producer(pa.Table.from_batches([batch]))}),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("on_invalid", ["raise", "quarantine"])
@pytest.mark.parametrize("fault", BROKEN)
def test_broken_arrays_are_refused(fault: str, on_invalid: Any, threads: int) -> None:
    view = crown.View("SELECT t.k, t.s FROM t", SCHEMA, threads=threads, on_invalid=on_invalid)
    view.insert("t", [(0, "kept")])
    for door, offer in DOORS.items():
        if door == "another library" and fault in UNKNOWABLE:
            continue
        with pytest.raises(crown.InvalidChange, match="table 't'") as refusal:
            offer(view, BROKEN[fault]())
        assert "column 's'" in str(refusal.value).lower() or door == "another library", door
        assert refusal.value.code in {"CROWN-CHANGE-ARROW", "CROWN-CHANGE-TYPE"}, door
        assert list(view) == [(0, "kept")], door
    view.insert("t", [(1, "é")])
    assert sorted(view) == [(0, "kept"), (1, "é")]


def test_broken_columns_that_nobody_reads_do_no_harm() -> None:
    for threads in (1, 2):
        view = crown.View("SELECT t.k FROM t", SCHEMA, threads=threads)
        view.apply({"t": overwritten(TEXT, 1, "i4", 1, 2**30)})
        view.apply({"t": BROKEN["a list within lists"]()})
        assert sorted(view) == [(0,), (0,), (1,), (1,), (2,), (2,)]


def test_broken_arrays_never_reach_duckdb() -> None:
    view = crown.View("SELECT reverse(s) AS r FROM t", SCHEMA)
    for fault in ("offset far away", "invalid UTF-8", "view beyond its buffer", "index beyond the dictionary"):
        with pytest.raises(crown.InvalidChange, match="column 's'"):
            view.apply({"t": BROKEN[fault]()})
    assert list(view) == []


@pytest.mark.parametrize(
    "data",
    [
        pa.array(["no", "a", "bc", "é"]).slice(1),
        pa.concat_arrays([pa.array(["a", "bc"]), pa.array(["é"])]),
        VIEWS.cast(pa.string()).slice(0, 0).cast(pa.string_view()),
        pa.array(["a", "bc", "é"]).dictionary_encode().slice(1),
        pa.array(["a", None, "é"]).filter(pa.array([True, False, True])),
        pa.Array.from_buffers(pa.string(), 0, [None, None, pa.py_buffer(b"")]),
        # What lies under a NULL is undefined.
        pa.Array.from_buffers(
            pa.string(), 2, [pa.py_buffer(b) for b in (b"\x01", np.array([0, 1, 2], "i4"), b"a\xff")]
        ),
        pa.array([None, None], pa.null()),
    ],
    ids=["sliced", "joined", "empty views", "sliced dictionary", "filtered", "no buffers", "under a NULL", "null type"],
)
def test_sound_arrays_are_accepted(data: pa.Array) -> None:
    for threads in (1, 2):
        view = crown.View("SELECT t.k, t.s FROM t", SCHEMA, threads=threads)
        view.apply({"t": batch_of(data)})
        assert sorted(view) == list(enumerate(data.to_pylist()))


def test_sizes_that_no_memory_holds_are_refused() -> None:
    view = crown.View("SELECT t.k, t.s FROM t", SCHEMA)
    nothing = pa.Array.from_buffers(pa.null(), 2**40, [None])
    for offer in (DOORS["apply a table"], DOORS["insert"], DOORS["delete"], DOORS["another library"]):
        with pytest.raises(crown.InvalidChange, match="CROWN-CHANGE-SIZE"):
            offer(view, pa.RecordBatch.from_arrays([nothing, nothing], names=["k", "s"]))
    assert list(view) == []


def test_two_columns_of_one_name_are_refused() -> None:
    view = crown.View("SELECT t.k, t.s FROM t", SCHEMA)
    twice = pa.table([[1], ["a"], ["b"]], names=["k", "s", "s"])
    for data in (twice, twice.rename_columns(["k", "s", "S"]).rename_columns(["K", "s", "S"])):
        with pytest.raises(crown.InvalidChange, match="the changes have column s more than once"):
            view.apply({"t": data})
    view.apply({"t": pa.table([[1], ["a"], [2], [3]], names=["k", "s", "other", "other"])})
    assert list(view) == [(1, "a")]


def test_numbers_that_are_not_what_their_type_says() -> None:
    view = crown.View("SELECT t.m, t.d FROM t", "CREATE TABLE t (m DECIMAL(20,2), d DATE)")
    money = overwritten(pa.array([1, 2], pa.decimal128(5, 2)), 1, "i8", 0, 10**7)["s"]
    days = pa.array([0, 0], pa.date32())
    with pytest.raises(crown.InvalidChange, match="column 'm': 10000000 has more digits"):
        view.apply({"t": pa.table({"m": money, "d": days})})
    far = pa.array([0, 86_400_000 * 2**32], pa.date64())
    with pytest.raises(crown.InvalidChange, match=r"column 'd': .* out of range"):
        view.apply({"t": pa.table({"m": pa.array([1, 2]), "d": far})})
    assert list(view) == []


class Failing:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("the disk is on fire")


class Wrong:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return "no capsule"


def failing_batches() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"k": [1], "s": ["a"]})
    raise RuntimeError("the disk is on fire")


def other_batches() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"k": [1], "s": ["a"]})
    yield pa.RecordBatch.from_pydict({"k": ["text"], "s": [7]})


READ = pa.schema({"k": pa.int64(), "s": pa.string()})
STREAMS: dict[str, Callable[[], Any]] = {
    "fails at once": Failing,
    "no capsule": Wrong,
    "fails in the middle": lambda: pa.RecordBatchReader.from_batches(READ, failing_batches()),
    "fails in the middle, elsewhere": lambda: Producer(pa.RecordBatchReader.from_batches(READ, failing_batches())),
    "changes its schema": lambda: pa.RecordBatchReader.from_batches(READ, other_batches()),
    "was read already": lambda: Consumed(),
    "one array": lambda: pa.chunked_array([[1, 2]]),
}


class Consumed:
    def __init__(self) -> None:
        self.capsule = pa.table({"k": [1], "s": ["a"]}).__arrow_c_stream__()
        pa.RecordBatchReader._import_from_c_capsule(self.capsule).read_all()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.capsule


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stream", STREAMS)
def test_streams_that_break(stream: str, threads: int) -> None:
    view = crown.View("SELECT t.k, t.s FROM t", SCHEMA, threads=threads)
    view.insert("t", [(0, "kept")])
    offers: list[Callable[[Any], Any]] = [lambda data: view.apply({"t": data}), lambda data: view.insert("t", data)]
    for offer in offers:
        with pytest.raises(crown.InvalidChange, match="table 't'"):
            offer(STREAMS[stream]())
        assert list(view) == [(0, "kept")]


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.slow)])
def test_fuzzed_batches(count: int) -> None:
    """In a process of its own, so that a crash is a failure and not the end of the run."""
    command = [sys.executable, "-X", "faulthandler", str(FUZZ), str(SEED), str(count)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"seed {SEED}:\n{run.stdout[-1000:]}\n{run.stderr[-5000:]}"
    assert "panicked" not in run.stderr, f"seed {SEED}:\n{run.stderr[-5000:]}"
