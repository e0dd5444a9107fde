"""`crown profile`: how the tables of a stream change, and what that says about the cost of an update."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from crown.cli.inputs import read_query
from crown.cli.output import show


def profile(
    log: Annotated[Path, typer.Argument(help="Update log: a Parquet, Arrow or CSV file, or a directory of them.")],
    query: Annotated[
        Path | None, typer.Option(help="SQL file with a query: also measure the log for each of its trees.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="SQL file with the CREATE TABLE statements.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """How hard a log of updates is: the kind of each stream, its enclosureness, and the tree that suits it."""
    from crown.workload.profile import profile as measured

    if query is None:
        result = measured(log)
    else:
        sql, tables = read_query(query, schema)
        result = measured(log, sql, schema=tables)
    if json:
        typer.echo(json_text.dumps(result.to_json(), indent=2, ensure_ascii=False))
    else:
        show(str(result))
