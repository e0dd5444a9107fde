"""Streams of changes made from plain tables: windows, insertion-only, arbitrary, and of a chosen hardness.

A `Stream` maps each table to its changes in order of arrival: the table's columns, `_change_type` (`insert` or
`delete`) and `_sequence`, the position among the changes of all tables. `batches` cuts it into what a view's `apply`
takes; `crown.workload.profile` reads it as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crown.changes import CHANGE_TYPE, DELETE, INSERT
from crown.workload.lifespan import AFTER
from crown.workload.log import SEQUENCE

Stream: TypeAlias = dict[str, pa.Table]
TableBatch: TypeAlias = list[tuple[str, pa.Table]]
_Times: TypeAlias = npt.NDArray[np.int64]


def insertion_only(tables: Mapping[str, pa.Table], *, time: str | None = None) -> Stream:
    """Each row comes and stays. Ordered by the column `time` across tables; without it in proportion to their sizes."""
    start = _arrival(tables, time)
    return _stream(tables, start, {name: np.full(len(times), AFTER, np.int64) for name, times in start.items()})


def count_window(tables: Mapping[str, pa.Table], size: int, *, time: str | None = None, drain: bool = True) -> Stream:
    """FIFO by count: a row leaves its table just before the row comes that is `size` places after it.

    With `drain` the last rows leave at the end; so every row has the same number of rows of its table after it.
    """
    start = _arrival(tables, time)
    end = {}
    for name, times in start.items():
        order = np.argsort(times, kind="stable")
        leaving = np.full(len(times), AFTER, np.int64)
        if size < len(times):
            leaving[order[:-size]] = times[order[size:]]
        if drain:
            rest = order[-min(size, len(times)) :] if len(times) else order
            leaving[rest] = times.max(initial=0) + 1 + np.arange(len(rest))
        end[name] = leaving
    return _stream(tables, start, end)


def time_window(
    tables: Mapping[str, pa.Table], interval: int, *, time: str, static: tuple[str, ...] = (), drain: bool = True
) -> Stream:
    """FIFO by time: a row leaves `interval` after its `time`. Rows of `static` tables come first and stay."""
    start = _arrival(tables, time, static)
    newest = max((int(times.max(initial=0)) for times in start.values()), default=0)
    end = {}
    for name, times in start.items():
        leaving = times + interval
        end[name] = leaving if drain else np.where(leaving > newest, AFTER, leaving)
        if name in static:
            end[name] = np.full(len(times), AFTER, np.int64)
    return _stream(tables, start, end)


def arbitrary(tables: Mapping[str, pa.Table], *, seed: int, deleted: float = 0.8) -> Stream:
    """Rows come in random order; the share `deleted` of them leaves again after a random time, in no order."""
    generator = np.random.default_rng(seed)
    total = sum(rows.num_rows for rows in tables.values())
    start, end = {}, {}
    for name, rows in tables.items():
        come = generator.integers(0, total * 10 + 1, rows.num_rows)
        stay = generator.exponential(total * 2.5, rows.num_rows).astype(np.int64) + 1
        start[name] = come
        end[name] = np.where(generator.random(rows.num_rows) < deleted, come + stay, AFTER)
    return _stream(tables, start, end)


def delete_all(
    tables: Mapping[str, pa.Table], *, order: Literal["fifo", "lifo", "random"] = "random", seed: int = 0
) -> Stream:
    """All rows come, then all leave: a view must be empty at the end and hold no memory for what is gone."""
    generator = np.random.default_rng(seed)
    start = _arrival(tables, None)
    newest = max((int(times.max(initial=0)) for times in start.values()), default=0)
    end = {}
    for name, times in start.items():
        if order == "fifo":
            end[name] = newest + 1 + times
        elif order == "lifo":
            end[name] = newest + 1 + (newest - times)
        else:
            end[name] = newest + 1 + generator.permutation(times)
    return _stream(tables, start, end)


def enclosing(outer: pa.Table, inner: pa.Table, *, window: int, steps: int = 20) -> Stream:
    """Tables g1, g2, g3 for the 3-Hop query with a hard middle: long-lived g2 rows around short-lived g1 and g3 rows.

    Before each insertion of a row of `outer` into g2 there are `steps` steps; each inserts all of `inner` into g1 and
    g3 and deletes it again. g2 keeps `window` rows. With g2 as root each of its tuples has enclosureness
    `steps * window`; the average over all tuples is what `window_for` inverts.
    """
    block = 2 * steps + 2
    come = np.arange(outer.num_rows, dtype=np.int64) * block + 2 * steps + 1
    leave = np.full(outer.num_rows, AFTER, np.int64)
    leave[:-window] = come[window:] - 1
    rounds = np.repeat(
        np.arange(outer.num_rows, dtype=np.int64)[:, None] * block + 2 * np.arange(steps), inner.num_rows
    ).ravel()
    repeated = inner.take(np.tile(np.arange(inner.num_rows), outer.num_rows * steps))
    tables = {"g1": repeated, "g2": outer, "g3": repeated}
    return _stream(tables, {"g1": rounds, "g2": come, "g3": rounds}, {"g1": rounds + 1, "g2": leave, "g3": rounds + 1})


def window_for(enclosureness: float, *, inner_rows: int, steps: int = 20) -> int:
    """The window with which `enclosing` has about this enclosureness (a little less, since the stream begins empty)."""
    return max(1, round(enclosureness * (1 + 2 * steps * inner_rows) / steps))


def batches(stream: Stream, updates: int | None = None) -> Iterator[TableBatch]:
    """Cuts a stream into batches of `updates` changes, each with at most one Arrow table per table.

    Without `updates` each batch is one run of changes to one table, so that the exact order of arrival is kept.
    """
    sequences = {name: table[SEQUENCE].to_numpy() for name, table in stream.items()}
    total = sum(len(sequence) for sequence in sequences.values())
    if updates is None:
        owner = np.empty(total, np.int64)
        for number, sequence in enumerate(sequences.values()):
            owner[sequence] = number
        cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), total] if total else [0]
    else:
        cuts = [*range(0, total, updates), total]
    for low, high in itertools.pairwise(cuts):
        batch = []
        for name, table in stream.items():
            first, last = np.searchsorted(sequences[name], [low, high])
            if first < last:
                batch.append((name, table.slice(first, last - first)))
        yield batch


def _arrival(tables: Mapping[str, pa.Table], time: str | None, static: tuple[str, ...] = ()) -> dict[str, _Times]:
    """The moment at which each row comes; static tables, and those without the time column, before all others."""
    if time is None:
        # Spread over the same span, so that a small table does not come before a large one.
        span = 2 * max((rows.num_rows for rows in tables.values()), default=0)
        return {
            name: (np.arange(rows.num_rows, dtype=np.int64) * span) // max(1, rows.num_rows)
            for name, rows in tables.items()
        }
    timed = {
        name: pc.cast(rows[time], pa.int64()).to_numpy()
        for name, rows in tables.items()
        if time in rows.column_names and name not in static
    }
    oldest = min((int(times.min()) for times in timed.values() if len(times)), default=0)
    return {
        name: timed[name] if name in timed else np.full(rows.num_rows, oldest - 1, np.int64)
        for name, rows in tables.items()
    }


def _stream(tables: Mapping[str, pa.Table], start: Mapping[str, _Times], end: Mapping[str, _Times]) -> Stream:
    """Return all insertions and deletions in order of time; at one moment deletions first, then by table and row."""
    time, inserts, owner, row = [], [], [], []
    for number, name in enumerate(tables):
        leaving = np.flatnonzero(end[name] != AFTER)
        time += [start[name], end[name][leaving]]
        inserts += [np.ones(len(start[name]), np.int8), np.zeros(len(leaving), np.int8)]
        owner.append(np.full(len(start[name]) + len(leaving), number, np.int64))
        row += [np.arange(len(start[name])), leaving]
    if not time:
        return {}
    times, insert, owners, rows = (np.concatenate(parts) for parts in (time, inserts, owner, row))
    order = np.lexsort((rows, owners, insert, times))
    result: Stream = {}
    for number, (name, table) in enumerate(tables.items()):
        sequence = np.flatnonzero(owners[order] == number)
        chosen = order[sequence]
        words = pa.DictionaryArray.from_arrays(pa.array(insert[chosen]), pa.array([DELETE, INSERT]))
        changes = table.take(pa.array(rows[chosen]))
        result[name] = changes.append_column(CHANGE_TYPE, words).append_column(SEQUENCE, pa.array(sequence))
    return result
