"""What the demonstration says at the end: the verdict, the figures and a page with plan and result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from rich.console import Console

from crown import plan as planning
from crown import sql as front_end
from crown.demo.network import SQL, Network
from crown.demo.pipeline import Answer, Progress
from crown.plan.explain.text import explain

_SHOWN = 25


def compare(console: Console, deltas: Answer, expected: Answer, snapshot: Answer) -> bool:
    """Both ways to the view's content, its summed deltas and its snapshot, against Spark's batch SQL, row by row."""
    agree = True
    for name, answer in (("the sum of all deltas", deltas), ("the snapshot", snapshot)):
        missing, extra = expected - answer, answer - expected
        if missing or extra:
            agree = False
            console.print(
                f"[red bold]DIFFERENT[/red bold]: {name} lacks {missing.total():,} rows of Spark's batch result"
                f" and has {extra.total():,} that are not in it"
            )
        else:
            console.print(
                f"[green bold]EQUAL[/green bold]: {name} equals Spark's batch result, {expected.total():,} rows"
            )
    return agree


def summary(console: Console, progress: Progress) -> None:
    rate = progress.updates / progress.seconds
    console.print(
        f"throughput: {progress.updates:,} updates in {progress.seconds:.1f} s, {rate:,.0f} per second"
        f" (including the start of the stream and the fixed cost of {progress.batches} micro-batches)"
    )
    console.print(f"state: {progress.state_bytes / 1e6:.1f} MB in the engines after the last batch")


def show_page(folder: Path, answer: Answer, network: Network, *, cells: int) -> Path:
    """Write the page with the join tree, the guarantees and the top of the result."""
    tables = {**network.static, **network.stream}
    schema = {
        name: pa.schema([field for field in rows.schema if not field.name.startswith("_")])
        for name, rows in tables.items()
    }
    explanation = explain(*planning.plan_with_report(front_end.parse(SQL, schema), cells=cells))
    top = sorted(answer, key=lambda row: (-row[1], row[0]))[:_SHOWN]
    page = folder / "index.html"
    page.write_text(explanation.html(result=top), encoding="utf-8")
    return page.resolve()
