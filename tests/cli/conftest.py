"""`crown run` on a pipeline file that has a mistake, and `--check` on one that has none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import pytest

from crown.cli.command import run_command

Refused: TypeAlias = Callable[[Path, Iterable[str]], None]

_CHECK = """
import sys; sys.argv = ['crown', 'run', '--check', sys.argv[1]]
from crown.cli.command import app
app(standalone_mode=False); assert 'pyspark' not in sys.modules
"""


def checked_without_spark(file: Path) -> str:
    """What `crown run --check` prints; it must not need Spark."""
    command = [sys.executable, "-c", _CHECK, str(file)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a pipeline: it is refused before Spark starts, with the file and these words, and leaves no checkpoint."""

    def run(file: Path, words: Iterable[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["crown", "run", str(file)])
        assert run_command() == 2
        message = capsys.readouterr().err
        assert message.startswith("[CROWN-"), message
        assert str(file) in message.replace("\n", "")
        for word in words:
            assert word in message, message
        assert not (file.parent / "checkpoint").exists()

    return run
