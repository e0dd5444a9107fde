"""Save and load: how fast a view comes back from its snapshot."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Request, row_of
from benchmarks.store import Result

TITLE = "Recovery: rows rebuilt per second from a snapshot"
COLUMNS = {
    "save_seconds": "seconds to save",
    "load_seconds": "seconds to load",
    "file_mib": "file MiB",
    "rows_per_second": "rows rebuilt/s",
}
WORKLOADS = ("three_hop", "four_hop_project", "star")


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in WORKLOADS:
        outcome = request.run("crown_recovery", workload, request.data.fifo(workload, share=1.0))
        more = dict(outcome.details)
        if more.get("load_seconds"):
            more["file_mib"] = more["file_bytes"] / 2**20
            more["rows_per_second"] = more["state_rows"] / more["load_seconds"]
        rows.append(row_of(outcome, "crown", workload, **more))
    return Result("recovery", request.command, request.data.describe(), request.limits, rows)


def chart(result: Result, axes: Any) -> None:
    rows = [row for row in result.rows if row.get("rows_per_second")]
    axes.bar([row["workload"] for row in rows], [row["rows_per_second"] / 1e6 for row in rows])
    axes.set_ylabel("million rows per second")
