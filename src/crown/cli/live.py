"""The live display of `crown run`: what runs, how fast, and the last batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crown.cli.budget import bytes_text
from crown.console.source import BatchFrame
from crown.spark.pipeline.progress import Batches
from crown.wording import counted

_SHOWN = 8
COLUMNS = ("batch", "updates/s", "deltas/s", "lag", "state", "counter changes/update", "rejected")


@dataclass(frozen=True)
class About:
    """What does not change while a pipeline runs. `sinks` are the sinks of views, by name; one query is `alone`.

    `budget` is what the state may take, in bytes.
    """

    name: str
    view: str
    sinks: Mapping[str, str]
    alone: bool
    start: str
    budget: float | None
    console: str | None


def measures(batch: BatchFrame) -> dict[str, str]:
    """Return a batch in words, by column."""
    values = (
        str(batch.number),
        f"{batch.updates / batch.seconds:,.0f}",
        f"{batch.deltas / batch.seconds:,.0f}",
        batch.lag,
        bytes_text(batch.bytes),
        f"{batch.effort:.2f}",
        f"{batch.rejected:,}",
    )
    return dict(zip(COLUMNS, values, strict=True))


def view_measures(batch: BatchFrame) -> dict[str, str]:
    """Return what a batch did to each of several views, in words."""
    return {name: f"{view.deltas:,} deltas, {_rows(view.rows)}" for name, view in batch.views.items()}


def _rows(rows: int | None) -> str:
    return "rows not known" if rows is None else f"{rows:,} rows"


def display(about: About, batches: Batches) -> RenderableType:
    """Return the whole display."""
    frames = batches.read()
    views = [] if about.alone else [_views(about, batches)]
    return Group(_head(about, batches, frames), *views, _table(frames))


def _views(about: About, batches: Batches) -> Table:
    """Return a line for each view."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in ("view", "rows", "deltas", "sink"):
        table.add_column(name, justify="right" if name in ("rows", "deltas") else "left", no_wrap=True)
    totals = batches.views
    for name, sink in about.sinks.items():
        total = totals[name]
        rows = "" if total.rows is None else f"{total.rows:,}"
        table.add_row(Text(name, style="bold"), rows, f"{total.deltas:,}", Text(sink))
    return table


def _head(about: About, batches: Batches, frames: list[BatchFrame]) -> Table:
    head = Table.grid(padding=(0, 2))
    head.add_column(style="dim", no_wrap=True)
    head.add_column(overflow="ellipsis", no_wrap=True)
    head.add_row("pipeline", Text(about.name, style="bold"))
    head.add_row("view" if about.alone else "views", Text(about.view))
    if about.alone:
        head.add_row("sink", Text("".join(about.sinks.values())))
    head.add_row("start", Text(about.start))
    head.add_row("now", Text(str(batches.query.status["message"])))
    totals = batches.totals
    if frames:
        last = frames[-1]
        recent = frames[-_SHOWN:]
        seconds = sum(batch.seconds for batch in recent)
        rate = sum(batch.updates for batch in recent) / seconds
        head.add_row("updates", Text(f"{totals.updates:,}, {rate:,.0f} per second in the last batches; lag {last.lag}"))
        rejected = f"; {totals.rejected:,} rejected" if totals.rejected else ""
        head.add_row(
            "result", Text(f"{counted(totals.deltas, 'row')} changed in {counted(totals.batches, 'batch')}{rejected}")
        )
        head.add_row("state", Text(_state(last.bytes, about.budget)))
    if about.console is not None:
        head.add_row("console", Text(about.console, style="cyan", no_wrap=False, overflow="fold"))
    return head


def _state(size: int, budget: float | None) -> str:
    if not budget:
        return f"{bytes_text(size)}; no budget: set rows = NUMBER for each table"
    return f"{bytes_text(size)}, {size / budget:.0%} of the budget of {bytes_text(budget)}"


def _table(frames: list[BatchFrame]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for batch in frames[-_SHOWN:]:
        table.add_row(*measures(batch).values())
    return table
