"""What is asked of an engine, and what it answers. Both travel as JSON between the runner and its child process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.stream import Stream

PER_UPDATE_SLICE = 50_000  # updates handed over at once when each has a delta of its own
SPARK_START_UP_SECONDS = 20.0  # of workers and compilation, beyond the limit of a job; within what the runner allows


@dataclass(frozen=True)
class Job:
    engine: str
    workload: str
    stream: str  # folder of a saved `Stream`
    batch: int = 1000  # updates between two refreshes; 0: one delta for each update
    filter: int | None = None
    threads: int = 1
    seconds: float = 120.0  # limit on the run
    memory: int = 8 << 30  # limit on resident memory, whole process tree, bytes
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        return Job(**json.loads(text))

    def batches(self, stream: Stream) -> Iterator[tuple[int, list[tuple[str, pa.Table]], bool]]:
        """(updates so far, batch, whether its time counts): all of the stream, or the samples that are asked for.

        When each update has a delta of its own a batch is what is handed over at once, in the exact order.
        """
        if samples := self.options.get("samples"):
            for done, changes, timed in stream.samples(self.batch, **samples):
                yield done, list(changes.items()), timed
        elif self.batch:
            for done, changes in stream.batches(self.batch):
                yield done, list(changes.items()), True
        else:
            collected: list[tuple[str, pa.Table]] = []
            start = 0
            for done, changes in stream.runs(PER_UPDATE_SLICE):
                collected += changes.items()
                if done - start >= PER_UPDATE_SLICE or done in (stream.mark, len(stream)):
                    yield done, collected, True
                    collected, start = [], done

    @property
    def folder(self) -> Path:
        return Path(self.stream)


@dataclass
class Outcome:
    """`seconds` is the engine's own time from the first update to the last delta, start-up and loading excluded.

    `status` is `ok`, or says in words why there is no full run. The checksum is that of the answer at the stream's
    mark; None where the engine's output could not be read back.
    """

    status: str = "ok"
    seconds: float | None = None
    updates: int = 0
    inserted: int | None = None
    deleted: int | None = None
    checksum: int | None = None
    cpu_seconds: float | None = None
    peak_bytes: int | None = None
    version: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def add_time(self, seconds: float) -> None:
        self.seconds = (self.seconds or 0.0) + seconds

    def add_delta(self, weights: np.ndarray) -> None:
        self.inserted = (self.inserted or 0) + int(weights[weights > 0].sum())
        self.deleted = (self.deleted or 0) - int(weights[weights < 0].sum())

    def late(self, limit: float) -> bool:
        """Whether the run has taken longer than `limit` seconds."""
        return (self.seconds or 0.0) > limit

    @property
    def stopped(self) -> bool:
        """A limit on time or memory ended the run."""
        return self.status.startswith(("not done in", "over "))


PROGRESS_SECONDS = 0.5
_last_note = 0.0


def note_progress(outcome: Outcome) -> None:
    """Leaves the outcome so far where the runner finds it if it has to end this process; at most twice a second."""
    global _last_note
    path = os.environ.get("CROWN_BENCH_PROGRESS")
    if path is None or time.monotonic() - _last_note < PROGRESS_SECONDS:
        return
    _last_note = time.monotonic()
    partial = Path(path + ".new")
    partial.write_text(json.dumps(asdict(outcome)))
    partial.replace(path)
