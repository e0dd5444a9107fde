"""The `crown` command. Each subcommand is a module here, with one function named like the command.

A subcommand imports what it needs inside its function, so that `crown --help` stays quick and the commands that
need no Spark run without it.
"""

from __future__ import annotations

import sys

from crown.cli.interrupt import INTERRUPTED, Interrupted, leave, raise_interrupts


def main() -> None:
    """Run the command line; show Crown's own errors without a traceback, and exit on Ctrl-C with one line."""
    try:
        raise_interrupts()
        from crown.cli.command import run_command  # slow imports come after the Ctrl-C handler is installed

        code = run_command()
    except (Interrupted, KeyboardInterrupt) as interrupted:
        print(str(interrupted) or "stopped", file=sys.stderr)
        leave(INTERRUPTED)
    sys.exit(code)
