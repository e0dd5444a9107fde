"""Every query on every engine: time for the same FIFO stream, deltas produced and consumed."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Context, compare, row_of
from benchmarks.store import Result
from benchmarks.workloads import WORKLOADS

TITLE = "Run time of each query, deltas after each batch of 1,000 updates"
DEFAULT = ("three_hop", "four_hop_project", "two_comb", "star", "dumbbell_project", "snb_q1", "snb_q3", "snb_q4")
REWRITTEN = {"four_hop_project": ("dbsp", "differential"), "star": ("dbsp", "differential")}
GRAPH_ONLY = ("dbsp", "differential", "pathway")
BATCH = 1000


def run(context: Context) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in context.workloads or DEFAULT:
        stream = context.data.fifo(workload)
        if len(WORKLOADS[workload].tables) == 1:
            rows.append(row_of(context.run("crown", workload, stream, batch=0), "crown, each update", workload))
        for engine in ("crown", "pairwise", "duckdb", *context.peers):
            if engine == "spark_join" or (engine in GRAPH_ONLY and workload.startswith("snb")):
                continue
            rows.append(row_of(context.run(engine, workload, stream, batch=BATCH), engine, workload))
            if engine in REWRITTEN.get(workload, ()):
                outcome = context.run(engine, workload, stream, batch=BATCH, options={"variant": "_rewritten"})
                rows.append(row_of(outcome, f"{engine}, rewritten by hand", workload))
    compare(rows)
    return Result("runtime", context.command, context.data.describe(), context.limits, rows, ratios(rows))


def ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """How many times longer each engine takes per update than Crown."""
    own = {row["workload"]: row for row in rows if row["engine"] == "crown"}
    found = {}
    for row in rows:
        base = own[row["workload"]]
        if row["engine"] != "crown" and row["updates_per_second"] and base["updates_per_second"]:
            found[f"{row['workload']}: {row['engine']}"] = base["updates_per_second"] / row["updates_per_second"]
    return found


def chart(result: Result, axes: Any) -> None:
    workloads = list(dict.fromkeys(row["workload"] for row in result.rows))
    names = list(dict.fromkeys(row["engine"] for row in result.rows))
    width = 0.8 / len(names)
    for position, name in enumerate(names):
        points = [
            (index + position * width, row["updates_per_second"])
            for index, workload in enumerate(workloads)
            for row in result.rows
            if row["workload"] == workload and row["engine"] == name and row["updates_per_second"]
        ]
        if points:
            axes.bar([x for x, _ in points], [y for _, y in points], width, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("updates per second")
    axes.set_xticks([index + 0.4 - width / 2 for index in range(len(workloads))], workloads, rotation=20)
    axes.legend(fontsize=7, ncols=3)
