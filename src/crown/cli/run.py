"""`crown run pipeline.toml`: run a pipeline and show how it goes."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import Console

    from crown.cli.live import About
    from crown.spark.pipeline import Pipeline
    from crown.spark.pipeline.checking import Check
    from crown.spark.pipeline.progress import Batches
    from crown.spark.pipeline.resume import ResumePoint
    from crown.spark.pipeline.running import Started

_REFRESH_SECONDS = 0.5


def run(
    pipeline: Annotated[Path, typer.Argument(help="TOML file with tables, query, sink and checkpoint.")],
    plain: Annotated[bool, typer.Option("--plain", help="One line per batch instead of a live table.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file; print the plan, the guarantees and the state.")
    ] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Serve a web page that shows the pipeline live, and print its address.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the console; 0 chooses one that is free.", min=0, max=65535)] = 0,
) -> None:
    """Run a pipeline on Spark. Ctrl-C stops it cleanly, and the next run continues where it stopped."""
    from rich.console import Console

    from crown.cli.interrupt import supervise
    from crown.cli.output import show
    from crown.cli.quiet import errors_to, kill_java, log_beside, output_to
    from crown.spark.pipeline import Pipeline
    from crown.spark.pipeline.claim import check_claim

    described = Pipeline.read(pipeline)
    checked = described.check()
    check_claim(described, checked)
    if check:
        show(report(described, checked))
        return
    _need_pyspark()
    log = log_beside(described.checkpoint)
    prints = any(sink.format == "console" for sink in described.written.values())  # Java does, to its own output
    with ExitStack() as stack:
        terminal = Console(highlight=False, soft_wrap=True) if prints else stack.enter_context(output_to(log))
        _say_cells(terminal, described, checked)
        terminal.print(f"Spark's log: {log}", markup=False)
        stack.enter_context(errors_to(log, terminal))
        shown = PipelineDisplay(described, checked, terminal, log, plain=plain or prints)
        if console or described.console:
            shown.serve(stack, port)
        supervise(shown.run, last_line="stopped; the next run continues from here", give_up=kill_java)


def _need_pyspark() -> None:
    from importlib.util import find_spec

    from crown.errors import CrownError

    if find_spec("pyspark") is None:
        raise CrownError("pipelines need PySpark", code="CROWN-NOT-INSTALLED", hint="pip install 'crown-ivm[spark]'")


def report(described: Pipeline, checked: Check) -> str:
    """Return what `--check` prints."""
    from crown.cli.budget import measure

    blocks = []
    if checked.unknown is None:
        for view in checked.views:
            blocks += [] if described.alone else [f"VIEW {view.name}\n{'=' * (5 + len(view.name))}"]
            blocks.append(str(view.explanation))
        budget = measure(checked, described)
        none = "STATE\n  not measured: synthetic rows do not fit this query"
        blocks.append(str(budget) if budget is not None else none)
    else:
        what = "The query is" if described.alone else "Views are"
        blocks.append(f"{what} planned when the pipeline starts: only Spark knows the columns of {checked.unknown}.")
    blocks.append("\n".join(["DELIVERY", *_delivery(described, checked)]))
    blocks += [f"table {name} is not read by {_queries(described)}" for name in checked.unread]
    blocks.append(f"{described.file} can run")
    return "\n\n".join(blocks)


def _delivery(described: Pipeline, checked: Check) -> list[str]:
    lines = []
    for view in checked.views:
        sink = described.written[view.name]
        if described.alone:
            lines.append(f"  {sink.format:<17}  {view.delivery}")
        else:
            lines.append(f"  {view.name:<17}  {f'{sink.format} {sink.where}'.strip()}, {view.delivery}")
    lines += [f"  {name:<17}  not written: expanded where other views read it" for name in described.names]
    return lines


def _queries(described: Pipeline) -> str:
    return "the query" if described.alone else "any view"


def _say_cells(console: Console, described: Pipeline, checked: Check) -> None:
    """Print the cost of more than one cell before the run starts."""
    from crown.plan.cells.together import lay_out_together
    from crown.plan.explain.cells import cost_lines, routed_cost_lines

    if checked.plan is None:
        return
    if described.alone:
        lines = cost_lines(checked.plan, described.cells)
    else:
        layout = lay_out_together(checked.plan, described.cells).layout
        lines = routed_cost_lines(layout.cell, merged=layout.merge is not None)
    for label, values in lines.items():
        console.print(f"{described.cells} cells, {label}: {'; '.join(values)}", markup=False)


class PipelineDisplay:
    """A pipeline, and where it is shown: on the terminal, and in the console if it is served."""

    def __init__(self, described: Pipeline, checked: Check, terminal: Console, log: Path, *, plain: bool) -> None:
        from crown.spark.pipeline.console import PipelineSource
        from crown.spark.pipeline.resume import read_resume_point

        self._described, self._terminal, self._log, self._plain = described, terminal, log, plain
        self._start, budget = read_resume_point(described.checkpoint), _budget(described, checked)
        self._source = PipelineSource(described, checked, self._start, budget=budget)
        self._about = _about(described, checked, self._start, budget, None)

    def serve(self, stack: ExitStack, port: int) -> None:
        """Open the console and print its address."""
        from dataclasses import replace

        from crown.console import Console

        served = stack.enter_context(Console(self._source, port=port))
        self._about = replace(self._about, console=served.url)
        self._terminal.print(f"console: {served.url}", markup=False)

    def run(self, stop: threading.Event) -> None:
        """Run until the query ends or `stop` is set."""
        from crown.errors import StateError
        from crown.spark.pipeline.running import start

        try:
            spark = self._described.session()
            try:
                spark.sparkContext.setLogLevel("ERROR")
                if not stop.is_set():
                    self._follow(start(self._described, spark), stop)
            finally:
                spark.stop()
        except StateError as error:
            if error.code != "CROWN-SPARK-QUERY":
                raise
            hint = f"see {self._log} for details"
            raise StateError(error.message, code=error.code, reason=error.reason, hint=hint) from error

    def _follow(self, started: Started, stop: threading.Event) -> None:
        from crown.spark.pipeline.figures import NodeFigures
        from crown.spark.pipeline.progress import Batches, rows_at_start

        rows, query = rows_at_start(self._described, self._start), started.query
        batches = Batches(query, self._described.rejects, rows, figures=NodeFigures(started.view))
        self._source.follow(batches)
        try:
            _watch(self._terminal, self._about, batches, stop, plain=self._plain)
        finally:
            if query.isActive:
                query.stop()
        self._source.ended = "stopped" if stop.is_set() else "ended"
        _raise_failure(query)


def _budget(described: Pipeline, checked: Check) -> float | None:
    """Return the bytes that the state will take, if the rows of all tables are known."""
    from crown.cli.budget import measure

    if not any(table.rows or table.window for table in described.tables):
        return None
    budget = measure(checked, described)
    return None if budget is None else budget.bytes


def _about(described: Pipeline, checked: Check, start: ResumePoint, budget: float | None, address: str | None) -> About:
    from crown.cli.live import About

    sinks = {name: f"{sink.format} {sink.where}".strip() for name, sink in described.written.items()}
    tables = ", ".join(table.name for table in described.tables)
    shown = ", ".join(sinks)
    if described.alone:
        shown = "" if checked.plan is None else ", ".join(column.name for column in checked.plan.columns)
    return About(described.title, f"{shown} over {tables}".strip(), sinks, described.alone, str(start), budget, address)


def _watch(console: Console, about: About, batches: Batches, stop: threading.Event, *, plain: bool) -> None:
    from rich.live import Live

    from crown.cli.live import display

    if plain:
        _print_batches(console, batches, stop)
        return
    with Live(display(about, batches), console=console, refresh_per_second=4) as live:
        while not stop.wait(_REFRESH_SECONDS):
            active = batches.query.isActive
            live.update(display(about, batches))
            if not active:
                return


def _print_batches(console: Console, batches: Batches, stop: threading.Event) -> None:
    from crown.cli.live import measures, view_measures

    printed = -1
    while not stop.wait(_REFRESH_SECONDS):
        active = batches.query.isActive
        for batch in batches.read():
            if batch.number > printed:
                words = "  ".join(f"{name} {value}" for name, value in measures(batch).items())
                console.print(words, markup=False)
                for name, told in view_measures(batch).items():
                    console.print(f"  {name}: {told}", markup=False)
                printed = batch.number
        if not active:
            return


def _raise_failure(query: StreamingQuery) -> None:
    from crown.spark.failure import crown_error

    failure = query.exception()
    if failure is not None:
        raise crown_error(str(failure))
