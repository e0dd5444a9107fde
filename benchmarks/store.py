"""Results as files: one JSON for each experiment, stamped with the machine and with how to repeat it."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results")


@dataclass
class Result:
    """`rows` are what was measured; `ratios` (higher is better for Crown) are what is compared over time.

    `settings` are the options of the run that a repetition needs beside the data and the limits.
    """

    experiment: str
    command: str
    data: dict[str, Any]
    limits: dict[str, Any]
    rows: list[dict[str, Any]]
    ratios: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    elapsed_seconds: float | None = None  # of the whole experiment, streams and start-up included
    machine: dict[str, Any] = field(default_factory=dict)
    date: str = ""

    def save(self, folder: Path = RESULTS) -> Path:
        self.machine = machine()
        self.date = datetime.now(UTC).strftime("%Y-%m-%d")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return path


def load(experiment: str, folder: Path = RESULTS) -> Result | None:
    path = folder / f"{experiment}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def joined(stored: Result, part: Result) -> Result:
    """A long experiment in parts: the stored result with the rows of the queries that `part` measured anew."""
    for what, before, now in (("data", stored.data, part.data), ("limits", stored.limits, part.limits)):
        if before != now:
            raise ValueError(f"the stored result of {stored.experiment} has other {what}: {before}, not {now}")
    if stored.machine != machine():
        raise ValueError(f"the stored result of {stored.experiment} is of another machine: {stored.machine}")
    again = {row["workload"] for row in part.rows}
    order = list(dict.fromkeys(row["workload"] for row in stored.rows + part.rows))
    rows = [row for row in stored.rows if row["workload"] not in again] + part.rows
    kept = {name: ratio for name, ratio in stored.ratios.items() if name.split(":")[0] not in again}
    return replace(
        stored,
        command=f"{stored.command}; {part.command}",
        rows=sorted(rows, key=lambda row: order.index(row["workload"])),
        ratios=kept | part.ratios,
        settings=stored.settings | {"workloads": order if stored.settings.get("workloads") else []},
        elapsed_seconds=round((stored.elapsed_seconds or 0) + (part.elapsed_seconds or 0), 1),
    )


def regressions(before: dict[str, float], now: dict[str, float], tolerance: float) -> dict[str, tuple[float, float]]:
    """The ratios, (before, now), that both runs have and that are worse by more than the tolerance."""
    return {
        key: (value, now[key]) for key, value in before.items() if key in now and now[key] < value * (1 - tolerance)
    }


def machine() -> dict[str, Any]:
    """Processor, cores and memory: enough to know whether two runs may be compared, and no name of the machine."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "python": platform.python_version(),
    }
