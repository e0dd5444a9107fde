"""State along a stream whose window fills, slides and drains."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Request, row_of
from benchmarks.store import Result

TITLE = "Memory: bytes of state over the stream"
COLUMNS = {"state_mib": "largest state MiB", "bytes_per_row": "bytes per live row"}
WORKLOADS = ("three_hop", "four_hop_project", "star")


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in WORKLOADS:
        outcome = request.run("crown_memory", workload, request.data.fifo(workload))
        row = row_of(outcome, "crown", workload, **outcome.details)
        if points := outcome.details.get("points"):
            most = max(points, key=lambda point: point["bytes"])
            row |= {"state_mib": most["bytes"] / 2**20, "bytes_per_row": most["bytes"] / most["live_rows"]}
        rows.append(row)
    return Result("memory", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    for row in result.rows:
        points = row.get("points", [])
        axes.plot([p["updates"] for p in points], [p["bytes"] / 2**20 for p in points], label=row["workload"])
    axes.set_xlabel("updates")
    axes.set_ylabel("MiB of state")
    axes.legend(fontsize=8)
