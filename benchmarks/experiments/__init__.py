"""What is varied. Each module has a `TITLE`, a `run(request) -> Result` and a `chart(result, axes)`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import runner
from benchmarks.data import Data
from benchmarks.job import Job, Outcome

NAMES = (
    "runtime",
    "insertions",
    "full",
    "enclosureness",
    "selectivity",
    "latency",
    "scale",
    "parallelism",
    "memory",
    "views",
    "recovery",
    "crossing",
    "dumbbell",
    "kernel",
)


def experiment(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.experiments.{name}")


@dataclass
class Request:
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
        self.progress(f"{options.pop('label', engine)} on {workload}")
        options.setdefault("filter", self.data.threshold(workload))
        job = Job(
            engine, workload, str(stream), seconds=options.pop("seconds", self.seconds), memory=self.memory, **options
        )
        return runner.run(job, python=self.python(engine))

    def asked(self, able: Iterable[str]) -> tuple[str, ...]:
        """Those of `able` that the user asked for."""
        return tuple(peer for peer in able if peer in self.peers)

    def python(self, engine: str) -> str:
        """A peer with requirements of its own may live in its own environment: CROWN_BENCH_PYTHON_FLINK and so on."""
        return os.environ.get(f"CROWN_BENCH_PYTHON_{engine.upper()}", sys.executable)

    @property
    def limits(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "memory_gib": self.memory >> 30}


class Mismatch(Exception):
    """Two engines answered differently: the run fails."""


def compare(rows: list[dict[str, Any]]) -> None:
    """Fails when two engines that read their answers back differ on the same workload; says in each row who agreed."""
    seen: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("checksum") is not None:
            seen.setdefault((row["workload"], row.get("parameter")), []).append(row)
    for key, same in seen.items():
        for row in same:
            if row["checksum"] != same[0]["checksum"]:
                raise Mismatch(
                    f"{row['engine']} and {same[0]['engine']} disagree on {key}: "
                    f"{row['checksum']} and {same[0]['checksum']}"
                )
            if len(same) > 1:
                row["answer"] = "same" if row["checksum"] else "same, empty"


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
