"""`crown size`: how much memory the state of a query, or of whole tables, takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crown.cli.inputs import read_query, read_text
from crown.errors import CrownError

if TYPE_CHECKING:
    from crown.cli.budget import Budget

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def size(
    query: Annotated[
        Path | None, typer.Argument(help="SQL file with the query; without it, every column of every table counts.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="SQL file with the CREATE TABLE statements.")] = None,
    rows: Annotated[
        list[str] | None, typer.Option(help="Rows of a table, as TABLE=NUMBER (20_000, 5M), or NUMBER for all tables.")
    ] = None,
    cells: Annotated[int, typer.Option(min=1, help="Cells that the state is spread over.")] = 1,
) -> None:
    """How much memory the state takes: bytes per row, measured with synthetic rows, times the rows you expect."""
    from crown.cli.output import show

    counts = read_counts(rows or [])
    if query is None:
        if schema is None:
            raise CrownError(
                "there is nothing to measure", code="CROWN-ARGUMENT", hint="give a query, or --schema FILE"
            )
        show(str(of_tables(read_text(schema), counts)))
        return
    show(str(of_query(*read_query(query, schema), counts, cells)))


def of_query(sql: str, schema: str, counts: Mapping[str, int], cells: int) -> Budget:
    """Return the estimate for a query: only rows and columns that it reads are stored."""
    from crown.cli.budget import budget
    from crown.plan import explain, plan_with_report
    from crown.sql import parse

    explanation = explain(*plan_with_report(parse(sql, schema), cells=cells))
    names = {table.name.lower() for table in explanation.plan.tables}
    _check_names(counts, names)
    windows = {t.name.lower(): None if t.window is None else t.window.rows for t in explanation.plan.tables}
    return budget(explanation, {name: _count(counts, name, windows[name]) for name in names}, cells)


def of_tables(schema: str, counts: Mapping[str, int]) -> Budget:
    """Return the estimate for whole tables: each is stored once, with every column and no index for a join."""
    from crown.cli.budget import Budget, TableBudget
    from crown.plan import plan
    from crown.sql import load_schema, parse
    from crown.workload.footprint import bytes_per_row

    loaded = load_schema(schema)
    _check_names(counts, {table.name.lower() for table in loaded.tables.values()})
    tables = []
    for table in loaded.tables.values():
        (per_row,) = bytes_per_row(plan(parse(f"SELECT * FROM `{table.name}`", loaded))).values()
        window = None if table.window is None else table.window.rows
        count, told_by = _count(counts, table.name.lower(), window)
        tables.append(TableBudget(table.name, per_row, 1.0, count, told_by))
    return Budget(tuple(tables), linear=True)


def read_counts(given: list[str]) -> dict[str, int]:
    """Return the number of rows by table; under `""` the one for all other tables.

    >>> read_counts(["orders=5M", "customer=20_000", "100"])
    {'orders': 5000000, 'customer': 20000, '': 100}
    """
    counts = {}
    for text in given:
        table, _, number = text.rpartition("=")
        found = re.fullmatch(r"(\d[\d_,]*(?:\.\d+)?)([KMG]?)", number.strip(), flags=re.IGNORECASE)
        if found is None:
            raise CrownError(
                f"--rows {text} is not a number of rows", code="CROWN-ARGUMENT", hint="write --rows orders=5000000"
            )
        counts[table.strip().lower()] = int(float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].upper()])
    return counts


def _count(counts: Mapping[str, int], table: str, window: int | None) -> tuple[int | None, str]:
    found = counts.get(table, counts.get(""))
    if found is not None:
        return found, "given"
    if window is not None:
        return window, "its window"
    return None, f"give it with --rows {table}=NUMBER"


def _check_names(counts: Mapping[str, int], tables: set[str]) -> None:
    unknown = sorted({*counts} - tables - {""})
    if unknown:
        raise CrownError(
            f"--rows {unknown[0]}: there is no such table",
            code="CROWN-ARGUMENT",
            hint=f"the tables are {', '.join(sorted(tables))}",
        )
