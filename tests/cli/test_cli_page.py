"""docs/cli.md is what the commands say of themselves. CROWN_UPDATE_FIXTURES=1 writes it anew."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from crown.cli.command import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
INTRODUCTION = """# Command line

Every command explains itself with `--help`. Errors go to standard error, with exit code 2; Ctrl-C ends a command with
exit code 130. `crown --install-completion` sets up completion for bash, zsh, fish or PowerShell, and `crown --version`
prints the version.
"""


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for command_name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {command_name}")
        else:
            yield f"{name} {command_name}", command


def described(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"## {name}\n"
    yield f"```\n{command.get_usage(context).removeprefix('Usage: ').strip()}\n```\n"
    yield command.help.strip() + "\n"
    records = [parameter.get_help_record(context) for parameter in command.params]
    if records:
        yield "| argument or option | |\n|---|---|"
        yield from (f"| `{re.sub(' +', ' ', used)}` | {said} |" for used, said in filter(None, records))
        yield ""


def page() -> str:
    parts = [INTRODUCTION]
    for name, command in commands(typer.main.get_command(app), "crown"):
        parts += described(name, command)
    return "\n".join(parts)


def test_the_page_shows_every_command() -> None:
    if os.environ.get("CROWN_UPDATE_FIXTURES"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "CROWN_UPDATE_FIXTURES=1 writes docs/cli.md anew"
