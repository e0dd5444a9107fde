"""`crown console view.crown`: look at a saved view in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def console(
    view: Annotated[Path, typer.Argument(help="File that View.save wrote.")],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 chooses one that is free.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the default browser.")] = False,
) -> None:
    """Show a saved view in a browser: its tree with rows and bytes, the guarantee, its rows. Ctrl-C ends it."""
    import threading

    from crown.view import View

    with View.load(view).console(name=view.stem, port=port) as page:
        typer.echo(f"console: {page.url}\nCtrl-C ends it")
        if open_browser:
            typer.launch(page.url)
        threading.Event().wait()
