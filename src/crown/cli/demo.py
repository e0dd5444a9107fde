"""`crown demo`: a social network whose view is maintained on Spark and compared with recomputation."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
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
    from crown.demo.pipeline import DemoProgress
    from crown.plan import Explanation


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
        # Nothing here is worth waiting for when the user wants to exit; Java may be about to
        # start.
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
    from crown.demo.report import budget, explained, figures, say, state_line, verdicts, write_page

    console.print("[bold]Crown[/bold] keeps the result of this query up to date while its tables change:\n")
    console.print(SQL, style="cyan", markup=False)
    console.print(f"({MEANING})\n")
    with console.status("generating a social network"):
        social = network(scale, seed=seed)
        explanation = explained(social, cells=cells)
        limit = budget(explanation, social, cells=cells)
    _describe(console, social, batches)
    run = _run(console, social, explanation, limit, batches, cells)
    judged = verdicts(run.progress.answer, run.expected, run.snapshot)
    lines = [*figures(run.progress, run.recomputing), state_line(run.progress, limit)]
    say(console, judged, lines)
    page = write_page(output, explanation, run.progress, judged, lines, limit)
    console.print(f"verdict, charts, plan and result: {page}", soft_wrap=True)
    return all(verdict.equal for verdict in judged)


@dataclass(frozen=True)
class Run:
    """What the stream did, what its checkpoint holds, and what Spark's batch SQL says, in how many seconds."""

    progress: DemoProgress
    snapshot: Counter[tuple[Any, ...]]
    expected: Counter[tuple[Any, ...]]
    recomputing: float


def _describe(console: Console, social: Network, batches: int) -> None:
    static = ", ".join(f"{rows.num_rows:,} {name}s" for name, rows in social.static.items())
    changing = ", ".join(f"{changes.num_rows:,} of {name}" for name, changes in social.stream.items())
    console.print(f"The network: {static}; {social.updates:,} inserts and deletes ({changing}) in {batches} batches.")


def _run(console: Console, social: Network, explanation: Explanation, limit: float, batches: int, cells: int) -> Run:
    import tempfile

    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    import crown.spark
    from crown.console import Console as Page
    from crown.demo import pipeline
    from crown.spark.pipeline.checking import Check, CheckedView
    from crown.spark.pipeline.console import PipelineSource
    from crown.spark.pipeline.resume import ResumePoint

    with tempfile.TemporaryDirectory(prefix="crown-demo-") as scratch:
        folder = Path(scratch)
        described = pipeline.description(social, folder, cells=cells)
        checked = Check((CheckedView("crown demo", "", explanation),), None, plan=explanation.plan)
        shown = PipelineSource(described, checked, ResumePoint(None, None), budget=limit)
        with Page(shown) as page:
            console.print(f"console, while this runs: {page.url}", soft_wrap=True)
            with console.status("starting Spark"):
                pipeline.write_changes(social, folder / "changes", batches)
                spark = pipeline.start_spark(cells)
            try:
                tables = pipeline.open_tables(spark, social, folder / "changes")
                done = "{task.completed:,} of {task.total:,} updates, {task.fields[deltas]:,} result rows changed"
                columns = (TextColumn("maintaining"), BarColumn(), TextColumn(done), TimeElapsedColumn())
                with Bars(*columns, console=console) as bars:
                    loaded = sum(rows.num_rows for rows in social.static.values())
                    task = bars.add_task("", total=social.updates + loaded, deltas=0)
                    for progress in pipeline.run(spark, tables, folder / "checkpoint", shown, cells=cells):
                        bars.update(task, completed=progress.updates, deltas=progress.deltas)
                with console.status("reading the result from the checkpoint"):
                    snapshot = pipeline.rows_of(crown.spark.snapshot(spark, str(folder / "checkpoint")))
                with console.status("running the query with Spark's batch SQL"):
                    expected, recomputing = pipeline.batch_answer(spark, social)
            finally:
                spark.stop()
    return Run(progress, snapshot, expected, recomputing)
