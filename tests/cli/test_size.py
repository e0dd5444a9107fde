"""`crown size` as a user starts it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCHEMA = (
    "CREATE TABLE orders (id BIGINT, customer BIGINT, note STRING); CREATE TABLE customer (id BIGINT, name STRING);"
)
QUERY = "SELECT c.name, COUNT(*) AS n FROM orders o JOIN customer c ON c.id = o.customer GROUP BY c.name"


def crown(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from crown.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def files(directory: Path) -> tuple[Path, Path]:
    (directory / "schema.sql").write_text(SCHEMA)
    (directory / "query.sql").write_text(QUERY)
    return directory / "schema.sql", directory / "query.sql"


def test_a_query_takes_bytes_per_row_times_rows(tmp_path: Path) -> None:
    schema, query = files(tmp_path)
    finished = crown("size", query, "--schema", schema, "--rows", "orders=5M", "--rows", "20_000")
    assert finished.returncode == 0, finished.stderr
    found = re.search(r"orders +(\d+) bytes per row, 5,000,000 rows \(given\) = ([\d.]+) MB", finished.stdout)
    assert found is not None, finished.stdout
    assert abs(int(found[1]) * 5 - float(found[2])) < 5
    assert "20,000 rows (given)" in finished.stdout
    assert "in memory" in finished.stdout


def test_whole_tables_need_no_query(tmp_path: Path) -> None:
    schema, _ = files(tmp_path)
    finished = crown("size", "--schema", schema)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("bytes per row, number of rows unknown") == 2
    assert "(give it with --rows orders=NUMBER)" in finished.stdout
    known = crown("size", "--schema", schema, "--rows", "orders=1", "--rows", "customer=2")
    assert "1 row (given)" in known.stdout and "2 rows (given)" in known.stdout


def test_a_window_says_how_many_rows_there_are(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("CREATE TABLE r (a INT) WINDOW (ROWS 1000)")
    (tmp_path / "query.sql").write_text("SELECT a FROM r")
    for arguments in ((tmp_path / "query.sql",), ()):
        finished = crown("size", *arguments, "--schema", tmp_path / "schema.sql")
        assert "1,000 rows (its window)" in finished.stdout, finished.stderr


def test_mistakes_are_named(tmp_path: Path) -> None:
    schema, query = files(tmp_path)
    assert "there is nothing to measure" in crown("size").stderr
    assert (
        "--rows odrers: there is no such table" in crown("size", query, "--schema", schema, "--rows", "odrers=1").stderr
    )
    assert "--rows orders=many is not a number" in crown("size", "--schema", schema, "--rows", "orders=many").stderr
