"""The rows of a subquery that LIMIT and DISTINCT ON choose for each outer row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Column, Expression
from crown.sql.clauses.bound import BoundQuery
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.rewrites.asof import ASOF
from crown.sql.clauses.subqueries.attach import equalities
from crown.sql.clauses.subqueries.domain import domain_of, known, outside
from crown.sql.clauses.subqueries.first_rows import first_rows
from crown.sql.clauses.subqueries.inner import Inner, by_key, refuse_hidden_order
from crown.sql.context import Context
from crown.sql.normalise.nesting import nest_columns
from crown.sql.normalise.outer import restricted
from crown.sql.relation import Relation
from crown.sql.scope import Scope


def first_of_each(context: Context, inner: Inner, scope: Scope, node: exp.Expr) -> Inner:
    """Return the rows that LIMIT and DISTINCT ON choose for each outer row: the first ones of each key."""
    named = dict(reversed(list(zip(inner.names, inner.outputs, strict=True))))

    def over(expression: Expression) -> Expression:
        return named.get(expression.name, expression) if isinstance(expression, Column) else expression

    order = [over(o.expression) for o in inner.order]
    if inner.distinct and not all(e in inner.outputs for e in order):
        refuse_hidden_order(context, node)
    on = [over(e) for e in inner.on or ()]
    relation, correlated, pieces = with_outer_values(
        context, inner.relation, inner.correlated, [*inner.outputs, *order, *on], scope, node
    )
    keyed = by_key(context, relation, correlated, scope, node)
    columns = {f"key_{i + 1}": e for i, (e, _) in enumerate(keyed.pairs)}
    columns |= {f"value_{i + 1}": e for i, e in enumerate(pieces)}
    keys, values = list(columns)[: len(keyed.pairs)], list(columns)[len(keyed.pairs) :]
    source = keyed.relation
    if inner.distinct:
        source = nest_columns(context, source, columns, distinct=True, name="subquery")
        columns = {name: c.reference for name, c in zip(columns, source.visible, strict=True)}
    places = values[len(inner.outputs) :]
    ordered = tuple(
        replace(o, expression=Column(name, columns[name].type)) for o, name in zip(inner.order, places, strict=False)
    )
    if inner.on is not None:
        partition = [*keys, *values[len(inner.outputs) + len(order) :]]
        source = first_rows(context, _bound(context, source, columns), partition, ordered, (1, 0), "DISTINCT ON")
        columns = {name: c.reference for name, c in zip(columns, source.visible, strict=True)}
    if inner.limit is not None:
        word = "ASOF JOIN" if node.meta.get(ASOF) else "LIMIT in a correlated subquery"
        source = first_rows(context, _bound(context, source, columns), keys, ordered, inner.limit, word)
    found = [c.reference for c in source.visible]
    pairs = [(inside, outer) for inside, (_, outer) in zip(found, keyed.pairs, strict=False)]
    shown = found[len(pairs) : len(pairs) + len(inner.outputs)]
    return Inner(source, (*equalities(pairs), *keyed.guards), tuple(shown), inner.names)


def _bound(context: Context, relation: Relation, columns: Mapping[str, Expression]) -> BoundQuery:
    branches = ((b, tuple(context.in_branch(e, b) for e in columns.values())) for b in relation.branches)
    return BoundQuery(tuple(OutputColumn(n, e.type) for n, e in columns.items()), tuple(branches), None)


def with_outer_values(
    context: Context,
    relation: Relation,
    correlated: Sequence[Expression],
    outputs: Sequence[Expression],
    scope: Scope,
    node: exp.Expr,
) -> tuple[Relation, list[Expression], list[Expression]]:
    """Return the rows, what they are compared with and the outputs, which then read nothing of the outer row."""
    if not outside(outputs, known(relation)):
        return relation, list(correlated), list(outputs)
    values = domain_of(context, outside([*outputs, *correlated], known(relation)), scope, node)
    own = [values.rewritten(context, p) for p in correlated]
    shown = [values.rewritten(context, e) for e in outputs]
    relation = values.beside(relation)
    relation = relation.with_branches(restricted(context, b, own) for b in relation.branches)
    return relation, list(equalities(values.pairs(own))), shown
