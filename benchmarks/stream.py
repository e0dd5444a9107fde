"""One stream of updates, kept in a folder so that every engine reads the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather


@dataclass(frozen=True)
class Stream:
    """Update i goes to table `names[order[i]]` and is that table's next row; rows carry `_change_type`.

    `mark` updates lead to the state that answers are compared on; what follows may empty the tables.
    """

    names: tuple[str, ...]
    order: np.ndarray
    tables: tuple[pa.Table, ...]
    mark: int

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def _positions(self) -> np.ndarray:
        """`_positions[t, i]`: rows of table t among the first i updates."""
        counts = np.zeros((len(self.names), len(self.order) + 1), dtype=np.int64)
        for table in range(len(self.names)):
            np.cumsum(self.order == table, out=counts[table, 1:])
        return counts

    def between(self, start: int, end: int) -> dict[str, pa.Table]:
        """The updates `start` to `end`, by table."""
        slices = {}
        for table, name in enumerate(self.names):
            first, last = self._positions[table, start], self._positions[table, end]
            if last > first:
                slices[name] = self.tables[table].slice(first, last - first)
        return slices

    def batches(self, size: int) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """(updates so far, batch) with a cut at `mark`, so that every engine stops there."""
        start = 0
        while start < len(self):
            end = min(start + size, len(self))
            if start < self.mark < end:
                end = self.mark
            yield end, self.between(start, end)
            start = end

    def samples(
        self, size: int, *, start: int, places: int, repeat: int
    ) -> Iterator[tuple[int, dict[str, pa.Table], bool]]:
        """(updates so far, batch, whether it is one of the samples) from the beginning to the mark.

        Between `start` and the mark there are `places` evenly spread, with `repeat` batches of `size` updates at each;
        what lies before and between is one batch each time and no sample.
        """
        step = (self.mark - start) // places
        cuts = [(start, False)]
        for place in range(places):
            first = start + place * step
            cuts += [(first + size * number, True) for number in range(1, repeat + 1)]
            cuts.append((first + step if place + 1 < places else self.mark, False))
        before = 0
        for end, sample in cuts:
            if end > before:
                yield end, self.between(before, end), sample
                before = end

    def runs(self, most: int) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """As `batches`, but each batch is a run of updates to one table, so that the exact order is kept."""
        cuts = np.flatnonzero(np.diff(self.order)) + 1
        start = 0
        for end in [*cuts.tolist(), len(self)]:
            while start < end:
                stop = min(end, start + most, self.mark if start < self.mark else end)
                yield stop, self.between(start, stop)
                start = stop

    def head(self, updates: int) -> Stream:
        """The first `updates` of the stream, compared at their end."""
        slices = self.between(0, updates)
        tables = tuple(slices.get(name, table.slice(0, 0)) for name, table in zip(self.names, self.tables, strict=True))
        return Stream(self.names, self.order[:updates], tables, updates)

    def save(self, folder: Path) -> Path:
        """`stream.json` is written last: a folder without it is not complete."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "order.npy", self.order)
        for name, table in zip(self.names, self.tables, strict=True):
            feather.write_feather(table, folder / f"{name}.arrow", compression="uncompressed")
        (folder / "stream.json").write_text(json.dumps({"names": self.names, "mark": self.mark}))
        return folder

    @staticmethod
    def load(folder: Path) -> Stream:
        about = json.loads((folder / "stream.json").read_text())
        tables = tuple(feather.read_table(folder / f"{name}.arrow") for name in about["names"])
        return Stream(tuple(about["names"]), np.load(folder / "order.npy"), tables, about["mark"])

    def write_lines(self, path: Path) -> Path:
        """The form that the Rust peers read: sign, table number, columns, by tabs; NULL is an empty field."""
        lines: list[pa.Array] = []
        for number, table in enumerate(self.tables):
            sign = pa.array(np.where(is_delete(table), "-", "+"))
            columns = [table[name].cast(pa.string()) for name in table.column_names if name != "_change_type"]
            fields = (sign, pa.scalar(str(number)), *columns, pa.scalar("\t"))
            joined = pc.binary_join_element_wise(*fields, null_handling="replace", null_replacement="")
            lines += joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]
        by_table = np.argsort(self.order, kind="stable")
        place = np.empty_like(by_table)
        place[by_table] = np.arange(len(by_table))
        with path.open("w") as file:
            file.writelines(line + "\n" for line in pa.chunked_array(lines).take(pa.array(place)).to_pylist())
        return path


def head(folder: Path, updates: int) -> Path:
    """The first `updates` of a saved stream, saved below it."""
    below = folder / f"head-{updates}"
    if not (below / "stream.json").exists():
        stream = Stream.load(folder)
        stream.head(min(updates, len(stream))).save(below)
    return below


def is_delete(rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Which changes take rows away."""
    deletes = pc.is_in(rows["_change_type"], pa.array(["delete", "update_preimage"]))
    return np.asarray(deletes.to_numpy(zero_copy_only=False))


def of_changes(changes: dict[str, pa.Table], *, mark: int | None = None) -> Stream:
    """From what `crown.workload.streams` makes. `mark`: its default is the last insertion."""
    names = tuple(changes)
    sequences = [changes[name]["_sequence"].to_numpy() for name in names]
    order = np.empty(sum(map(len, sequences)), dtype=np.int8)
    for number, sequence in enumerate(sequences):
        order[sequence] = number
    tables = tuple(changes[name].drop_columns(["_sequence"]) for name in names)
    if mark is None:
        inserted = (sequence[~is_delete(changes[name])] for name, sequence in zip(names, sequences, strict=True))
        mark = max((int(positions.max()) + 1 for positions in inserted if len(positions)), default=0)
    return Stream(names, order, tables, mark)
