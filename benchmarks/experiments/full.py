"""Full enumeration: the whole result every tenth of the stream, without delta maintenance."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, row_of
from benchmarks.store import Result

TITLE = "Full enumeration every tenth of the stream"
WORKLOADS = ("three_hop", "four_hop_project", "star", "snb_q1", "snb_q4")


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in context.workloads or WORKLOADS:
        stream = context.data.fifo(workload)
        outcome = context.run("crown_full", workload, stream)
        rows.append(row_of(outcome, "crown, pulled", workload, **outcome.details))
        outcome = context.run("duckdb", workload, stream, batch=max(1, outcome.updates // 10 or 100_000))
        rows.append(row_of(outcome, "duckdb", workload))
    return Result("full", context.command, context.data.describe(), context.limits, rows)


def chart(result: Result, axes: Any) -> None:
    workloads = list(dict.fromkeys(row["workload"] for row in result.rows))
    for position, name in enumerate(("crown, pulled", "duckdb")):
        points = [
            (workloads.index(r["workload"]) + 0.4 * position, r["seconds"])
            for r in result.rows
            if r["engine"] == name and r["seconds"]
        ]
        axes.bar([x for x, _ in points], [y for _, y in points], 0.4, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("seconds for the stream and ten results")
    axes.set_xticks([index + 0.2 for index in range(len(workloads))], workloads)
    axes.legend(fontsize=8)
