"""Shell completion as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-c", "from crown.cli import main; main()"]


def complete(words: str, position: int) -> list[str]:
    asked = {"_CROWN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    finished = subprocess.run(PROGRAM, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    return finished.stdout.split()


def test_commands_and_options_are_completed() -> None:
    assert complete("crown ex", 1) == ["explain"]
    assert set(complete("crown ", 1)) >= {"init", "explain", "size", "profile", "run", "demo", "bench"}
    assert complete("crown run --ch", 2) == ["--check"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str) -> None:
    asked = {"_CROWN_COMPLETE": f"source_{shell}"}
    finished = subprocess.run(PROGRAM, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    assert finished.returncode == 0, finished.stderr
    assert "crown" in finished.stdout
    assert "_CROWN_COMPLETE" in finished.stdout
