"""`crown explain` and `crown profile` as a user starts them: output, files, errors and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from crown.cli import main
from crown.cli.inputs import split_schema

SCHEMA = "CREATE TABLE graph (src BIGINT NOT NULL, dst BIGINT NOT NULL);\n"
THREE_HOP = """SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst AS d
FROM graph g1, graph g2, graph g3
WHERE g1.dst = g2.src AND g2.dst = g3.src
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def start(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["crown", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return start


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "schema.sql").write_text(SCHEMA)
    (tmp_path / "query.sql").write_text(THREE_HOP)
    return tmp_path


def test_explain_prints_card_and_tree(run: Run, files: Path) -> None:
    code, out, _ = run("explain", files / "query.sql", "--schema", files / "schema.sql", "--cells", 8)
    assert code == 0
    assert out.startswith("A change takes time proportional to λ")
    assert "\n\nGUARANTEE\n  class              free-connex\n  height             2\n" in out
    assert "TREE of" in out
    assert "ALTERNATIVES" in out
    assert "\x1b" not in out


def test_dialect(run: Run, files: Path) -> None:
    (files / "duck.sql").write_text("CREATE TABLE t (a INT, b INT); SELECT * EXCLUDE (b) FROM t")
    assert run("explain", files / "duck.sql", "--dialect", "duckdb")[0] == 0
    code, _, error = run("explain", files / "duck.sql", "--dialect", "klingon")
    assert code != 0 and "unknown SQL dialect 'klingon'" in error


def test_schema_may_stand_before_the_query(run: Run, files: Path) -> None:
    (files / "both.sql").write_text(SCHEMA + THREE_HOP)
    _, apart, _ = run("explain", files / "query.sql", "--schema", files / "schema.sql")
    code, together, _ = run("explain", files / "both.sql")
    assert code == 0
    assert together == apart


def test_explain_writes_pictures_and_pages(run: Run, files: Path) -> None:
    svg, html = files / "tree.svg", files / "page.html"
    code, out, _ = run(
        "explain", files / "query.sql", "--schema", files / "schema.sql", "--svg", svg, "--html", html, "--json"
    )
    assert code == 0
    assert svg.read_text().startswith("<svg")
    assert html.read_text().startswith("<!doctype html>")
    assert json.loads(out)["report"]["conjunctions"][0]["query_class"] == "free-connex"


def test_errors_show_the_place_and_no_traceback(run: Run, files: Path) -> None:
    (files / "wrong.sql").write_text("SELECT g.source FROM graph g")
    code, out, err = run("explain", files / "wrong.sql", "--schema", files / "schema.sql")
    assert code == 2
    assert out == ""
    assert "^" in err
    assert "Traceback" not in err
    assert err.startswith("[CROWN-")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("explain", "no-such-file.sql"), "no-such-file.sql can't be read"),
        (("profile", "no-such-file.parquet"), "does not exist"),
    ],
)
def test_missing_files(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert words in err.replace("\n", " ")


def test_missing_schema(run: Run, files: Path) -> None:
    code, _, err = run("explain", files / "query.sql")
    assert code == 2
    assert "--schema" in err


def test_file_that_cannot_be_written(run: Run, files: Path) -> None:
    code, _, err = run(
        "explain", files / "query.sql", "--schema", files / "schema.sql", "--svg", files / "missing" / "tree.svg"
    )
    assert code == 2
    assert "can't be written" in err


def test_profile_with_and_without_a_query(run: Run, files: Path) -> None:
    log = pa.table(
        {
            "_table": ["graph"] * 4,
            "_change_type": ["insert", "insert", "delete", "delete"],
            "src": [1, 2, 1, 2],
            "dst": [2, 3, 2, 3],
        }
    )
    pyarrow.parquet.write_table(log, files / "log.parquet")
    code, out, _ = run("profile", files / "log.parquet")
    assert code == 0
    assert out.startswith("4 updates, first in, first out, λ = 1.00\n")
    code, out, _ = run(
        "profile", files / "log.parquet", "--query", files / "query.sql", "--schema", files / "schema.sql", "--json"
    )
    assert code == 0
    data = json.loads(out)
    assert data["tables"][0]["kind"] == "fifo"
    assert all(tree["enclosureness"] == 1.0 for tree in data["trees"] if tree["height"] == 2)


def test_schema_is_cut_at_statements_only() -> None:
    text = "CREATE TABLE r (a STRING COMMENT 'x; y');\n-- then; the query\nSELECT ';' FROM r"
    created, query = split_schema(text)
    assert created == "CREATE TABLE r (a STRING COMMENT 'x; y');"
    assert query.endswith("SELECT ';' FROM r")
    assert split_schema("SELECT 1; CREATE TABLE r (a INT)")[0] == ""
    assert split_schema("CREATE TABLE r (a INT);") == ("CREATE TABLE r (a INT);", "")
