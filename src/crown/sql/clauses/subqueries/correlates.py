"""Whether a query reads outer queries, judging by its text before it is bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from crown.sql.clauses.from_clause.definitions import Definition
from crown.sql.context import Context
from crown.sql.scope import Scope


def correlates(context: Context, query: exp.Expr, scope: Scope, names: Mapping[str, Definition]) -> bool:
    """Whether the query names a table of an outer query, or a column that only outer queries have."""
    own = {t.alias_or_name.lower() for t in query.find_all(exp.Table, exp.Subquery)}
    around = {t.alias.lower() for level in scope.chain() for t in level.relation.tables} - own
    columns = list(query.find_all(exp.Column))
    if any(column.text("table").lower() in around for column in columns):
        return True
    outer = {c.name.lower() for level in scope.chain() for c in level.relation.visible}
    bare = {c.name.lower() for c in columns if not c.text("table") and not isinstance(c.this, exp.Star)} & outer
    return bool(bare) and bool(bare - set(_names(context, query, names, set())))


def _names(context: Context, query: exp.Expr, definitions: Mapping[str, Definition], met: set[str]) -> Iterator[str]:
    """The names of columns that some table or output inside the query has."""
    for select in query.find_all(exp.Select):
        yield from (item.alias_or_name.lower() for item in select.expressions)
    for alias in query.find_all(exp.TableAlias):
        yield from (column.name.lower() for column in alias.columns)
    for table in query.find_all(exp.Table):
        name = table.name.lower()
        definition = definitions.get(name)
        known = context.schema.tables.get(name)
        view = context.schema.views.get(name)
        if definition is None and known is not None:
            yield from (column.name.lower() for column in known.columns)
        elif name not in met and (definition is not None or view is not None):
            met.add(name)
            columns = definition.columns if definition is not None else view.columns if view is not None else ()
            yield from (column.lower() for column in columns)
            inner = definition.query if definition is not None else view.query if view is not None else query
            yield from _names(context, inner, definition.names if definition is not None else {}, met)
