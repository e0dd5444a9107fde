"""What is varied. Each module has a `TITLE`, a `run(context) -> Result` and a `chart(result, axes)`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import runner
from benchmarks.data import Data
from benchmarks.job import Job, Outcome

NAMES = (
    "runtime",
    "full",
    "enclosureness",
    "selectivity",
    "latency",
    "scale",
    "parallelism",
    "memory",
    "recovery",
    "crossing",
    "dumbbell",
)


def experiment(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.experiments.{name}")


@dataclass
class Context:
    """What the user asked for, and how to report progress."""

    data: Data
    peers: tuple[str, ...] = ()
    seconds: float = 60.0
    memory: int = 8 << 30
    workloads: tuple[str, ...] = ()
    command: str = ""
    progress: Callable[[str], None] = print
    pythons: dict[str, str] = field(default_factory=dict)

    def run(self, engine: str, workload: str, stream: Path, **options: Any) -> Outcome:
        job = Job(
            engine, workload, str(stream), seconds=options.pop("seconds", self.seconds), memory=self.memory, **options
        )
        variant = job.options.get("variant", "")
        self.progress(f"{engine}{variant} on {workload}")
        return runner.run(job, python=self.python(engine))

    def python(self, engine: str) -> str:
        """A peer with requirements of its own may live in its own environment: CROWN_BENCH_PYTHON_FLINK and so on."""
        return os.environ.get(f"CROWN_BENCH_PYTHON_{engine.upper()}", sys.executable)

    @property
    def limits(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "memory_gib": self.memory >> 30}


class Mismatch(Exception):
    """Two engines answered differently: the run fails."""


def compare(rows: list[dict[str, Any]]) -> None:
    """Fails when two engines that read their answers back differ on the same workload."""
    seen: dict[tuple[Any, ...], tuple[str, int]] = {}
    for row in rows:
        if row.get("checksum") is None:
            continue
        key = (row["workload"], row.get("parameter"))
        engine, value = seen.setdefault(key, (row["engine"], row["checksum"]))
        if value != row["checksum"]:
            raise Mismatch(f"{row['engine']} and {engine} disagree on {key}: {row['checksum']} and {value}")


def row_of(outcome: Outcome, engine: str, workload: str, **more: Any) -> dict[str, Any]:
    rate = outcome.updates / outcome.seconds if outcome.seconds else None
    return {
        "engine": engine,
        "workload": workload,
        "status": outcome.status,
        "seconds": outcome.seconds,
        "updates": outcome.updates,
        "updates_per_second": rate,
        "inserted": outcome.inserted,
        "deleted": outcome.deleted,
        "checksum": outcome.checksum,
        "cpu_seconds": outcome.cpu_seconds,
        "peak_mb": outcome.peak_bytes and round(outcome.peak_bytes / 2**20),
        "version": outcome.version,
        **more,
    }
