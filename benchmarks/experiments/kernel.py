"""The kernel alone, without Arrow and Python: propagation and deltas against a bare hash set of the same rows."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.experiments import Request
from benchmarks.store import Result

TITLE = "Kernel: CPU time of the tree against a bare hash set that takes the same atom rows"
COLUMNS = {
    "hash_set_seconds": "hash set, s",
    "seconds": "with deltas, s",
    "times": "times",
    "silent_times": "times, without deltas",
    "rows": "delta rows",
    "rows_per_second": "delta rows/s",
    "bytes_per_row": "bytes/atom row",
}
EXAMPLE = ("cargo", "run", "--release", "--locked", "--quiet", "-p", "crown-kernel", "--example", "epinions", "--")


def run(request: Request) -> Result:
    request.progress("kernel: building and running its example")
    edges = request.data.edges()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.tsv"
        pairs = zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True)
        path.write_text("".join(f"{src}\t{dst}\n" for src, dst in pairs))
        output = subprocess.run([*EXAMPLE, str(path), "--json"], check=True, capture_output=True, text=True).stdout
    rows: list[dict[str, Any]] = []
    for line in output.splitlines():
        row = {"engine": "crown", "status": "ok", **json.loads(line)}
        row["times"] = row["seconds"] / row["hash_set_seconds"]
        row["silent_times"] = row["silent_seconds"] / row["hash_set_seconds"]
        row["rows_per_second"] = row["rows"] / row["seconds"]
        rows.append(row)
    ratios = {f"hash set / {row['workload']}": 1 / row["times"] for row in rows}
    return Result("kernel", request.command, request.data.describe(), request.limits, rows, ratios)


def chart(result: Result, axes: Any) -> None:
    names = [row["workload"] for row in result.rows[:3]]
    axes.bar(names, [row["times"] for row in result.rows[:3]], label="with deltas")
    axes.bar(names, [row["silent_times"] for row in result.rows[:3]], label="without")
    axes.set_ylabel("times the bare hash set")
    axes.legend()
