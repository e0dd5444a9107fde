"""`crown init` as a user starts it: whatever it is given, the folder it leaves passes `crown run --check`."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from crown.spark.pipeline import Pipeline


def crown(*arguments: object, typed: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from crown.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, input=typed)


def orders_csv(directory: Path) -> Path:
    path = directory / "orders.csv"
    path.write_text("id,customer_id,cents,at,clock\n1,7,500,2024-01-01 10:00:00,10:30\n2,7,300,2024-01-02 11:00:00,\n")
    return path


def customers_json(directory: Path, *, array: bool = False) -> Path:
    records = [{"id": 7, "name": "ann", "tags": ["a"]}, {"id": 8, "name": "bob", "tags": []}]
    path = directory / "customers.json"
    path.write_text(json.dumps(records) if array else "\n".join(map(json.dumps, records)))
    return path


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
def test_two_samples_are_joined_and_pass_the_check(tmp_path: Path, array: bool) -> None:
    folder = tmp_path / "shop"
    samples = ("--sample", orders_csv(tmp_path), "--sample", customers_json(tmp_path, array=array))
    made = crown("init", folder, *samples)
    assert made.returncode == 0, made.stderr
    assert "left out: tags (list<item: string>); to use it, add it to the schema" in made.stdout
    assert (folder / "query.sql").read_text() == (
        "SELECT b.name, COUNT(*) AS n\nFROM orders a\nJOIN customers b ON b.id = a.customer_id\nGROUP BY b.name\n"
    )
    assert "clock STRING" in (folder / "schema.sql").read_text()
    described = tomllib.loads((folder / "pipeline.toml").read_text())
    assert described["tables"]["customers"].get("options", {}) == ({"multiLine": "true"} if array else {})
    assert (folder / "changes" / "orders" / "orders.csv").exists()
    checked = crown("run", "--check", folder / "pipeline.toml")
    assert checked.returncode == 0, checked.stderr
    assert "can run" in checked.stdout
    explained = crown("explain", folder / "query.sql", "--schema", folder / "schema.sql")
    assert explained.returncode == 0, explained.stderr


def test_parquet_with_odd_names_and_changes(tmp_path: Path) -> None:
    path = tmp_path / "2024 Sales.parquet"
    table = pa.table({"unit price": [1.5], "größe": ["x"], "_change_type": ["insert"], "list": pa.array([[1]])})
    pyarrow.parquet.write_table(table, path)
    made = crown("init", tmp_path / "new", "--sample", path, "--sink", "console")
    assert made.returncode == 0, made.stderr
    checked = Pipeline.read(tmp_path / "new" / "pipeline.toml").check()
    assert checked.plan is not None
    assert [column.name for column in checked.plan.columns] == ["größe", "n"]


def test_names_that_are_keywords_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("select,limit,order\na,1,2\n")
    made = crown("init", tmp_path / "new", "--sample", path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "new" / "query.sql").read_text() == (
        "SELECT `select`, COUNT(*) AS n\nFROM t_values\nGROUP BY `select`\n"
    )


def test_changes_in_a_csv_file_keep_their_column(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,_change_type\n1,insert\n1,delete\n")
    assert crown("init", tmp_path / "new", "--sample", path).returncode == 0
    described = tomllib.loads((tmp_path / "new" / "pipeline.toml").read_text())
    assert described["tables"]["r"]["schema"] == "a BIGINT, _change_type STRING"


def test_questions_with_a_file(tmp_path: Path) -> None:
    query = "SELECT customer_id, SUM(cents) AS cents FROM orders GROUP BY customer_id"
    made = crown("init", tmp_path / "new", typed=f"{orders_csv(tmp_path)}\n\n{query}\nsomewhere\nparquet\n")
    assert made.returncode == 0, made.stderr
    assert "somewhere is not one of them" in made.stderr
    pipeline = Pipeline.read(tmp_path / "new" / "pipeline.toml")
    (view,) = pipeline.views
    assert view.sink is not None
    assert view.sink.format == "parquet"
    assert "SUM(cents)" in view.query


def test_a_wrong_answer_is_asked_for_again(tmp_path: Path) -> None:
    answers = ["nowhere.csv", orders_csv(tmp_path), "", "SELECT nothing FROM orders", "SELECT id FROM orders;", ""]
    made = crown("init", tmp_path / "new", typed="\n".join(map(str, answers)) + "\n")
    assert made.returncode == 0, made.stderr
    assert "nowhere.csv can't be used as a sample" in made.stderr
    assert "CROWN-SQL-UNKNOWN-COLUMN" in made.stderr
    assert (tmp_path / "new" / "query.sql").read_text() == "SELECT id FROM orders\n"
    columns = ["", "r", "a NOTYPE", "csv", "r", "a INT", "csv", "", ""]
    made = crown("init", tmp_path / "other", typed="\n".join(columns) + "\n")
    assert made.returncode == 0, made.stderr
    assert "NOTYPE" in made.stderr
    assert Pipeline.read(tmp_path / "other" / "pipeline.toml").title == "other"


def test_questions_without_a_file_can_all_be_left_to_their_defaults(tmp_path: Path) -> None:
    made = crown("init", tmp_path / "new", typed="\n" * 7)
    assert made.returncode == 0, made.stderr
    assert crown("run", "--check", tmp_path / "new" / "pipeline.toml").returncode == 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    refused = crown("init", tmp_path, "--sample", orders_csv(tmp_path))
    assert refused.returncode == 2
    assert "exists already" in refused.stderr


def test_what_is_no_sample_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_text("no parquet")
    for path, reason in (
        (bad, "bad.parquet can't be used as a sample"),
        (tmp_path / "a.xls", "ends with .xls"),
        (tmp_path, "it is a folder"),
    ):
        refused = crown("init", tmp_path / "new", "--sample", path)
        assert refused.returncode == 2
        assert reason in refused.stderr
    assert not (tmp_path / "new").exists()


def test_a_query_that_does_not_fit_says_so(tmp_path: Path) -> None:
    refused = crown("init", tmp_path / "new", "--sample", orders_csv(tmp_path), "--query", "SELECT nothing FROM orders")
    assert refused.returncode == 2
    assert "CROWN-SQL-" in refused.stderr
    assert not (tmp_path / "new").exists()
