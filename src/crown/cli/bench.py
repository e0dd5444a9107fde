"""`crown bench`: the experiments of `benchmarks/`, from a checkout of the project."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from crown.errors import CrownError

bench = typer.Typer(help="Crown and its rivals on the paper's experiments.", no_args_is_help=True)

# About ten minutes on two cores with the built-in engines alone.
SELECTION = ("runtime", "crossing", "selectivity", "latency", "memory", "recovery", "dumbbell")


@bench.command("list")
def list_experiments() -> None:
    """The experiments, what each varies, and the engines that can be asked for."""
    experiments, engines = _suite("experiments"), _suite("engines")
    for name in experiments.NAMES:
        typer.echo(f"{name:14} {experiments.experiment(name).TITLE}")
    typer.echo(f"\nbuilt in: {', '.join(engines.BUILT_IN)}\npeers:    {', '.join(engines.PEERS)}")


@bench.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment of `crown bench list`, `selection`, or `all`.")],
    peers: Annotated[str, typer.Option(help="Peers to compare with, by commas; they must be installed.")] = "",
    graph: Annotated[
        Path | None, typer.Option(help="A SNAP edge list (plain, .gz or .zst) to use as the graph.")
    ] = None,
    social: Annotated[Path | None, typer.Option(help="A folder of LDBC SNB CSV files.")] = None,
    scale: Annotated[float, typer.Option(help="Size of generated data; 1 is 500 thousand edges.")] = 0.2,
    workloads: Annotated[str, typer.Option(help="Only these queries, by commas.")] = "",
    seconds: Annotated[float, typer.Option(help="Time limit of one engine on one stream.")] = 30.0,
    memory: Annotated[int, typer.Option(help="Memory limit of one engine, in GiB.")] = 8,
    output: Annotated[Path | None, typer.Option(help="Folder for the result files.")] = None,
) -> None:
    """Run one experiment (or several) and store what was measured under `benchmarks/results`."""
    for result in measure(name, _names(peers), graph, social, scale, _names(workloads), seconds, memory):
        path = result.save(output) if output else result.save()
        _show(result)
        typer.echo(f"stored in {path}")


@bench.command()
def report() -> None:
    """Write docs/benchmarks.md and its pictures from the stored results."""
    typer.echo(f"written: {_suite('report').write()}")


@bench.command()
def check(
    tolerance: Annotated[float, typer.Option(help="How much worse a ratio may be.")] = 0.2,
    names: Annotated[str, typer.Option(help="Experiments to repeat, by commas.")] = "runtime",
) -> None:
    """Repeat experiments and compare the ratios to rivals with the stored ones; worse than the tolerance fails."""
    store = _suite("store")
    worse = 0
    for name in _names(names):
        stored = store.load(name)
        if stored is None:
            raise CrownError(f"no stored result for {name}", code="CROWN-BENCH", hint=f"crown bench run {name}")
        for result in measure(name, (), None, None, 0.2, (), 30.0, 8):
            for key, before in stored.ratios.items():
                now = result.ratios.get(key)
                if now is not None and now < before * (1 - tolerance):
                    worse += 1
                    typer.echo(f"{name}: {key}: {before:.2f} before, {now:.2f} now")
    typer.echo(f"{worse} ratios are more than {tolerance:.0%} worse than the stored ones")
    if worse:
        raise typer.Exit(1)


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
    """Runs the experiments that `name` stands for, one result after the other."""
    from rich.console import Console

    experiments, data = _suite("experiments"), _suite("data")
    names = {"selection": SELECTION, "all": experiments.NAMES}.get(name, (name,))
    if unknown := set(names) - set(experiments.NAMES):
        raise CrownError(f"no experiment {', '.join(unknown)}", code="CROWN-BENCH", hint="see `crown bench list`")
    console = Console(stderr=True)
    source = data.Data(graph=str(graph) if graph else None, social=str(social) if social else None, scale=scale)
    for number, one in enumerate(names, start=1):
        with console.status(one) as status:
            title = f"[{number}/{len(names)}] {one}"

            def progress(step: str, title: str = title) -> None:
                status.update(f"{title}: {step}")

            context = experiments.Context(source, peers, seconds, memory << 30, workloads, _command(one), progress)
            yield experiments.experiment(one).run(context)


def _command(name: str) -> str:
    """The command line that was given, with the experiment's own name and without folders of this machine."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    words = [name if word in ("selection", "all") else word for word in words]
    return " ".join(["crown", *words])


def _show(result: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=result.experiment)
    shown = ("workload", "parameter", "engine", "updates_per_second", "seconds", "peak_mb", "status")
    for column in shown:
        table.add_column(
            column.replace("_", " "), justify="left" if column in ("workload", "engine", "status") else "right"
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
    """A module of `benchmarks/`, which is part of a checkout and not of the installed package."""
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
            "no benchmarks here", code="CROWN-BENCH", hint="run `crown bench` in the top folder of a checkout of Crown"
        ) from error
