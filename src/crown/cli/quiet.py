"""Redirect Spark's output to a file, so that it can't garble the display."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console


def log_beside(path: str) -> Path:
    """Return the log file of a run that writes to `path`: next to it, or a temporary one if `path` is remote."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        return Path(tempfile.gettempdir()) / f"crown-{os.getpid()}.log"
    return Path(path).with_name(f"{Path(path).name}.log")


@contextlib.contextmanager
def errors_to(log: Path, console: Console) -> Iterator[None]:
    """Redirect stderr to a file: that of this process, of Java, and of the Python workers, which inherit Java's.

    Python's warnings are for the user and go to the console.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    terminal, shown = os.dup(2), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, UserWarning):
            console.print(f"warning: {message}", style="yellow", markup=False, soft_wrap=True)

    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)


@contextlib.contextmanager
def output_to(log: Path) -> Iterator[Console]:
    """Redirect stdout to a file too, and return a console that still writes to the original one.

    Java writes to the descriptor itself: settings of the JVM, Ivy and some connectors print there, which would garble a
    live display.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    with open(os.dup(1), "w", encoding="utf-8", errors="replace") as terminal:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
        try:
            yield Console(file=terminal, highlight=False, soft_wrap=True)
        finally:
            sys.stdout.flush()
            terminal.flush()
            os.dup2(terminal.fileno(), 1)


def kill_java() -> None:
    """End the JVM that PySpark started, if there is one."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is not None:
        process.kill()
