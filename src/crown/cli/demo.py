"""`crown demo`."""

from __future__ import annotations

import typer


def demo() -> None:
    """Crown's main job, end to end, on a generated social network."""
    typer.echo("The engine is not part of this build yet, so there is nothing to show.")
