"""The console: one local web page that shows a running view or pipeline, live.

`source` defines the data that the page needs about a project; `embedded` provides it for views of this process, and
`crown.spark.pipeline.console` for pipelines. `server` serves the page. Nothing is measured unless a browser is
connected.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crown.console.embedded import EmbeddedSource, Observer
    from crown.console.server import Console
    from crown.console.source import ConsoleSource

__all__ = ["Console", "ConsoleSource", "EmbeddedSource", "Observer"]

_HOMES = {"Console": "server", "EmbeddedSource": "embedded", "Observer": "embedded", "ConsoleSource": "source"}


def __getattr__(name: str) -> Any:
    """Load the web server when a console is first opened: views don't need it."""
    if name in _HOMES:
        return getattr(import_module(f"crown.console.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'crown.console' has no attribute {name!r}")
