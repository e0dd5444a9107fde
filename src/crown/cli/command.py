"""The `crown` command: its subcommands, and errors of Crown as exit code 2."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from crown.cli.bench import bench
from crown.cli.console import console
from crown.cli.demo import demo
from crown.cli.explain import explain
from crown.cli.init import init
from crown.cli.profile import profile
from crown.cli.run import run
from crown.cli.size import size
from crown.errors import CrownError

app = typer.Typer(
    name="crown",
    help="Keep the result of a SQL join query up to date while its tables change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (init, explain, size, profile, run, console, demo):
    app.command()(command)
app.add_typer(bench, name="bench")


def _show_version(wanted: bool) -> None:
    if wanted:
        from crown._kernel import __version__

        typer.echo(f"crown {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run_command() -> int:
    """Run the command line and return the exit code."""
    try:
        app(prog_name="crown")  # completion looks the command up by this name, however it was started
    except CrownError as error:
        Console(stderr=True, highlight=False).print(str(error), style="red", markup=False, soft_wrap=True)
        return 2
    return 0
