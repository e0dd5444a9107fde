"""The `crown` command as a user starts it."""

from __future__ import annotations

import subprocess
import sys

import crown._kernel


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from crown.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_version_is_the_kernels() -> None:
    finished = run("--version")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == f"crown {crown._kernel.__version__}"


def test_help_names_the_demo() -> None:
    finished = run("--help")
    assert finished.returncode == 0, finished.stderr
    assert "demo" in finished.stdout
