"""Subqueries in FROM that read the query around them: LATERAL, and derived tables inside a subquery.

They are bound as rows with predicates that compare them with the outer row, like the subquery of EXISTS.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.clauses.bound import renamed, typed
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.subqueries.attach import attach, equalities
from crown.sql.clauses.subqueries.chosen import first_of_each, with_outer_values
from crown.sql.clauses.subqueries.domain import domain_of, known, outside
from crown.sql.clauses.subqueries.inner import Inner, Single, bind_inner, by_key, unwrapped
from crown.sql.clauses.subqueries.subqueries import SelectSubqueries
from crown.sql.context import Context
from crown.sql.normalise.conjunction import cast_value
from crown.sql.normalise.nesting import nest_columns
from crown.sql.normalise.outer import restricted
from crown.sql.relation import Relation, VisibleColumn, VisibleTable
from crown.sql.scope import Scope


def bind_derived(
    context: Context, node: exp.Expr, scope: Scope, environment: Environment, alias: str, names: tuple[str, ...]
) -> Relation:
    """Return the rows of the query, with the predicates that compare them with outer queries as `correlated`."""
    query = unwrapped(context, node)
    inner = bind_inner(context, query, scope, environment, name=alias or "subquery")
    if isinstance(inner, Single):
        relation, correlated, outputs = _one_row(context, inner, scope, environment, query)
    else:
        relation, correlated, outputs = _rows(context, inner, scope, query)
    found = typed(tuple(OutputColumn(n, e.type) for n, e in zip(inner.names, outputs, strict=True)))
    prefix = context.new_id("s")
    columns = renamed(context, found, names, node)
    visible = tuple(VisibleColumn(c.name, f"{prefix}.{i}", c.type) for i, c in enumerate(columns))
    branches = []
    for branch in relation.branches:
        own = {v.id: cast_value(context.in_branch(e, branch), v.type) for v, e in zip(visible, outputs, strict=True)}
        branches.append(replace(branch, values={**branch.values, **own}))
    return Relation(
        tuple(branches), (VisibleTable(alias, visible),), visible, tuple(correlated), tuple(relation.columns)
    )


def _rows(
    context: Context, inner: Inner, scope: Scope, query: exp.Expr
) -> tuple[Relation, list[Expression], list[Expression]]:
    if inner.chooses:
        inner = first_of_each(context, inner, scope, query)
    relation, correlated, outputs = with_outer_values(
        context, inner.relation, inner.correlated, inner.outputs, scope, query
    )
    if inner.distinct:
        keyed = by_key(context, relation, correlated, scope, query)
        shown = {f"key_{i + 1}": e for i, (e, _) in enumerate(keyed.pairs)}
        shown |= {f"value_{i + 1}": e for i, e in enumerate(outputs)}
        rows = nest_columns(context, keyed.relation, shown, distinct=True, name="subquery")
        found = [c.reference for c in rows.visible]
        pairs = [(inside, outer) for inside, (_, outer) in zip(found, keyed.pairs, strict=False)]
        return rows, [*equalities(pairs), *keyed.guards], list(found[len(pairs) :])
    return relation, correlated, outputs


def _one_row(
    context: Context, single: Single, scope: Scope, environment: Environment, query: exp.Expr
) -> tuple[Relation, list[Expression], list[Expression]]:
    """An aggregate without GROUP BY has a row for every outer row, also where there is no group."""
    asked = [*(outer for _, outer in single.pairs), *single.guards, *single.values, *single.defaults]
    values = domain_of(context, outside(asked, known(single.groups)), scope, query)
    inside = replace(
        single,
        pairs=tuple((inner, values.rewritten(context, outer)) for inner, outer in single.pairs),
        guards=tuple(values.rewritten(context, guard) for guard in single.guards),
        values=tuple(values.rewritten(context, value) for value in single.values),
        defaults=tuple(values.rewritten(context, default) for default in single.defaults),
    )
    subqueries = SelectSubqueries(context, environment, "FROM")
    *outputs, there = subqueries.row(inside, query)
    relation, _ = attach(context, values.relation, subqueries.attachments, [], None)
    relation = relation.with_branches(restricted(context, b, [there]) for b in relation.branches)
    return relation, list(equalities(values.pairs())), outputs
