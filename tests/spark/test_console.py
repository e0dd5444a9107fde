"""A running pipeline: its live display on a terminal, whatever Java prints, and its console in a browser."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crown
from crown.console.nodes import node_frames
from crown.console.source import BatchFrame
from crown.spark.pipeline.resume import ResumePoint, read_resume_point
from tests.spark.terminal import Terminal
from tests.support.browser import WHY_NOT, Browser, browser

TOML = """
name = "two hops"
query = "SELECT a.src, COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src"
checkpoint = "checkpoint"
console = true
master = "local[2]"
cells = 2
trigger = "1 second"
on_invalid = "quarantine"
rejects = "rejects"

[tables.g]
format = "parquet"
path = "in"
schema = "src BIGINT, dst BIGINT"
files_per_batch = 1
rows = 100000

[sink]
format = "materialized"
path = "table"

[spark]
"spark.ui.enabled" = false
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
# Java prints a line for each collection to its standard output.
"spark.driver.extraJavaOptions" = "-Xlog:gc"
"""
PROGRAM = "from crown.cli import main; main()"


def rows_of(number: int) -> list[tuple[int, int]]:
    """The edges of a file; those of the fourth meet in one vertex."""
    return [(n % 50, n % 7) if number != 3 else (n, 100) for n in range(number * 500, (number + 1) * 500)]


def feed(directory: Path, number: int) -> None:
    """One file of changes; the second has a deletion of a row that isn't there."""
    rows = rows_of(number)
    words = ["insert"] * len(rows)
    if number == 1:
        rows, words = [*rows, (-1, -1)], [*words, "delete"]
    table = pa.table({"src": [a for a, _ in rows], "dst": [b for _, b in rows], "_change_type": words})
    (directory / "in").mkdir(exist_ok=True)
    pq.write_table(table, directory / "in" / f".{number}.parquet")
    (directory / "in" / f".{number}.parquet").rename(directory / "in" / f"{number}.parquet")


def start(directory: Path) -> Terminal:
    (directory / "pipeline.toml").write_text(TOML)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return Terminal([sys.executable, "-c", PROGRAM, "run", str(directory / "pipeline.toml")], environment)


def show(page: Browser, url: str, frames: int = 2) -> None:
    page.open(url)
    page.wait_for(f"Number(document.body.dataset.frames || 0) >= {frames}")


@pytest.mark.spark
def test_a_pipeline_on_the_terminal_and_in_the_browser(tmp_path: Path) -> None:
    for number in range(3):
        feed(tmp_path, number)
    with start(tmp_path) as terminal:
        terminal.wait_for("console: http", tmp_path)
        terminal.wait_for("checkpoint/commits/2", tmp_path)
        terminal.wait_for("in 3 batches; 1 rejected", tmp_path)
        for words in ("two hops", "src, n over g", "new checkpoint", "of the budget of", "materialized", "lag"):
            assert words in terminal.screen
        if not WHY_NOT:
            look(re.findall(r"http://127\S+", terminal.screen)[0], terminal, tmp_path)
        terminal.press_ctrl_c()
        code, screen = terminal.finish()
    assert code == 130, screen
    assert "stopped" in [line for line in screen.splitlines() if line.strip()][-1], screen
    for sign in ("Traceback", "Py4J", "py4j", "Exception", "\tat ", "WARN", "ERROR"):
        assert sign not in screen, screen
    assert "[gc" not in screen, "what Java prints does not reach the terminal"
    assert "[gc" in (tmp_path / "checkpoint.log").read_text()
    assert re.fullmatch(r"Continues after batch \d+\.", str(read_resume_point(str(tmp_path / "checkpoint"))))


@pytest.mark.spark
@pytest.mark.slow  # the words alone are checked in the default run
def test_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    with start(tmp_path) as terminal:
        terminal.wait_for("checkpoint/commits/0", tmp_path)
        terminal.press_ctrl_c()
        terminal.finish()
    feed(tmp_path, 4)
    with start(tmp_path) as terminal:
        terminal.wait_for("Continues after batch", tmp_path)
        terminal.press_ctrl_c()
        terminal.finish()


def look(url: str, terminal: Terminal, tmp_path: Path) -> None:
    with browser() as page:
        for width in (1280, 500):
            for scheme in ("light", "dark"):
                page.resize(width, 900)
                page.prefer(scheme)
                show(page, url)
                terminal.wait_for("two hops", tmp_path)  # a terminal that nobody reads would hold the display up
                if directory := os.environ.get("CROWN_SHOTS"):
                    page.screenshot(Path(directory) / f"spark-{width}-{scheme}.png")
                assert page.overlaps() == []
        page.resize(1280, 900)
        show(page, url)
        text = page.text()
        for words in ("two hops", "cell 0", "cell 1", "in 1.5 of 2 cells", "A new checkpoint", "Batch time"):
            assert words in text
        assert re.search(r"% of \d+\.\d MB", text), "the state against the budget"
        page.wait_for("document.querySelectorAll('#tab tbody tr').length >= 3")
        page.click("#tab-rejected")
        page.wait_for("document.querySelector('#tab').innerText.includes('CROWN-CHANGE-ABSENT')")
        page.click("#tab-rows")
        page.wait_for("document.querySelectorAll('#rows-body tbody tr').length > 0")
        feed(tmp_path, 3)
        terminal.wait_for("checkpoint/commits/3", tmp_path)
        figures = "[...document.querySelectorAll('#tree .figures')].map((text) => text.textContent)"
        page.wait_for(f"{figures}.every((text) => text.includes('row'))")
        assert sorted(text.split(" row")[0] for text in page.run(f"return {figures}")) == sorted(node_rows(range(4)))
        assert "%" in page.wait_for("document.querySelector('#work').innerText")
        assert "a.dst = 100" in page.wait_for("document.querySelector('#hot').innerText")
        assert page.errors() == []


def node_rows(files: Iterable[int]) -> list[str]:
    """How many rows each node of the tree has after these files, in two cells of this process."""
    sql = TOML.split('query = "')[1].split('"')[0]
    view = crown.View(sql, "CREATE TABLE g (src BIGINT, dst BIGINT)", threads=2)
    for number in files:
        view.insert("g", rows_of(number))
    return [f"{node.rows:,}" for node in node_frames(view.stats()["stages"]).values()]


def test_how_a_run_begins(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    assert read_resume_point(checkpoint) == ResumePoint(None, None)
    for name in ("commits", "offsets"):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
        for batch in range(11):
            (tmp_path / "checkpoint" / name / str(batch)).touch()
    (tmp_path / "checkpoint" / "commits" / ".10.crc").touch()
    assert str(read_resume_point(checkpoint)) == "Continues after batch 10."
    (tmp_path / "checkpoint" / "offsets" / "11").touch()
    begun = read_resume_point(checkpoint)
    assert begun == ResumePoint(10, 11) and "Repeats batch 11" in str(begun)
    assert ("engines", "rebuilt as of batch 10, from the checkpoint") in begun.facts


def test_a_batch_in_words() -> None:
    from crown.cli.live import measures

    batch = BatchFrame(3, 1000, 20, 0.5, "0.5 s, 2 files", 2_500_000, 1, 0.25)
    assert list(measures(batch).values()) == ["3", "2,000", "40", "0.5 s, 2 files", "2.5 MB", "0.25", "1"]
    small = BatchFrame(3, 1000, 20, 0.5, "0.5 s, 2 files", 2_500, 1, 0.25)
    assert measures(small)["state"] == "2.5 kB"
