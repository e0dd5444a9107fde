"""What is asked of an engine, and what it answers. Both travel as JSON between the runner and its child process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


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
