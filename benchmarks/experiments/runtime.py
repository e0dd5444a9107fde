"""Every query on every engine: time for the same FIFO stream, deltas produced and consumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.experiments import Request, compare, judge, panels, row_of
from benchmarks.job import Outcome
from benchmarks.store import Result
from benchmarks.stream import Stream, head
from benchmarks.workloads import WORKLOADS

TITLE = "Updates per second of each query, a delta after each batch of 1,000 updates"
DEFAULT = tuple(name for name in WORKLOADS if name not in ("three_hop_tables", "dumbbell"))  # which have their own
REWRITTEN = {
    "four_hop_project": ("differential", "dbsp", "flink", "pathway"),
    "star": ("differential", "dbsp", "flink", "pathway"),
    "dumbbell_project": ("differential", "dbsp", "flink", "pathway"),
    "snb_q2": ("flink",),
    "snb_q3": ("flink",),
    "snb_q4": ("differential", "dbsp", "flink", "pathway"),
}
BATCH = 1000
SUMMARY = ("three_hop", "snb_q1", "dumbbell_project", "snb_q4")
_NOTE = "hatched: stopped by the time limit, the rate up to that point; rewritten: by hand, for that engine"
SHORT_SECONDS, REPEAT = 3.0, 3
# Parts of the stream that are tried one after the other with engines that do not tell how far they
# came.
SHARES = (100, 10, 1)


def run(request: Request) -> Result:
    rows: list[dict[str, Any]] = []
    for workload in request.workloads or DEFAULT:
        stream = request.data.fifo(workload)
        if len(WORKLOADS[workload].tables) == 1:
            rows.append(row_of(_best(request, "crown", workload, stream, batch=0), "crown, each update", workload))
        for engine in ("crown", "pairwise", "duckdb", *request.peers):
            if engine != "spark_join":
                rows += _rows(request, engine, workload, stream)
    compare(rows)
    return Result("runtime", request.command, request.data.describe(), request.limits, rows, ratios(rows))


def _rows(request: Request, engine: str, workload: str, stream: Path) -> list[dict[str, Any]]:
    """The engine with the query as it is, then what else its user may try."""
    plain = _row(request, engine, engine, workload, stream)
    rows = [plain]
    if engine == "flink":
        rows.append(_row(request, "flink, MultiJoin", engine, workload, stream, options={"multi_join": True}))
        if plain["status"] == "ok":
            rows.append(_row(request, "flink, parallelism 2", engine, workload, stream, threads=2))
    if engine in REWRITTEN.get(workload, ()):
        name = f"{engine}, rewritten by hand"
        rows.append(_row(request, name, engine, workload, stream, options={"variant": "_rewritten"}))
    return rows


def _row(request: Request, name: str, engine: str, workload: str, stream: Path, **options: Any) -> dict[str, Any]:
    if engine not in judge.BLIND:
        outcome = _best(request, engine, workload, stream, batch=BATCH, label=name, **options)
        answer = judge.answer(request, outcome, name, engine, workload, stream, **options)
        return row_of(outcome, name, workload, answer=answer)
    answer = judge.agreement(request, name, engine, workload, stream, **options)
    if answer.startswith("wrong"):
        return row_of(Outcome(status="not timed"), name, workload, answer=answer)
    return row_of(_furthest(request, name, engine, workload, stream, **options), name, workload, answer=answer)


def _furthest(request: Request, name: str, engine: str, workload: str, stream: Path, **options: Any) -> Outcome:
    """The whole stream; or the longest beginning that it ends in time, when it would not tell how far it came."""
    done: Outcome | None = None
    for share in SHARES:
        part = stream if share == 1 else head(stream, max(1, len(Stream.load(stream)) // share))
        outcome = request.run(engine, workload, part, batch=BATCH, label=name, **options)
        if outcome.seconds is None and done is not None:
            done.status = f"{outcome.status}; in {done.seconds:.1f} s the first {done.updates:,} updates"
            return done
        done = outcome
        if outcome.seconds is None:
            break
    assert done is not None  # SHARES is not empty
    return done


def _best(request: Request, engine: str, workload: str, stream: Path, **options: Any) -> Outcome:
    """The fastest of a few runs when they are so short that whatever else the machine does would count."""
    best = request.run(engine, workload, stream, **options)
    for _ in range(REPEAT - 1):
        if best.status != "ok" or best.seconds is None or best.seconds >= SHORT_SECONDS:
            break
        again = request.run(engine, workload, stream, **options)
        if again.seconds is not None and again.seconds < best.seconds:
            best = again
    return best


def ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """How many times longer each rival takes per update than Crown."""
    own = {row["workload"]: row for row in rows if row["engine"] == "crown"}
    found = {}
    for row in rows:
        base = own[row["workload"]]
        if not row["engine"].startswith("crown") and row["updates_per_second"] and base["updates_per_second"]:
            found[f"{row['workload']}: {row['engine']}"] = base["updates_per_second"] / row["updates_per_second"]
    return found


def figure(result: Result) -> Any:
    shown = list(dict.fromkeys(row["workload"] for row in result.rows))
    return panels.draw(result, shown, columns=2, title=TITLE, note=_NOTE)


def summary(result: Result) -> Any:
    """The queries that say most, in one small picture: two that Crown is made for, a cycle, and one that it loses."""
    shown = [name for name in SUMMARY if any(row["workload"] == name for row in result.rows)]
    title = "Updates per second, one thread, the same stream for every engine"
    return panels.draw(result, shown, columns=2, title=title, note=_NOTE) if shown else None
