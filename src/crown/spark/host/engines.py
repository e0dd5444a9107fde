"""The engines of one host, by query, operator and cell.

The law: an engine is handed out only under the exact (version, token) that it was left with. Every applied batch leaves
it under a new random token, so an attempt that Spark did not commit leaves an engine that no state names; it is
then simply rebuilt. So a killed worker, a second attempt or a stale host can never be seen in a result.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from crown.spark.flow.chunks import Chunk, log_blobs, read_blob

Key = tuple[str, str, int]  # query, operator, cell


def engine_class() -> Any:
    """Return the kernel's engine, or what CROWN_SPARK_ENGINE names (`module:Class`; benchmarks measure against a
    do-nothing).
    """
    module, _, name = os.environ.get("CROWN_SPARK_ENGINE", "crown._kernel:Engine").partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass
class Held:
    """One cell's engine. `mark` is None while a batch is being applied: the engine must not be used then."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Any = None
    mark: tuple[int, str] | None = None
    used: float = 0.0
    rejected: pa.Table | None = None


class Engines:
    """Thread-safe between cells; one batch at a time inside a cell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: dict[Key, Held] = {}

    def held(self, key: Key) -> Held:
        with self._lock:
            held = self._cells.setdefault(key, Held())
        held.used = time.monotonic()
        return held

    def forget_idle(self, seconds: float) -> None:
        """Drop the engines that have been idle: another executor may have their cells by now."""
        limit = time.monotonic() - seconds
        with self._lock:
            for key, held in list(self._cells.items()):
                if held.used < limit and not held.lock.locked():
                    del self._cells[key]


def rebuild(plan: str, chunks: Iterable[Chunk], on_invalid: str, *, deltas: bool = True) -> Any:
    """Return the engine that the chunks represent, in time linear in their rows.

    The log is replayed, and nothing is enumerated. Where order can't matter, the whole log is one batch, so that rows
    that were inserted and deleted cost next to nothing. Upserts, windows and rejected changes depend on the batches:
    those are replayed one by one.
    """
    parts: list[bytes] = []
    batches = iter(_batches(chunks, parts))
    if on_invalid == "raise" and not _depends_on_order(plan):
        batches = _joined(batches)
    first = next(batches, [])  # after all parts
    logged = ([(table, read_blob(blob)) for table, blob in blobs] for blobs in chain([first], batches) if blobs)
    return engine_class().rebuild(plan, parts, logged, deltas=deltas, on_invalid=on_invalid)


def _joined(batches: Iterable[list[tuple[str, memoryview]]]) -> Iterator[list[tuple[str, memoryview]]]:
    joined = [blob for batch in batches for blob in batch]
    if joined:
        yield joined


def _depends_on_order(plan: str) -> bool:
    return any(table.get("primary_key") or table.get("window") for table in json.loads(plan)["tables"])


def _batches(chunks: Iterable[Chunk], parts: list[bytes]) -> Iterator[list[tuple[str, memoryview]]]:
    """Yield the log's batches in order; snapshot parts, which come before all of them, are added to `parts`."""
    version = -1
    blobs: list[tuple[str, memoryview]] = []
    for index, chunk in enumerate(chunks):
        chunk.verified(index)
        if chunk.snapshot:
            parts.append(chunk.data)
            continue
        if chunk.version != version and blobs:
            yield blobs
            blobs = []
        version = chunk.version
        blobs.extend(log_blobs(chunk))
    if blobs:
        yield blobs
