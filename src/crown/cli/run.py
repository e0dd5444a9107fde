"""`crown run pipeline.toml`: run a pipeline and show how it goes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import Console
    from rich.table import Table

    from crown.spark.pipeline import Pipeline
    from crown.spark.pipeline.checking import Check

_REFRESH_SECONDS = 0.5
_SHOWN = 8


def run(
    pipeline: Annotated[Path, typer.Argument(help="TOML file with tables, query, sink and checkpoint.")],
    plain: Annotated[bool, typer.Option("--plain", help="One line per batch instead of a live table.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file; print the plan, the guarantees and the state.")
    ] = False,
) -> None:
    """Run a pipeline on Spark. Ctrl-C stops it cleanly, and the next run continues where it stopped."""
    from rich.console import Console

    from crown.cli.interrupt import supervise
    from crown.cli.output import show
    from crown.cli.quiet import errors_to, kill_java, log_beside
    from crown.spark.pipeline import Pipeline
    from crown.spark.pipeline.claim import check_claim

    console = Console(highlight=False, soft_wrap=True)
    described = Pipeline.read(pipeline)
    checked = described.check()
    check_claim(described, checked)
    if check:
        show(report(described, checked))
        return
    _need_pyspark()
    _say_cells(console, described, checked)
    log = log_beside(described.checkpoint)
    console.print(f"Spark's log: {log}", markup=False)
    with errors_to(log, console):
        supervise(
            # What Spark prints itself would go through a live table.
            lambda stop: _run(console, described, stop, log, plain=plain or described.sink.format == "console"),
            last_line="stopped; the next run continues from here",
            give_up=kill_java,
        )


def _need_pyspark() -> None:
    from importlib.util import find_spec

    from crown.errors import CrownError

    if find_spec("pyspark") is None:
        raise CrownError("pipelines need PySpark", code="CROWN-NOT-INSTALLED", hint="pip install 'crown-ivm[spark]'")


def report(described: Pipeline, checked: Check) -> str:
    """Return what `--check` prints."""
    from crown.cli.budget import measure

    blocks = []
    if checked.explanation is not None:
        budget = measure(checked.explanation, described)
        none = "STATE\n  not measured: synthetic rows do not fit this query"
        blocks += [str(checked.explanation), str(budget) if budget is not None else none]
    else:
        blocks.append(
            f"The query is planned when the pipeline starts: only Spark knows the columns of {checked.unknown}."
        )
    blocks.append(f"DELIVERY\n  {described.sink.format:<17}  {checked.delivery}")
    blocks += [f"table {name} is not read by the query" for name in checked.unread]
    blocks.append(f"{described.file} can run")
    return "\n\n".join(blocks)


def _say_cells(console: Console, described: Pipeline, checked: Check) -> None:
    """What more than one cell costs, before it does."""
    from crown.plan.explain.cells import cost_lines

    if checked.explanation is not None:
        for label, values in cost_lines(checked.explanation.plan, described.cells).items():
            console.print(f"{described.cells} cells, {label}: {'; '.join(values)}", markup=False)


def _run(console: Console, described: Pipeline, stop: threading.Event, log: Path, *, plain: bool) -> None:
    from crown.errors import StateError

    try:
        spark = described.session()
        try:
            spark.sparkContext.setLogLevel("ERROR")
            if not stop.is_set():
                query = described.start(spark)
                try:
                    _watch(console, Watch(query, described.rejects), stop, plain=plain)
                finally:
                    if query.isActive:
                        query.stop()
                _raise_failure(query)
        finally:
            spark.stop()
    except StateError as error:
        if error.code != "CROWN-SPARK-QUERY":
            raise
        raise StateError(error.message, code=error.code, reason=error.reason, hint=f"see {log} for details") from error


class Watch:
    """The batches of a query as rows to show."""

    def __init__(self, query: StreamingQuery, rejects: str | None) -> None:
        self.query = query
        self._rejects = rejects
        self._rows: dict[int, dict[str, str]] = {}

    def rows(self) -> list[dict[str, str]]:
        """Return the last batches with changes, oldest first."""
        recent = {progress.batchId: progress for progress in self.query.recentProgress if progress.numInputRows}
        self._rows = {
            batch: self._rows.get(batch) or measures(progress, self._set_aside(batch))
            for batch, progress in recent.items()
        }
        return list(self._rows.values())

    def _set_aside(self, batch: int) -> int:
        from crown.spark.pipeline.setaside import count

        return 0 if self._rejects is None else count(self._rejects, batch, str(self.query.id))


def measures(progress: Any, rejected: int) -> dict[str, str]:
    """Return what a batch's progress says, in words."""
    observed = next((m for name, m in progress.observedMetrics.items() if name.split("-")[0] == "crown"), None)
    seconds = max(progress.durationMs.get("triggerExecution", 0) / 1000, 1e-3)
    values = observed.asDict() if observed is not None else {}
    return {
        "batch": str(progress.batchId),
        "updates/s": f"{(values.get('updates') or 0) / seconds:,.0f}",
        "deltas/s": f"{(values.get('deltas') or 0) / seconds:,.0f}",
        "lag": _lag(progress, seconds),
        "state": f"{(values.get('bytes') or 0) / 1e6:,.1f} MB",
        "counter changes/update": f"{values.get('counter_changes_per_update') or 0:.2f}",
        "rejected": f"{rejected:,}",
    }


def _lag(progress: Any, seconds: float) -> str:
    """Return the age of the newest deltas when they came out, and what the sources know to be waiting."""
    waiting = [
        f"{metrics[name]} {unit}"
        for source in progress.sources
        for metrics in [source.metrics or {}]
        for name, unit in (("numFilesOutstanding", "files"), ("maxOffsetsBehindLatest", "records"))
        if metrics.get(name) not in (None, "0")
    ]
    return ", ".join([f"{seconds:.1f} s", *waiting])


def _watch(console: Console, watch: Watch, stop: threading.Event, *, plain: bool) -> None:
    from rich.live import Live

    if plain:
        printed = -1
        while not stop.wait(_REFRESH_SECONDS):
            active = watch.query.isActive
            for row in watch.rows():
                if int(row["batch"]) > printed:
                    console.print("  ".join(f"{name} {value}" for name, value in row.items()), markup=False)
                    printed = int(row["batch"])
            if not active:
                return
        return
    with Live(_table(watch), console=console, refresh_per_second=4) as live:
        while not stop.wait(_REFRESH_SECONDS):
            active = watch.query.isActive
            live.update(_table(watch))
            if not active:
                return


def _table(watch: Watch) -> Table:
    from rich.table import Table

    table = Table(title=f"query {watch.query.id}", caption=watch.query.status["message"])
    rows = watch.rows()[-_SHOWN:]
    for name in rows[-1] if rows else ("batch", "updates/s", "deltas/s", "lag", "state", "rejected"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.values())
    return table


def _raise_failure(query: StreamingQuery) -> None:
    from crown.spark.failure import crown_error

    failure = query.exception()
    if failure is not None:
        raise crown_error(str(failure))
