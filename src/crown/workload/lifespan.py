"""Lifespans: when each row of a table was inserted and deleted (section 5.1 of the paper).

A moment is the position of an update in the log. Rows that existed before the log began start at `BEFORE`, rows that
still exist when it ends have the end `AFTER`. A row that is inserted, deleted and inserted again has several lifespans,
disjoint in time; inserting a row that exists, or deleting one of several copies, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Moments: TypeAlias = npt.NDArray[np.int64]

BEFORE = -1
AFTER = int(np.iinfo(np.int64).max) - 1


@dataclass(frozen=True, eq=False)
class Lifespans:
    """Closed intervals `[start, end]`, one per tuple in the sense of the paper; not ordered."""

    start: Moments
    end: Moments

    def __len__(self) -> int:
        return len(self.start)

    def scaled(self, factor: int, offset: int) -> Lifespans:
        """Each moment becomes `factor` moments, of which this one takes place `offset`.

        A self-join applies an update to its atoms one after the other; so their copies get separate moments.
        """
        start = np.where(self.start == BEFORE, BEFORE, self.start * factor + offset)
        end = np.where(self.end == AFTER, AFTER, self.end * factor + offset)
        return Lifespans(start, end)


def concatenate(parts: list[Lifespans]) -> Lifespans:
    if not parts:
        return Lifespans(np.empty(0, np.int64), np.empty(0, np.int64))
    return Lifespans(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))


def row_codes(rows: pa.Table) -> Moments:
    """Return a number per row such that equal rows (NULL equals NULL) have equal numbers.

    >>> row_codes(pa.table({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"]})).tolist()
    [0, 1, 2, 0]
    """
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        indices, distinct = _encode(column)
        codes, _ = _encode(pa.array(codes * max(1, distinct) + indices))
    return codes


def _encode(column: Any) -> tuple[Moments, int]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    # A dictionary column from outside may hold a NULL as a missing index: give it a number after
    # the others.
    indices = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)
    return indices.astype(np.int64), len(column.dictionary) + 1


def lifespans(codes: Moments, change: Moments, moment: Moments) -> Lifespans:
    """Return the lifespans of rows from their updates, given in order of arrival.

    `change` is +n for n inserted copies and -n for n deleted ones. A row that is deleted more often than it was
    inserted existed before the log began.
    """
    if len(codes) == 0:
        return Lifespans(np.empty(0, np.int64), np.empty(0, np.int64))
    order = np.argsort(codes, kind="stable")
    code, change, moment = codes[order], change[order], moment[order]

    first = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    last = np.r_[first[1:], len(code)] - 1
    size = last - first + 1
    running = np.cumsum(change)
    copies = running - np.repeat(running[first] - change[first], size)
    initial = np.maximum(0, -np.minimum.reduceat(copies, first))
    copies = copies + np.repeat(initial, size)
    previous = copies - change

    opens = np.flatnonzero((previous == 0) & (copies > 0))
    closes = np.flatnonzero((previous > 0) & (copies == 0))
    there_before = first[initial > 0]
    there_after = last[copies[last] > 0]

    # Within a row openings and closings alternate, so sorting both by (row, time) pairs them.
    opening_key = np.r_[2 * there_before, 2 * opens + 1]
    closing_key = np.r_[2 * closes + 1, 2 * there_after + 2]
    start = np.r_[np.full(len(there_before), BEFORE, np.int64), moment[opens]]
    end = np.r_[moment[closes], np.full(len(there_after), AFTER, np.int64)]
    return Lifespans(start[np.argsort(opening_key)], end[np.argsort(closing_key)])
