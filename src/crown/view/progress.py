"""Report the progress of long operations to a function, or as a bar in terminals and notebooks."""

from __future__ import annotations

import contextlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO, TypeAlias

from crown.errors import CrownError
from crown.view.arguments import shown

# Called with the number of rows read so far, and the total.
Progress: TypeAlias = Callable[[int, int], object]

_SECONDS = 1.0  # before a bar appears
_REDRAWN = 0.1
_WIDTH = 30


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(0, 0)
    except TypeError:
        return False
    except ValueError:  # it has none that Python knows, such as some built-in functions
        return True
    return True


@contextlib.contextmanager
def reporting(progress: Progress | bool | None, title: str) -> Iterator[Progress | None]:
    """Yield the function to report to: the given one; a bar for True; for None a bar if output is interactive."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise CrownError(
            f"progress must be a function, True or False, not {shown(progress)}",
            code="CROWN-ARGUMENT",
            hint="give a function of two numbers: the rows read so far, and all rows to read",
        )
    if callable(progress) and not _takes_two(progress):
        raise CrownError(
            "the function of progress can't be called with two numbers",
            code="CROWN-ARGUMENT",
            hint="give a function of two numbers: the rows read so far, and all rows to read",
        )
    if progress is None:
        progress = _is_seen(sys.stderr)
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        bar = Bar(title, sys.stderr)
        try:
            yield bar.show
        finally:
            bar.clear()


class Bar:
    """A line that is overwritten repeatedly and erased at the end."""

    def __init__(self, title: str, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._stream = stream
        self._clock = clock
        self._next = clock() + _SECONDS
        self._drawn = 0

    def show(self, done: int, total: int) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _REDRAWN
        share = min(1.0, done / total) if total else 1.0
        full = round(_WIDTH * share)
        line = f"{self._title} [{'█' * full}{' ' * (_WIDTH - full)}] {share:4.0%}  {done:,} of {total:,} rows"
        self._stream.write(f"\r{line:<{self._drawn}}")
        self._stream.flush()
        self._drawn = len(line)

    def clear(self) -> None:
        if self._drawn:
            self._stream.write(f"\r{'':<{self._drawn}}\r")
            self._stream.flush()


def _is_seen(stream: TextIO | None) -> bool:
    """Whether output is interactive: a terminal or a notebook."""
    if stream is None:
        return False
    if stream.isatty():
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
