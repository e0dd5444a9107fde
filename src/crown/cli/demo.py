"""`crown demo`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections import Counter
    from typing import Any

    from rich.console import Console

    from crown.demo.network import Network
    from crown.demo.pipeline import Progress


def demo(
    scale: Annotated[float, typer.Option(help="Size of the network; 0.1 has about 300 thousand messages.")] = 0.03,
    batches: Annotated[int, typer.Option(help="Number of batches in the stream.")] = 20,
    cells: Annotated[int, typer.Option(help="Number of engines, and of cores for Spark.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed generates the same network.")] = 2023,
    output: Annotated[Path, typer.Option(help="Directory for the page with plan and result.")] = Path("artifacts/demo"),
) -> None:
    """Crown's main job: a social network streams through Spark, a view is kept up to date, Spark itself checks it."""
    from rich.console import Console

    from crown.errors import CrownError

    if importlib.util.find_spec("pyspark") is None:
        raise CrownError("the demo needs PySpark", code="CROWN-NOT-INSTALLED", hint="pip install 'crown-ivm[spark]'")
    from crown.cli.interrupt import supervise
    from crown.cli.quiet import errors_to, kill_java

    console = Console(highlight=False)
    output.mkdir(parents=True, exist_ok=True)

    def end_java(stop: Event) -> None:
        # Nothing here is worth waiting for when the user wants to leave; Java may be about to start.
        stop.wait()
        while True:
            kill_java()
            sleep(0.2)

    def work(stop: Event) -> bool:
        Thread(target=end_java, args=[stop], daemon=True).start()
        return _show(console, scale, batches, cells, seed, output)

    with errors_to(output / "spark.log", console):
        agree = supervise(work, last_line="stopped", give_up=kill_java)
    if not agree:
        raise typer.Exit(1)


def _show(console: Console, scale: float, batches: int, cells: int, seed: int, output: Path) -> bool:
    """Run the demonstration; whether the view and Spark's own answer agree."""
    from crown.demo.network import MEANING, SQL, network
    from crown.demo.report import compare, show_page, summary

    console.print("[bold]Crown[/bold] keeps the result of this query up to date while its tables change:\n")
    console.print(SQL, style="cyan", markup=False)
    console.print(f"({MEANING})\n")
    with console.status("generating a social network"):
        social = network(scale, seed=seed)
    _describe(console, social, batches)
    progress, expected, snapshot = _run(console, social, batches, cells)
    agree = compare(console, progress.answer, expected, snapshot)
    summary(console, progress)
    page = show_page(output, progress.answer, social, cells=cells)
    console.print(f"plan and result: {page}")
    return agree


def _describe(console: Console, social: Network, batches: int) -> None:
    static = ", ".join(f"{rows.num_rows:,} {name}s" for name, rows in social.static.items())
    changing = ", ".join(f"{changes.num_rows:,} of {name}" for name, changes in social.stream.items())
    console.print(f"The network: {static}; {social.updates:,} inserts and deletes ({changing}) in {batches} batches.")


def _run(
    console: Console, social: Network, batches: int, cells: int
) -> tuple[Progress, Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    import tempfile

    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    import crown.spark
    from crown.demo import pipeline

    with tempfile.TemporaryDirectory(prefix="crown-demo-") as scratch:
        folder = Path(scratch)
        with console.status("starting Spark"):
            pipeline.write_changes(social, folder / "changes", batches)
            spark = pipeline.start_spark(cells)
        try:
            tables = pipeline.open_tables(spark, social, folder / "changes")
            columns = (
                TextColumn("maintaining"),
                BarColumn(),
                TextColumn("{task.completed:,} of {task.total:,} updates, {task.fields[deltas]:,} result rows changed"),
                TimeElapsedColumn(),
            )
            with Bars(*columns, console=console) as bars:
                loaded = sum(rows.num_rows for rows in social.static.values())
                task = bars.add_task("", total=social.updates + loaded, deltas=0)
                for progress in pipeline.run(spark, tables, folder / "checkpoint", cells=cells):
                    bars.update(task, completed=progress.updates, deltas=progress.deltas)
            with console.status("reading the result from the checkpoint"):
                snapshot = pipeline.rows_of(crown.spark.snapshot(spark, str(folder / "checkpoint")))
            with console.status("running the query with Spark's batch SQL"):
                expected = pipeline.batch_answer(spark, social)
        finally:
            spark.stop()
    return progress, expected, snapshot
