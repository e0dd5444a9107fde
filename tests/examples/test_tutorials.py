"""The tutorials and examples run, and what they claim holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crown.testing import check
from examples import feature_store, fraud_rings, warehouse
from examples.dbt import maintain
from tests.support.postgres import running_server
from tools.docs.notebooks import SCRIPTS, cells, notebook, page

ROOT = Path(__file__).parents[2]


def run(script: Path, directory: Path, **environment: str) -> str:
    variables = {**os.environ, "MPLBACKEND": "agg", **environment}
    command = [sys.executable, str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=variables)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


def test_the_embedded_tutorial_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "the view and pandas agree on" in run(SCRIPTS / "embedded.py", tmp_path)
    assert (tmp_path / "revenue.png").stat().st_size > 5000


@pytest.mark.spark
@pytest.mark.slow
def test_the_spark_tutorial_runs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install crown-ivm[spark]")
    assert "[('Oslo', 950)]" in run(SCRIPTS / "spark.py", tmp_path)


def test_the_postgres_tutorial_runs(tmp_path: Path) -> None:
    with running_server(wal_level="logical") as connection:
        printed = run(SCRIPTS / "postgres_cdc.py", tmp_path, CROWN_POSTGRES=connection)
    assert "the view and PostgreSQL agree: [('Bergen', 900), ('Oslo', 550)]" in printed


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_notebooks_are_their_scripts(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    stored = script.with_suffix(".ipynb")
    if os.environ.get("CROWN_UPDATE_FIXTURES"):
        stored.write_text(notebook(text), encoding="utf-8")
    assert stored.read_text(encoding="utf-8") == notebook(text), "CROWN_UPDATE_FIXTURES=1 writes the notebooks anew"
    sources = ["".join(cell["source"]) for cell in json.loads(notebook(text))["cells"]]
    assert sources == [cell for _, cell in cells(text)]
    assert page(text).startswith("# ")


def test_the_dbt_project_is_maintained() -> None:
    views = maintain.open_project(ROOT / "examples" / "dbt" / "jaffle_shop")
    customers, delta = views["customers"]
    assert delta.num_rows == 3
    customers.delete("raw_payments", [{"id": 4}])
    values = {row["first_name"]: row["lifetime_value"] for row in customers.to_arrow().to_pylist()}
    assert {name: float(value) for name, value in values.items()} == {"Ada": 12.0, "Bo": 6.0, "Cleo": 25.0}
    assert {row["order_id"] for row in views["orders"][0].to_arrow().to_pylist()} == {1, 2, 3, 4}


def test_the_dbt_example_prints_what_changes(tmp_path: Path) -> None:
    printed = run(ROOT / "examples" / "dbt" / "maintain.py", tmp_path)
    assert "customers insert 2, Bo, Nilsen, 2024-01-05, 2024-01-09, 2, 48.00" in printed


def test_the_warehouse_of_twelve_left_joins() -> None:
    regions = warehouse.main(sales=200, members=5)
    assert sum(count for count, _ in regions.values()) == 200
    assert "not known yet" in regions
    for sql in (warehouse.REPORT, warehouse.BY_REGION):
        check(sql, warehouse.SCHEMA, warehouse.batches(sales=60, members=4, seed=2))


def test_fraud_rings_are_those_that_duckdb_finds() -> None:
    assert fraud_rings.main(days=2, transfers_a_day=150).total() > 0
    edges = [(1, 1, 2), (2, 2, 3), (3, 3, 1), (4, 3, 1), (5, 2, 1)]
    rows = [(number, source, target, 100, fraud_rings.START) for number, source, target in edges]
    view = check(fraud_rings.RINGS, fraud_rings.SCHEMA, [{"transfer": [row]} for row in rows])
    assert len(view) == 2


def test_features_are_those_of_the_joined_rows() -> None:
    fitted = feature_store.main(purchases=600)
    assert set(fitted) == {"web", "store"}
    for own, expected in fitted.values():
        np.testing.assert_allclose(own, expected, rtol=1e-6)
