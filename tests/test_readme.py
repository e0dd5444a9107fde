"""Every block of the README does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, flags=re.DOTALL)

PRINTING = ("crown.View(", "crown.Database(")  # blocks that are followed by what they print


def python(program: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)


def find(language: str, word: str) -> int:
    return next(i for i, (own, text) in enumerate(BLOCKS) if own == language and word in text)


def commands(word: str) -> list[list[str]]:
    """The commands of a block, without their comments."""
    lines = [line.partition("#")[0] for line in BLOCKS[find("", word)][1].splitlines()]
    return [line.replace("'", "").split() for line in lines if line.strip()]


def test_no_block_is_left_out() -> None:
    tested = {find("", "pip install"), find("", "make demo"), find("", "crown init"), find("bibtex", "@article")}
    tested |= {find("python", "crown.spark") + step for step in (0, 1)}
    tested |= {find("python", word) + step for word in PRINTING for step in (0, 1)}
    assert tested == set(range(len(BLOCKS)))


def test_the_packages_to_install_are_this_one_and_its_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for *_, package in commands("pip install"):
        name, _, extra = package.rstrip("]").partition("[")
        assert name == project["name"]
        assert not extra or extra in project["optional-dependencies"]


def test_the_commands_are_targets() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {target for _, target in commands("make demo")} <= set(targets)


@pytest.mark.parametrize("word", PRINTING)
def test_the_example_prints_what_it_says(word: str, tmp_path: Path) -> None:
    position = find("python", word)
    program, promised = BLOCKS[position][1], BLOCKS[position + 1][1]
    finished = python(program, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == promised


def test_the_pipeline_of_a_sample_can_run(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,customer_id\n1,7\n")
    (tmp_path / "customers.csv").write_text("id,name\n7,ann\n")
    start, check, run = commands("crown init")
    for command in (start, check):
        finished = python("from crown.cli import main; main()", tmp_path, *command[1:])
        assert finished.returncode == 0, finished.stderr
    assert run == [word for word in check if word != "--check"]


@pytest.mark.spark
def test_the_spark_example_maintains_its_view(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install crown-ivm[spark]")
    position = find("python", "crown.spark")
    finished = python(BLOCKS[position][1], tmp_path)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout.strip().splitlines()[-1] == BLOCKS[position + 1][1].strip()


def test_the_citation_is_complete() -> None:
    text = BLOCKS[find("bibtex", "@article")][1]
    assert text.count("{") == text.count("}")
    assert {"author", "title", "journal", "year"} <= set(re.findall(r"^\s+(\w+)\s*=", text, flags=re.MULTILINE))


def test_pictures_are_there() -> None:
    for path in re.findall(r'(?:src|srcset)="([^"]+)"', TEXT):
        assert (ROOT / path).exists(), path
