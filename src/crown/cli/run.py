"""`crown run pipeline.toml`: run a pipeline and show how it goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.table import Table

_REFRESH_SECONDS = 0.5


def run(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline's TOML file: tables, query, sink, checkpoint.")],
    plain: Annotated[bool, typer.Option("--plain", help="One line per batch instead of a live table.")] = False,
) -> None:
    """Run a pipeline on Spark: Ctrl-C stops it cleanly, the next run goes on where it was."""
    from rich.console import Console
    from rich.live import Live

    from crown.spark.pipeline import Pipeline

    console = Console()
    described = Pipeline.read(pipeline)
    spark = described.session()
    spark.sparkContext.setLogLevel("ERROR")
    query = described.start(spark)
    shown = -1
    try:
        if plain:
            while query.isActive:
                time.sleep(_REFRESH_SECONDS)
                shown = _print_new(console, query, shown)
            _print_new(console, query, shown)
        else:
            with Live(_table(query), console=console, refresh_per_second=4) as live:
                while query.isActive:
                    time.sleep(_REFRESH_SECONDS)
                    live.update(_table(query))
        _raise_failure(query)
    except KeyboardInterrupt:
        console.print("stopping; the next run goes on from here")
        query.stop()
    finally:
        spark.stop()


def measures(progress: Any) -> dict[str, str]:
    """What a batch's progress says, in words."""
    observed = progress.observedMetrics.get("crown")
    seconds = max(progress.durationMs.get("triggerExecution", 0) / 1000, 1e-3)
    values = observed.asDict() if observed is not None else {}
    return {
        "batch": str(progress.batchId),
        "updates/s": f"{(values.get('updates') or 0) / seconds:,.0f}",
        "deltas/s": f"{(values.get('deltas') or 0) / seconds:,.0f}",
        "lag": _lag(progress, seconds),
        "state": f"{(values.get('bytes') or 0) / 1e6:,.1f} MB",
        "lambda": f"{values.get('enclosureness') or 0:.2f}",
        "rejected": f"{values.get('rejected') or 0:,}",
    }


def _lag(progress: Any, seconds: float) -> str:
    """The age of the newest deltas when they came out, and what the sources know to be waiting."""
    waiting = [
        f"{metrics[name]} {unit}"
        for source in progress.sources
        for metrics in [source.metrics or {}]
        for name, unit in (("numFilesOutstanding", "files"), ("maxOffsetsBehindLatest", "records"))
        if metrics.get(name) not in (None, "0")
    ]
    return ", ".join([f"{seconds:.1f} s", *waiting])


def _table(query: StreamingQuery) -> Table:
    from rich.table import Table

    table = Table(title=f"query {query.id}", caption=query.status["message"])
    recent = [measures(progress) for progress in query.recentProgress if progress.numInputRows][-8:]
    for name in recent[-1] if recent else ("batch", "updates/s", "deltas/s", "lag", "state", "lambda"):
        table.add_column(name, justify="right")
    for row in recent:
        table.add_row(*row.values())
    return table


def _print_new(console: Any, query: StreamingQuery, shown: int) -> int:
    for progress in query.recentProgress:
        if progress.batchId > shown and progress.numInputRows:
            shown = progress.batchId
            console.print("  ".join(f"{name} {value}" for name, value in measures(progress).items()), highlight=False)
    return shown


def _raise_failure(query: StreamingQuery) -> None:
    from crown.spark.failure import crown_error

    failure = query.exception()
    if failure is not None:
        raise crown_error(str(failure))
