"""`crown bench`: the experiments of `benchmarks/`, from a checkout of the project."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from crown.errors import CrownError

bench = typer.Typer(
    help="Run the paper's experiments on Crown and other engines, in the top directory of a checkout of Crown.",
    no_args_is_help=True,
)

# About ten minutes on two cores with the built-in engines alone.
SELECTION = ("runtime", "full", "selectivity", "latency", "memory", "recovery", "crossing", "dumbbell")

Peers = Annotated[
    str, typer.Option(help="Comma-separated peers to compare with (see `crown bench list`); default none.")
]
Graph = Annotated[
    Path | None, typer.Option(help="A SNAP edge list (plain, .gz or .zst) as the graph, instead of a generated one.")
]
Social = Annotated[
    Path | None,
    typer.Option(help="A directory of LDBC SNB CSV files as the social network, instead of a generated one."),
]
Scale = Annotated[float, typer.Option(help="Size of generated data; 1 is 500 thousand edges.")]
Workloads = Annotated[str, typer.Option(help="Comma-separated queries to run, if the experiment has several.")]
Seconds = Annotated[float, typer.Option(help="Time limit of one engine on one stream.")]
Memory = Annotated[int, typer.Option(help="Memory limit of one engine and its processes, in GiB.")]


@bench.command("list")
def list_experiments() -> None:
    """List the experiments, the queries and the engines."""
    from rich.console import Console
    from rich.table import Table

    experiments, engines, workloads = _suite("experiments"), _suite("engines"), _suite("workloads")
    console = Console()
    for title, rows in (
        ("experiments", [(name, experiments.experiment(name).TITLE) for name in experiments.NAMES]),
        ("queries", [(name, workload.title) for name, workload in workloads.WORKLOADS.items()]),
        ("engines", list(engines.TITLES.items())),
    ):
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    console.print(f"selection: {', '.join(SELECTION)}")
    console.print(f"peers (optional, see benchmarks/README.md): {', '.join(engines.PEERS)}")


@bench.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment of `crown bench list`, `selection`, or `all`.")],
    peers: Peers = "",
    graph: Graph = None,
    social: Social = None,
    scale: Scale = 0.2,
    workloads: Workloads = "",
    seconds: Seconds = 30.0,
    memory: Memory = 8,
    output: Annotated[
        Path | None, typer.Option(help="Directory for result and picture; default benchmarks/results and docs/images.")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Keep the stored results of other queries, to run a long experiment in parts.")
    ] = False,
) -> None:
    """Run one experiment (or several), print a table, store what was measured and draw its picture.

    Every engine reads the same stream, in a separate process, under the same limits. Results are compared: if two
    engines differ the run fails.
    """
    for result in measure(name, _names(peers), graph, social, scale, _names(workloads), seconds, memory):
        _show(result)
        store = _suite("store")
        folder = output or store.RESULTS
        if add and (stored := store.load(result.experiment, folder)) is not None:
            try:
                result = store.joined(stored, result)
            except ValueError as error:
                raise CrownError(
                    str(error), code="CROWN-BENCH", hint="run the whole experiment, without --add"
                ) from error
        path = result.save(folder)
        picture = _suite("report").draw(result, *([output] if output else []))
        typer.echo(f"stored in {path}, drawn in {picture}")


@bench.command()
def report() -> None:
    """Write docs/benchmarks.md and its pictures from the stored results."""
    typer.echo(f"written: {_suite('report').write()}")


@bench.command()
def check(
    tolerance: Annotated[float, typer.Option(help="How much worse a ratio may be.")] = 0.2,
    names: Annotated[str, typer.Option(help="Comma-separated experiments to repeat.")] = "runtime",
    graph: Graph = None,
    social: Social = None,
) -> None:
    """Repeat stored experiments and compare the ratios to the other engines; fail if one is worse than the tolerance.

    Scale, queries and limits are those of the stored result. When it was taken on a graph of yours, name that again.
    Peers other than the built-in engines are not repeated. A query whose ratio seems worse is measured a second time,
    for a machine has bad minutes, and the better ratio counts.
    """
    store = _suite("store")
    worse = compared = 0
    for name in _names(names):
        stored = store.load(name)
        if stored is None:
            raise CrownError(f"no stored result for {name}", code="CROWN-BENCH", hint=f"crown bench run {name}")
        ratios = _repeat(name, stored, graph, social, stored.settings["workloads"])
        compared += len(stored.ratios.keys() & ratios.keys())
        if doubtful := store.regressions(stored.ratios, ratios, tolerance):
            queries = {key.split(":")[0] for key in doubtful} & _suite("workloads").WORKLOADS.keys()
            again = _repeat(name, stored, graph, social, sorted(queries) or stored.settings["workloads"])
            ratios |= {key: max(ratios[key], again.get(key, 0.0)) for key in doubtful}
        for key, (before, now) in store.regressions(stored.ratios, ratios, tolerance).items():
            worse += 1
            typer.echo(f"{name}: {key}: {before:.2f} before, {now:.2f} now")
    typer.echo(f"{worse} of {compared} ratios are more than {tolerance:.0%} worse than the stored ones")
    if worse:
        raise typer.Exit(1)


def _repeat(
    name: str, stored: Any, graph: Path | None, social: Path | None, workloads: Sequence[str]
) -> dict[str, float]:
    """Return the ratios that the stored experiment has now."""
    source = _suite("data").Data(
        graph=str(graph) if graph else None, social=str(social) if social else None, scale=stored.settings["scale"]
    )
    if {key: stored.data[key] for key in source.describe()} != source.describe():
        raise CrownError(
            f"the stored result of {name} was measured on different data: {stored.data}",
            code="CROWN-BENCH",
            hint="give the same data with --graph and --social",
        )
    results = measure(
        name,
        (),
        graph,
        social,
        stored.settings["scale"],
        tuple(workloads),
        stored.limits["seconds"],
        stored.limits["memory_gib"],
    )
    return {key: ratio for result in results for key, ratio in result.ratios.items()}


def measure(
    name: str,
    peers: tuple[str, ...],
    graph: Path | None,
    social: Path | None,
    scale: float,
    workloads: tuple[str, ...],
    seconds: float,
    memory: int,
) -> Any:
    """Run the experiments that `name` selects, and yield their results."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    experiments, engines, data = _suite("experiments"), _suite("engines"), _suite("data")
    names = {"selection": SELECTION, "all": experiments.NAMES}.get(name, (name,))
    if unknown := set(names) - set(experiments.NAMES):
        raise CrownError(f"no experiment {', '.join(unknown)}", code="CROWN-BENCH", hint="see `crown bench list`")
    if unknown := set(peers) - set(engines.PEERS):
        raise CrownError(f"no peer {', '.join(unknown)}", code="CROWN-BENCH", hint=f"peers: {', '.join(engines.PEERS)}")
    source = data.Data(graph=str(graph) if graph else None, social=str(social) if social else None, scale=scale)
    columns = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(names))
        for one in names:

            def progress(step: str, one: str = one) -> None:
                bar.update(task, description=f"{one}: {step}")

            progress("its stream")
            started = time.monotonic()
            request = experiments.Request(source, peers, seconds, memory << 30, workloads, _command(one), progress)
            result = experiments.experiment(one).run(request)
            result.elapsed_seconds = round(time.monotonic() - started, 1)
            result.settings = {"scale": scale, "workloads": list(workloads), "peers": list(peers)}
            bar.advance(task)
            yield result


def _command(name: str) -> str:
    """Return the command line that was given, with the experiment's own name and without folders of this machine."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    words = [name if word in ("selection", "all") else word for word in words]
    return " ".join(["crown", *words])


def _show(result: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=result.experiment)
    usual = ("workload", "parameter", "engine", "updates_per_second", "seconds", "peak_mb", "status", "answer")
    shown = [column for column in usual if any(row.get(column) is not None for row in result.rows)]
    for column in shown:
        table.add_column(
            column.replace("_", " "),
            justify="left" if column in ("workload", "engine", "status", "answer") else "right",
        )
    for row in result.rows:
        table.add_row(*(_cell(row.get(column)) for column in shown))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return (
        f"{value:,.3g}"
        if isinstance(value, float) and value < 100
        else f"{value:,.0f}"
        if isinstance(value, float)
        else str(value)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _suite(module: str) -> Any:
    """Return a module of `benchmarks/`, which is part of a checkout and not of the installed package."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(f"benchmarks.{module}")
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith("benchmarks"):
            raise CrownError(
                f"the benchmarks need the package {error.name}",
                code="CROWN-BENCH",
                hint="pip install 'crown-ivm[bench]'",
            ) from error
        raise CrownError(
            "there are no benchmarks in this directory",
            code="CROWN-BENCH",
            hint="run `crown bench` in the top directory of a checkout of Crown",
        ) from error
