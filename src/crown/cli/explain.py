"""`crown explain`: the plan of a query and what it guarantees, as text or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crown.cli.inputs import read_query, write_text
from crown.cli.output import show


def explain(
    query: Annotated[Path, typer.Argument(help="SQL file with the query; - reads standard input.")],
    schema: Annotated[Path | None, typer.Option(help="SQL file with the CREATE TABLE statements.")] = None,
    dialect: Annotated[str, typer.Option(help="SQL dialect of the query and the schema, such as postgres.")] = "spark",
    cells: Annotated[int, typer.Option(min=1, help="Show how the data is spread over this many cells.")] = 1,
    svg: Annotated[Path | None, typer.Option(help="Write an SVG picture of the tree to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write everything to this file as one HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report and the plan as JSON.")] = False,
) -> None:
    """What Crown guarantees for a query and why: class, costs, the tree, and what else was considered."""
    from crown.plan import explain as explained
    from crown.plan import plan_with_report
    from crown.sql import parse

    sql, tables = read_query(query, schema, dialect)
    explanation = explained(*plan_with_report(parse(sql, tables, dialect=dialect), cells=cells))
    if svg is not None:
        write_text(svg, explanation.svg())
    if html is not None:
        write_text(html, explanation.html())
    if json:
        typer.echo(explanation.json())
    else:
        show(str(explanation))
