"""Resolve names to columns: of the current FROM first, then of the outer queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.misspelt import nearest
from crown.sql.relation import Relation, VisibleColumn, VisibleTable
from crown.types import UnreadType

_FIRST_OF_SEVERAL = frozenset({"duckdb", "sqlite"})  # read the first of several outputs with the same name


@dataclass(frozen=True)
class Scope:
    """`barrier` names a construct whose subquery may not read outer queries.

    `aggregate` binds an aggregate of this query's columns that is written in a subquery.
    """

    relation: Relation
    parent: Scope | None = None
    barrier: str | None = None
    aggregate: Callable[[exp.Expr], Expression] | None = None

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def outer_aggregate(scope: Scope, node: exp.Expr) -> Callable[[exp.Expr], Expression] | None:
    """Return what binds the aggregate if all its columns are those of one outer query, which it then belongs to."""
    columns = [n for n in node.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Column)]
    levels = [_level(scope, column) for column in columns]
    if not levels or levels[0] is None or any(level is not levels[0] for level in levels):
        return None
    return levels[0].aggregate if levels[0] is not scope else None


def _level(scope: Scope, node: exp.Column) -> Scope | None:
    """The query that has the column, if no barrier is on the way."""
    name, qualifier = node.name.lower(), node.text("table")
    for level in scope.chain():
        owners = tables_named(level.relation, qualifier) if qualifier else [level.relation]
        if any(name in owner.by_name for owner in owners):
            return level
        if level.barrier is not None:
            return None
    return None


def resolve(context: Context, scope: Scope, node: exp.Column) -> VisibleColumn:
    """Return the column that `node` names."""
    name, qualifier = node.name, node.text("table")
    if node.text("db"):
        check_database(context, node)
    crossed: str | None = None
    for level in scope.chain():
        if qualifier:
            found = _qualified(context, level.relation, node, qualifier, name)
        else:
            found = _unqualified(context, level.relation, node, name)
        if found is not None:
            if crossed is not None:
                _refuse_crossing(context, node, crossed)
            check_readable(context, node, found)
            return found
        crossed = crossed or level.barrier
    if qualifier:
        aliases = [t.alias for s in scope.chain() for t in s.relation.tables]
        context.fail(
            node.args["table"],
            "UNKNOWN-TABLE",
            f"there is no table or alias {qualifier} in FROM",
            hint=nearest(qualifier, aliases) or _listing("FROM has", aliases),
        )
    columns = [c.name for s in scope.chain() for c in s.relation.visible]
    context.fail(
        node,
        "UNKNOWN-COLUMN",
        f"no table in FROM has a column {name}",
        hint=nearest(name, columns) or _listing("there are", columns),
    )


def struct_path(scope: Scope, node: exp.Column) -> tuple[exp.Column, list[str]] | None:
    """Return the column of `s.field` or `t.s.field`, and the fields taken from it; None if it is a plain column.

    An alias of a table goes before a column of the same name.
    """
    parts = [node.args[key] for key in ("catalog", "db", "table", "this") if node.args.get(key)]
    if len(parts) < 2:
        return None
    for level in scope.chain():
        tables = tables_named(level.relation, parts[0].name)
        if len(parts) > 2 and any(_has_fields(table.by_name.get(parts[1].name.lower(), ())) for table in tables):
            return exp.column(parts[1], table=parts[0]), [part.name for part in parts[2:]]
        if tables:
            return None
        if _has_fields(level.relation.by_name.get(parts[0].name.lower(), ())):
            return exp.Column(this=parts[0]), [part.name for part in parts[1:]]
    return None


def _has_fields(columns: Iterable[VisibleColumn]) -> bool:
    return any(column.type.fields for column in columns)


def check_readable(context: Context, node: exp.Expr, column: VisibleColumn, *, of_star: bool = False) -> None:
    """Reject a column of a type that Crown does not support."""
    if isinstance(column.type, UnreadType):
        context.fail(
            node,
            "UNKNOWN-TYPE",
            f"column {column.name} has type {column.type.shown}, which is not supported",
            reason="a table may have such a column, but the query can't read it",
            hint=f"write * EXCEPT ({column.name})" if of_star else "convert it to a string or number upstream",
        )


def check_database(context: Context, node: exp.Column) -> None:
    catalog, database = context.databases.get(node.text("table").lower(), ("", ""))
    if node.text("db").lower() != database or node.text("catalog").lower() not in ("", catalog):
        context.fail(
            node.args["db"],
            "UNKNOWN-TABLE",
            f"FROM does not read {node.text('table')} from {node.text('db')}",
            hint="write only the alias of the table and the column",
        )


def _refuse_crossing(context: Context, node: exp.Column, construct: str) -> None:
    context.fail(
        node,
        "CORRELATED-SUBQUERY",
        f"{construct} can't use a column of the outer query",
        reason="only EXISTS and IN compare with the outer row, by equality, and their subquery must be a plain join",
        hint="join with a subquery that groups by the correlated column",
    )


def tables_named(relation: Relation, alias: str) -> list[VisibleTable]:
    return [t for t in relation.tables if t.alias.lower() == alias.lower()]


def _qualified(
    context: Context, relation: Relation, node: exp.Column, qualifier: str, name: str
) -> VisibleColumn | None:
    tables = tables_named(relation, qualifier)
    if not tables:
        return None
    found = [c for t in tables for c in t.by_name.get(name.lower(), ())]
    if not found:
        columns = [c.name for t in tables for c in t.columns]
        context.fail(
            node.this,
            "UNKNOWN-COLUMN",
            f"{qualifier} has no column {name}",
            hint=nearest(name, columns) or _listing("it has", columns),
        )
    if len(found) > 1:
        _ambiguous(context, node, name, [f"{t.alias}.{name}" for t in tables])
    _check_named_once(context, node, name, (c for t in tables for c in t.columns))
    return found[0]


def _unqualified(context: Context, relation: Relation, node: exp.Column, name: str) -> VisibleColumn | None:
    found = relation.by_name.get(name.lower(), [])
    if len({c.id for c in found}) > 1:
        owners = [f"{t.alias}.{c.name}" for t in relation.tables for c in t.columns if c.name.lower() == name.lower()]
        _ambiguous(context, node, name, owners)
    if found:
        _check_named_once(context, node, name, relation.visible)
    return found[0] if found else None


def _check_named_once(context: Context, node: exp.Column, name: str, columns: Iterable[VisibleColumn]) -> None:
    """Reject the name of several outputs of a subquery, of which the later ones are numbered here."""
    numbered = context.numbered.get(name.lower(), set())
    other = next((c.name for c in columns if c.name.lower() in numbered), None) if numbered else None
    if other is not None and context.dialect.lower() not in _FIRST_OF_SEVERAL:
        context.fail(
            node,
            "AMBIGUOUS-COLUMN",
            f"column {name} is ambiguous",
            reason=f"several outputs of the subquery are called {name}",
            hint="give each of them its own alias",
        )


def _ambiguous(context: Context, node: exp.Column, name: str, owners: list[str]) -> None:
    context.fail(
        node,
        "AMBIGUOUS-COLUMN",
        f"column {name} is ambiguous",
        reason=f"it could be {' or '.join(owners[:4])}",
        hint=f"write {owners[0]}" if owners else "write the alias of the table before it",
    )


def _listing(lead: str, names: list[str]) -> str | None:
    distinct = list(dict.fromkeys(names))
    if not distinct:
        return None
    shown = ", ".join(distinct[:8])
    return f"{lead} {shown}{', ...' if len(distinct) > 8 else ''}"
