"""The outputs of a SELECT: with * expanded and every name unique."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from crown.ir.expression import Column
from crown.sql.context import Context
from crown.sql.dialect import in_spark
from crown.sql.misspelt import nearest
from crown.sql.relation import Relation
from crown.sql.scope import check_database, check_readable, tables_named

MOST_OUTPUTS = 5_000
REPEATED = "crown_repeated"  # in the meta of a SELECT: a name that two of its outputs have


@dataclass(frozen=True)
class Item:
    """One output as written; `star` items are already resolved."""

    name: str
    node: exp.Expr
    star: Column | None = None


def expand_items(context: Context, node: exp.Select, relation: Relation) -> list[Item]:
    """Return the outputs with * expanded and every name unique."""
    items: list[Item] = []
    for expression in node.expressions:
        if isinstance(expression, exp.Star) or (
            isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
        ):
            items += _star(context, expression, relation)
        elif isinstance(expression, exp.Alias):
            items.append(Item(expression.alias, expression.this))
        elif isinstance(expression, exp.Column):
            items.append(Item(expression.name, expression))
        elif isinstance(expression, exp.Aliases):
            context.fail(expression, "TABLE-FUNCTION", "several names for one output column", hint="give one name")
        else:
            items.append(Item(in_spark(expression).lower() or "value", expression))
    if len(items) > MOST_OUTPUTS:
        context.fail(
            node.expressions[0],
            "TOO-LONG",
            f"SELECT has {len(items):,} columns, more than {MOST_OUTPUTS:,}",
            reason="planning takes time for each",
            hint="name the columns that are needed, or split the query into several views",
        )
    if not items:
        hint = (
            "list columns, or write *" if node.args.get("from_") is not None else "add FROM and a table, or list values"
        )
        context.fail(node, "SYNTAX", "SELECT has no columns", hint=hint)
    named = _unique(context, items)
    changed = [given.name for given, item in zip(items, named, strict=True) if given.name != item.name]
    node.meta[REPEATED] = changed[0] if changed else None
    return named


def _star(context: Context, node: exp.Expr, relation: Relation) -> list[Item]:
    if isinstance(node, exp.Column):
        if node.text("db"):
            check_database(context, node)
        tables = tables_named(relation, node.text("table"))
        if not tables:
            context.fail(node, "UNKNOWN-TABLE", f"there is no table or alias {node.text('table')} in FROM")
        columns = [c for t in tables for c in t.columns]
    else:
        columns = list(relation.visible)
    items = _modified(context, node, [Item(c.name, node, c.reference) for c in columns])
    kept = {item.star for item in items}
    for column in columns:
        if column.reference in kept:
            check_readable(context, node, column, of_star=True)
    return items


def _modified(context: Context, node: exp.Expr, items: list[Item]) -> list[Item]:
    """Apply EXCEPT (or EXCLUDE), REPLACE and RENAME to the columns of a star."""
    star = node.this if isinstance(node, exp.Column) else node
    known = [item.name for item in items]

    def named(part: str, name_of: Callable[[exp.Expr], exp.Expr]) -> dict[str, exp.Expr]:
        value = star.args.get(part) or ()
        lowered = {name.lower() for name in known}
        found: dict[str, exp.Expr] = {}
        for one in value if isinstance(value, list | tuple) else [value]:
            name = name_of(one).name
            if name.lower() not in lowered:
                hint = nearest(name, known) or "name one of its columns"
                context.fail(one, "UNKNOWN-COLUMN", f"* has no column {name}", hint=hint)
            if name.lower() in found:
                context.fail(one, "STAR", f"* names the column {name} twice", hint="name it once")
            found[name.lower()] = one
        return found

    dropped = named("except_", lambda one: one)
    replaced = named("replace", lambda one: one.args["alias"])
    renamed = named("rename", lambda one: one.this)
    result = []
    for item in items:
        name = item.name.lower()
        if name in dropped:
            continue
        if name in replaced:
            item = Item(item.name, replaced[name].this)
        result.append(replace(item, name=renamed[name].alias) if name in renamed else item)
    return result


def _unique(context: Context, items: list[Item]) -> list[Item]:
    """Make the names unique: later duplicates are numbered, and noted for whoever reads the first by its name."""
    taken: set[str] = set()
    result = []
    given = {i.name.lower() for i in items}
    last: dict[str, int] = {}  # number of each name
    for item in items:
        name, number = item.name, last.get(item.name.lower(), 1)
        while name.lower() in taken or (number > 1 and name.lower() in given):
            number += 1
            name = f"{item.name}_{number}"
        taken.add(name.lower())
        if number > 1:
            context.numbered.setdefault(item.name.lower(), set()).add(name.lower())
        last[item.name.lower()] = number
        result.append(replace(item, name=name))
    return result
