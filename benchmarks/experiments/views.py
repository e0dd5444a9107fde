"""Many views over one state: one database against as many separate views, and against peers with one shared input."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import Request, compare, row_of
from benchmarks.experiments.lines import draw
from benchmarks.job import Outcome
from benchmarks.many_views import STREAM
from benchmarks.store import Result

TITLE = "Many views over one social network: updates per second, a delta of each view after each batch of 1,000 updates"
COLUMNS = {"state_mib": "state MiB", "growth_mib": "memory growth MiB"}
NUMBERS = (1, 4, 16, 64)
BATCH = 1000
PEERS = ("differential", "dbsp")
TOGETHER, JOINED, APART = "crown, one database", "crown, joins as views", "crown, separate views"


def run(request: Request) -> Result:
    stream = request.data.fifo(STREAM)
    rows: list[dict[str, Any]] = []
    for number in NUMBERS:
        asked: list[tuple[str, str, dict[str, Any]]] = [
            (TOGETHER, "crown_views", {"views": number}),
            (JOINED, "crown_views", {"views": number, "joins": True}),
            (APART, "crown_views", {"views": number, "apart": True}),
            *((peer, peer, {"query": f"snb_views_{number}"}) for peer in request.asked(PEERS)),
        ]
        for name, engine, options in asked:
            label = f"{name}, {number} views"
            outcome = request.run(engine, STREAM, stream, batch=BATCH, label=label, options=options)
            rows.append(_row(outcome, name, number))
    compare(rows)
    return Result("views", request.command, request.data.describe(), request.limits, rows, ratios(rows))


def _row(outcome: Outcome, name: str, number: int) -> dict[str, Any]:
    row = row_of(outcome, name, "views", parameter=number)
    for key in ("state", "growth"):
        size = outcome.details.get(f"{key}_bytes")
        row[f"{key}_mib"] = None if size is None else size / 2**20
    return row


def ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """How many times longer than one database the others take for an update, by the number of views."""
    own = {row["parameter"]: row["updates_per_second"] for row in rows if row["engine"] == TOGETHER}
    return {
        f"{row['parameter']} views: {row['engine']}": own[row["parameter"]] / row["updates_per_second"]
        for row in rows
        if row["engine"] != TOGETHER and row["updates_per_second"] and own[row["parameter"]]
    }


def chart(result: Result, axes: Any) -> None:
    draw(result, axes, value="updates_per_second", x="views", y="updates per second")
