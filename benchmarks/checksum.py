"""One number for a signed multiset of rows: the sum over rows of weight times hash, modulo 2^64.

Independent of order and of how updates were batched, so that engines which net differently can be compared. The
Rust peers compute the same (`peers/common`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def column_words(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Integers as they are, NULL as all ones; strings by their first seven bytes, NULL as none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words = np.array(
            [int.from_bytes((text or "").encode()[:7], "little") for text in column.to_pylist()], dtype=np.uint64
        )
    else:
        words = pc.fill_null(column.cast(pa.int64()), -1).to_numpy().astype(np.int64).view(np.uint64)
    return words


def checksum(columns: Sequence[pa.ChunkedArray], weights: np.ndarray) -> int:
    """`weights` is signed, one per row."""
    hashes = np.full(len(weights), 0xCBF29CE484222325, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            hashes = (hashes ^ column_words(column)) * np.uint64(0x00000100000001B3)
            hashes ^= hashes >> np.uint64(32)
        return int((hashes * weights.astype(np.int64).view(np.uint64)).sum(dtype=np.uint64))
