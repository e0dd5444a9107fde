"""Every block of the README does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)


def python(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)


def find(language: str, word: str) -> int:
    return next(i for i, (own, text) in enumerate(BLOCKS) if own == language and word in text)


def test_no_block_is_left_out() -> None:
    tested = {find("", "make demo"), find("python", "crown.View("), find("python", "crown.View(") + 1}
    tested |= {find("python", "crown.spark"), find("bibtex", "@article")}
    assert tested == set(range(len(BLOCKS)))


def test_the_commands_are_targets() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in BLOCKS[find("", "make demo")][1].splitlines():
        assert line.split()[1] in targets


def test_the_example_prints_what_it_says(tmp_path: Path) -> None:
    position = find("python", "crown.View(")
    program, promised = BLOCKS[position][1], BLOCKS[position + 1][1]
    finished = python(program, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == promised


@pytest.mark.spark
def test_the_spark_example_maintains_its_view(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install crown-ivm[spark]")
    (tmp_path / "changes" / "knows").mkdir(parents=True)
    edges = pa.table({"p1": [1, 1, 2, 3], "p2": [2, 3, 4, 4]})
    pyarrow.parquet.write_table(edges, tmp_path / "changes" / "knows" / "0.parquet")
    program = BLOCKS[find("python", "crown.spark")][1]
    ending = "query.processAllAvailable()\nquery.stop()\nprint(crown.spark.snapshot(spark, 'checkpoint').collect())\n"
    finished = python(program + ending, tmp_path)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout.strip().splitlines()[-1] == "[Row(p1=1, reach=2)]"


def test_the_citation_is_complete() -> None:
    text = BLOCKS[find("bibtex", "@article")][1]
    assert text.count("{") == text.count("}")
    assert {"author", "title", "journal", "year"} <= set(re.findall(r"^\s+(\w+)\s*=", text, flags=re.MULTILINE))
