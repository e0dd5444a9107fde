"""`WINDOW (...)` and `PROFILE word` after a table in FROM."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.tables import Profile
from crown.sql.context import Context
from crown.sql.diagnose import span
from crown.sql.nodes import nodes_of_kind
from crown.sql.schema.options import Option, window_for
from crown.sql.schema.tables import TableSchema


def attach_options(context: Context, statement: exp.Expr, options: list[Option]) -> None:
    """Assign each option to the table that precedes it. A window belongs to the table, not to one use of it."""
    tables = [(position[0], t) for t in nodes_of_kind(statement, exp.Table) if (position := span(t)) is not None]
    profiles: dict[str, Profile] = {}
    for option in options:
        before = [pair for pair in tables if pair[0] < option.position[0]]
        name = max(before, key=lambda pair: pair[0])[1].name.lower() if before else ""
        table = context.schema.tables.get(name)
        if table is None:
            context.fail(
                option.position,
                "WINDOW",
                "this option does not follow a table",
                hint="write it after the table's name or alias in FROM",
            )
        if option.profile is not None and profiles.setdefault(name, option.profile) != option.profile:
            context.fail(
                option.position,
                "WINDOW",
                f"table {table.name} has two profiles",
                reason="a profile says how the table changes, for every use of it",
                hint="give one profile",
            )
        _attach(context, table, option)


def _attach(context: Context, table: TableSchema, option: Option) -> None:
    key = table.name.lower()
    tables = dict(context.schema.tables)
    if option.profile is not None:
        tables[key] = replace(table, profile=option.profile)
        context.schema = replace(context.schema, tables=tables)
        return
    column = table.column(option.column) if option.column is not None else None
    window = window_for(option, column.type if column is not None else None, context.sql)
    if column is not None:
        window = replace(window, column=column.name)
    if context.windows.get(key, window) != window:
        context.fail(
            option.position,
            "WINDOW",
            f"table {table.name} has two windows",
            reason="a window belongs to the table and applies to every use of it",
            hint="give one window, or register the table under two names",
        )
    context.windows[key] = window
