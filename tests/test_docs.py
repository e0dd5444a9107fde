"""Links between the project's pages lead somewhere, and what they show is what it prints."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import crown
from benchmarks.workloads import SOCIAL_SCHEMA
from crown.spark.pipeline import Pipeline

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Written by `make bench`, so not there before its first run.
GENERATED = {"docs/benchmarks.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert [m for m in missing if str((page.parent / m).resolve().relative_to(ROOT)) not in GENERATED] == []


def test_the_explained_example_is_what_explain_says() -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    sql = re.search(r"```sql\n(.*?)```", page, flags=re.DOTALL)
    assert sql is not None
    assert f"```\n{crown.View(sql[1], SOCIAL_SCHEMA).explain()}\n```" in page


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_python_in_the_pages_compiles(page: str) -> None:
    for number, program in enumerate(blocks(page, "python")):
        compile(program, f"{page}, block {number}", "exec")


def test_functions_in_the_pages_take_what_they_are_given() -> None:
    """Calls of `crown.spark.name(keyword=...)` name functions and options that exist."""
    for page in (ROOT / "docs").glob("*.md"):
        for program in blocks(page.name, "python"):
            for call in (node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)):
                module, _, name = ast.unparse(call.func).rpartition(".")
                if module == "crown.spark":
                    options = {keyword.arg: None for keyword in call.keywords if keyword.arg is not None}
                    inspect.signature(getattr(crown.spark, name)).bind_partial(*call.args, **options)


def test_the_sql_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("sql.md", "python")
    exec(compile(program, "sql.md", "exec"), {})
    assert capsys.readouterr().out


def test_the_planner_page_runs() -> None:
    (program,) = blocks("planner.md", "python")
    names = {"sql": "SELECT a.x FROM r a JOIN r b ON a.x = b.y", "schema": "CREATE TABLE r (x INT, y INT)"}
    exec(compile(program, "planner.md", "exec"), names)


def test_the_pipeline_of_the_spark_page_can_run(tmp_path: Path) -> None:
    (text,) = blocks("spark.md", "toml")
    (tmp_path / "changes" / "knows").mkdir(parents=True)
    (tmp_path / "pipeline.toml").write_text(text, encoding="utf-8")
    checked = Pipeline.read(tmp_path / "pipeline.toml").check()
    assert checked.explanation is not None
    assert checked.unread == ()


@pytest.mark.spark
def test_the_spark_page_runs(tmp_path: Path) -> None:
    program = blocks("spark.md", "python")[0]
    for name, table in {
        "changes/knows": pa.table({"p1": [1, 2, 3], "p2": [1, 1, 2]}),
        "person": pa.table({"id": [1, 2], "name": ["ann", "bob"]}),
    }.items():
        (tmp_path / name).mkdir(parents=True)
        pyarrow.parquet.write_table(table, tmp_path / name / "0.parquet")
    # A snapshot needs a batch, which the reader of the page has waited for.
    program = program.replace("crown.spark.snapshot", "query.processAllAvailable()\ncrown.spark.snapshot")
    command = [sys.executable, "-c", program + "query.stop()\n"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert {tuple(line.strip("|").split("|")) for line in finished.stdout.splitlines() if "|" in line} >= {
        (" ann", "      2"),
        (" bob", "      1"),
    }
