"""Run a dbt project as maintained views: models stay as they are, and their tables are never rebuilt.

    python examples/dbt/maintain.py [PROJECT]

Seeds are the tables, models in `marts` become views that are kept up to date, and models in `staging` are plain views
of the schema, which Crown folds into the queries that use them. Only `ref` and `source` are understood of Jinja; for
more, give the compiled SQL (`dbt compile`, in `target/compiled`).
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import crown

REFERENCE = re.compile(r"\{\{\s*(?:ref|source)\(\s*(?:'[^']*'\s*,\s*)?'([^']+)'\s*\)\s*\}\}")


def read_model(path: Path) -> str:
    return REFERENCE.sub(r"\1", path.read_text(encoding="utf-8")).strip()


def open_project(project: Path) -> dict[str, tuple[crown.View, pa.Table]]:
    """Return a maintained view for each mart, with the delta of loading the seeds."""
    seeds = {path.stem: csv.read_csv(path) for path in sorted((project / "seeds").glob("*.csv"))}
    tables = {name: _ddl(name, seed) for name, seed in seeds.items()}
    staging = [
        f"CREATE VIEW {path.stem} AS {read_model(path)}" for path in sorted((project / "models/staging").glob("*.sql"))
    ]
    schema = ";\n".join([*tables.values(), *staging])
    views = {}
    for path in sorted((project / "models/marts").glob("*.sql")):
        view = crown.View(read_model(path), schema)
        views[path.stem] = view, view.apply(list(seeds.items()))
    return views


def _ddl(name: str, seed: pa.Table) -> str:
    kinds = {pa.int64(): "BIGINT", pa.date32(): "DATE", pa.float64(): "DOUBLE"}
    columns = [f"{field.name} {kinds.get(field.type, 'STRING')}" for field in seed.schema]
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({seed.column_names[0]}))"


def main(project: Path) -> None:
    views = open_project(project)
    for name, (view, delta) in views.items():
        print(f"{name}: {delta.num_rows} rows, {view.explain().report.conjunctions[0].query_class}")
    changes: dict[str, list[tuple[object, ...]]] = {
        "raw_orders": [(5, 2, date(2024, 1, 9), "placed")],
        "raw_payments": [(6, 5, "credit_card", 4200)],
    }
    print("a new order:")
    for name, (view, _) in views.items():
        for row in view.apply(changes).to_pylist():
            shown = {key: value for key, value in row.items() if not key.startswith("_") and value is not None}
            print(f"  {name} {row['_change_type']:<6} {', '.join(map(str, shown.values()))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "jaffle_shop")
