"""Links between the project's pages lead somewhere, and what they show is what it prints."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import typer

import crown
from benchmarks.workloads import SOCIAL_SCHEMA
from crown.cli.command import app
from crown.plan.tree.passes import PASSES
from crown.spark.pipeline import Pipeline
from crown.workload import GRAPH_SCHEMA, power_law_graph, streams

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Written by `make bench`, so not there before its first run.
GENERATED = {"docs/benchmarks.md"}
SOURCES = (".py", ".rs", ".java")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert [m for m in missing if str((page.parent / m).resolve().relative_to(ROOT)) not in GENERATED] == []


def test_source_files_that_are_named_exist() -> None:
    folders = ("src", "crates", "jvm", "tests", "benchmarks", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
    ends = {"/".join(path.parts[at:]) for path in files for at in range(len(ROOT.parts), len(path.parts))}
    readers = [path for path in files if path.relative_to(ROOT).parts[0] in ("src", "crates", "jvm")]
    name = re.compile(r"(?<![\w.])(?:\.\./)?([\w/-]+\.(?:py|rs|java))\b(?![.(])")
    named = {(path, found) for path in [*PAGES, *readers] for found in name.findall(path.read_text(encoding="utf-8"))}
    assert sorted((str(path.relative_to(ROOT)), found) for path, found in named if found not in ends) == []


def test_the_explained_example_is_what_explain_says() -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    sql = re.search(r"```sql\n(.*?)```", page, flags=re.DOTALL)
    assert sql is not None
    assert f"```\n{crown.View(sql[1], SOCIAL_SCHEMA).explain()}\n```" in page


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def names_of(pages: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT / "docs")) for path in pages]


DOCS = names_of(sorted((ROOT / "docs").rglob("*.md")))
# Their programs have tests of their own, which give them what they need: Spark, a broker, files.
ELSEWHERE = {"spark.md", "planner.md", "workload.md"}


@pytest.mark.parametrize("page", DOCS)
def test_python_in_the_pages_compiles(page: str) -> None:
    for number, program in enumerate(blocks(page, "python")):
        compile(program, f"{page}, block {number}", "exec")


@pytest.mark.parametrize("page", [page for page in DOCS if page not in ELSEWHERE and blocks(page, "python")])
def test_python_in_the_pages_prints_what_they_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The programs of a page run one after the other; a block of `text` that follows is their output."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = [*re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL), ("", "")]
    names: dict[str, object] = {}
    for (language, program), (following, promised) in itertools.pairwise(found):
        if language == "python":
            exec(compile(program, page, "exec"), names)
            printed = capsys.readouterr().out
            assert following != "text" or printed == promised


def commands_in_pages() -> list[tuple[str, list[str]]]:
    """Every line of a block that starts with `crown` or `make`, as words, without its comment."""
    found = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            lines = (re.split(r"\s#", line)[0].split() for line in block.splitlines())
            found += [(page.name, words) for words in lines if words[:1] in (["crown"], ["make"])]
    return found


def test_commands_in_the_pages_exist() -> None:
    """What a page tells its reader to type names commands, options and targets that exist."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    asked = commands_in_pages()
    assert asked
    for page, words in asked:
        if words[0] == "make":
            assert set(words[1:2]) <= targets, f"{page}: {words}"
            continue
        command = typer.main.get_command(app)
        context = command.make_context("crown", [], resilient_parsing=True)
        for word in words[1:]:
            if word in getattr(command, "commands", {}):
                command = command.commands[word]  # type: ignore[attr-defined]
            options = {text for parameter in command.get_params(context) for text in parameter.opts}
            if word.strip("[]").startswith("--"):
                assert word.strip("[]") in options, f"{page}: {' '.join(words)}: {word}"
        assert not getattr(command, "commands", {}) or "[OPTIONS]" in words or len(words) > 1, f"{page}: {words}"


def test_the_workload_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile, generate = blocks("workload.md", "python")
    stream = streams.count_window({"graph": power_law_graph(50, 200, seed=1)}, 50)
    log = stream["graph"].append_column("_table", pa.array(["graph"] * stream["graph"].num_rows))
    pyarrow.parquet.write_table(log.drop_columns("_sequence"), "updates.parquet")
    (tmp_path / "schema.sql").write_text(GRAPH_SCHEMA)
    exec(compile(profile.replace("SELECT ...", "SELECT src, dst FROM graph"), "workload.md", "exec"), {})
    # Files that a reader has, and sizes that take seconds.
    kept = [line for line in generate.splitlines() if "read_edges(" not in line and "read_social_network(" not in line]
    smaller = "\n".join(kept).replace("76_000, 508_000", "76, 508").replace("50_000", "50").replace("(0.1,", "(0.001,")
    view = crown.View("SELECT p1, p2 FROM knows", SOCIAL_SCHEMA)
    exec(compile(smaller, "workload.md", "exec"), {"view": view})
    assert view.stats()["updates"]


def test_the_sizing_page_has_the_bytes_that_are_measured() -> None:
    """The page's figures hold within a quarter."""
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    said = {what: int(number) for what, number in re.findall(r"^\| (a[^|]*?) \| (\d+) \|$", page, flags=re.MULTILINE)}
    two = "CREATE TABLE t (k BIGINT, a BIGINT); CREATE TABLE u (k BIGINT, b BIGINT)"
    join = "SELECT t.a, u.b FROM t JOIN u ON t.k = u.k"
    row = measured("CREATE TABLE t (k BIGINT)", lambda i: (i,))
    pair = measured(two, lambda i: (i, i))
    shared = measured(two, lambda i: (i % 900, i), join, partners=900)
    own = measured(two, lambda i: (i, i), join)
    found = {
        "a row, with its first column": row,
        "a primary key": measured("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)", lambda i: (i, i)) - pair,
        "a join column, for each row": shared - pair,
        "a distinct join key, shared by all rows of both tables that have it": own - shared,
    }
    assert said.keys() == found.keys()
    for what, number in found.items():
        assert said[what] == pytest.approx(number, rel=0.25), what


def measured(
    schema: str, row: Callable[[int], tuple[int, ...]], sql: str = "SELECT * FROM t", *, partners: int = 0
) -> float:
    view = crown.View(sql, schema)
    if partners:
        view.insert("u", [(number, number) for number in range(partners)])
    before = view.stats()["bytes"]
    view.insert("t", [row(number) for number in range(40_000)])
    return float(view.stats()["bytes"] - before) / 40_000


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the packages of the site are not installed: pip install 'crown-ivm[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    loaded = [
        address
        for page in tmp_path.rglob("*.html")
        for address in re.findall(r'(?:src|<link[^>]* href)="(https?://[^"]+)"', page.read_text(encoding="utf-8"))
    ]
    assert loaded == [], "the site loads nothing from elsewhere"


def test_functions_in_the_pages_take_what_they_are_given() -> None:
    """Calls of `crown.spark.name(keyword=...)` name functions and options that exist."""
    for page in DOCS:
        for program in blocks(page, "python"):
            for call in (node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)):
                module, _, name = ast.unparse(call.func).rpartition(".")
                if module == "crown.spark":
                    options = {keyword.arg: None for keyword in call.keywords if keyword.arg is not None}
                    inspect.signature(getattr(crown.spark, name)).bind_partial(*call.args, **options)


def test_the_database_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("database.md", "python")
    exec(compile(program, "database.md", "exec"), {})
    assert "'_change_type': 'insert'" in capsys.readouterr().out


def test_the_planner_page_lists_the_passes() -> None:
    page = (ROOT / "docs" / "planner.md").read_text(encoding="utf-8")
    table = page.partition("| pass |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == [one.__name__ for one in PASSES]


def test_the_planner_page_runs() -> None:
    (program,) = blocks("planner.md", "python")
    names = {"sql": "SELECT a.x FROM r a JOIN r b ON a.x = b.y", "schema": "CREATE TABLE r (x INT, y INT)"}
    exec(compile(program, "planner.md", "exec"), names)


def test_the_pipeline_of_the_spark_page_can_run(tmp_path: Path) -> None:
    one, several = blocks("spark.md", "toml")
    (tmp_path / "changes" / "knows").mkdir(parents=True)
    connector = '\n[spark]\n"spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"\n'
    for text, views in ((one, 1), (several + connector, 2)):
        (tmp_path / "pipeline.toml").write_text(text, encoding="utf-8")
        checked = Pipeline.read(tmp_path / "pipeline.toml").check()
        assert len(checked.explanations) == views
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
