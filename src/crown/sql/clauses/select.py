"""One SELECT: FROM, WHERE, then either plain rows or groups, then DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from crown import types
from crown.ir.expression import Column, Expression, columns_of
from crown.ir.query import Aggregate, Body, Named, Order, Select
from crown.sql.clauses.aggregates import MARK, Aggregates
from crown.sql.clauses.bound import Bound
from crown.sql.clauses.definitions import OutputColumn
from crown.sql.clauses.from_clause import bind_from
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.group_by import Groups, group_nodes
from crown.sql.clauses.limit import is_output, over_outputs, topped
from crown.sql.clauses.order_by import bind_limit, bind_order
from crown.sql.clauses.subqueries import SelectPlace
from crown.sql.clauses.where import bind_where
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunction, cast_value
from crown.sql.normalise.levels import never_holds
from crown.sql.outputs import Item, expand_items
from crown.sql.relation import Branch, Relation
from crown.sql.scalar.binder import AliasBinder, Binder
from crown.sql.scope import Scope
from crown.types import STRING


def bind_select(context: Context, node: exp.Select, parent: Scope | None, environment: Environment) -> Bound:
    relation = bind_from(context, node, parent, environment)
    relation, correlated = bind_where(context, node.args.get("where"), relation, parent, environment)
    if correlated:
        raise AssertionError("a correlated WHERE outside a condition")
    return bind_rows(context, node, relation, parent, environment)


def bind_rows(
    context: Context, node: exp.Select, relation: Relation, parent: Scope | None, environment: Environment
) -> Bound:
    """Everything after WHERE."""
    scope = Scope(relation, parent)
    items = expand_items(context, node, relation)
    aggregates = Aggregates(context)
    place = SelectPlace(context, environment, "SELECT", aggregates=aggregates)
    outputs = [
        # An output may be named by the outputs after it.
        item.star or AliasBinder(context, scope, place, items[:index]).bind(item.node)
        for index, item in enumerate(items)
    ]
    grouped = group_nodes(context, node, items)
    binder = AliasBinder(context, scope, place, items)
    having = binder.condition(node.args["having"].this) if node.args.get("having") is not None else None
    order_columns = [OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True)]
    order = bind_order(context, node, order_columns, partial(_order_expression, binder))
    limit = bind_limit(context, node, bool(order))
    distinct = _is_distinct(context, node)
    if grouped is not None or aggregates.found or having is not None:
        groups = Groups(context, grouped or [], items, outputs, scope)
        groups.add_scalars([r.visible[0] for r in place.joined])
        relation = place.join(relation)
        return _grouped(context, node, relation, items, outputs, groups, aggregates, having, distinct, order, limit)
    relation = place.join(relation)
    return _plain(context, relation, items, outputs, distinct, order, limit)


def _order_expression(binder: Binder, node: exp.Expr) -> Expression:
    """An ORDER BY expression that is no output column by name: bound like an output, matched with outputs later."""
    expression = binder.bind(node)
    place = binder.context.place(node)
    if place is not None:
        # The same columns were met before, in SELECT or WHERE; a complaint about the order belongs here.
        binder.context.places[expression] = place
        for name in columns_of(expression):
            binder.context.order_places[name] = place
    return expression


def _plain(
    context: Context,
    relation: Relation,
    items: list[Item],
    outputs: list[Expression],
    distinct: bool,
    order: tuple[Order, ...],
    limit: tuple[int, int] | None,
) -> Bound:
    columns = tuple(OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True))
    ordering = over_outputs(context, order, columns, outputs, limited=limit is not None, distinct=distinct)
    columns, outputs = (*columns, *ordering.columns), [*outputs, *ordering.outputs]
    branches = tuple((b, tuple(context.in_branch(e, b) for e in outputs)) for b in relation.branches)
    bound = Bound(columns, branches, None)
    if distinct:
        bound = Bound(columns, None, _distinct(context, bound))
    return topped(context, bound, ordering, limit)


def _distinct(context: Context, bound: Bound) -> Body:
    assert bound.branches is not None
    branches = [b for b in bound.branches if not never_holds(b[0].predicates)] or list(bound.branches[:1])
    columns = [replace(c, type=STRING if c.type == types.NULL else c.type) for c in bound.columns]
    return Select(
        branches=tuple(
            build_conjunction(
                context,
                branch,
                [Wanted(c.name, cast_value(e, c.type), bind=True) for c, e in zip(columns, outputs, strict=True)],
            )
            for branch, outputs in branches
        ),
        outputs=tuple(Named(c.name, Column(c.name, c.type)) for c in columns),
        distinct=True,
    )


def _grouped(
    context: Context,
    node: exp.Select,
    relation: Relation,
    items: list[Item],
    outputs: list[Expression],
    groups: Groups,
    aggregates: Aggregates,
    having: Expression | None,
    distinct: bool,
    order: tuple[Order, ...],
    limit: tuple[int, int] | None,
) -> Bound:
    names = groups.names | {}
    wanted: dict[str, Expression] = {name: expression for expression, name in names.items()}
    found: list[Aggregate] = []
    living = [b for b in relation.branches if not never_holds(b.predicates)] or list(relation.branches[:1])
    renames: dict[str, str] = {}
    for aggregate in aggregates.found:
        name = groups.free_name(aggregate.name)
        renames[MARK + aggregate.name] = name
        argument: Expression | None = None
        if aggregate.argument is not None and not _counts_rows(
            context, aggregate.function, aggregate.distinct, aggregate.argument, living
        ):
            column = next((n for n, e in wanted.items() if e == aggregate.argument), None)
            if column is None:
                column = groups.free_name(f"{name}_input")
                wanted[column] = aggregate.argument
            argument = Column(column, aggregate.argument.type)
        found.append(
            Aggregate(name, aggregate.function, argument, aggregate.distinct and argument is not None, aggregate.type)
        )

    def over_groups(expression: Expression, at: exp.Expr) -> Expression:
        return groups.rewrite(expression, renames, at)

    shown = [over_groups(e, i.node) for i, e in zip(items, outputs, strict=True)]
    columns = tuple(
        OutputColumn(i.name, STRING if e.type == types.NULL else e.type) for i, e in zip(items, shown, strict=True)
    )
    grouped_order = tuple(
        o if is_output(o.expression, columns) else replace(o, expression=over_groups(o.expression, node.args["order"]))
        for o in order
    )
    ordering = over_outputs(context, grouped_order, columns, shown, limited=limit is not None, distinct=distinct)
    columns, shown = (*columns, *ordering.columns), [*shown, *ordering.outputs]
    group_names = set(names.values())
    select = Select(
        branches=tuple(
            build_conjunction(
                context,
                branch,
                [
                    Wanted(n, cast_value(context.in_branch(e, branch), e.type), bind=n in group_names)
                    for n, e in wanted.items()
                ],
            )
            for branch in living
        ),
        outputs=tuple(Named(c.name, cast_value(e, c.type)) for c, e in zip(columns, shown, strict=True)),
        distinct=distinct,
        group_by=tuple(Named(n, Column(n, e.type)) for e, n in names.items()),
        aggregates=tuple(found),
        having=over_groups(having, node.args["having"]) if having is not None else None,
    )
    return topped(context, Bound(columns, None, select), ordering, limit)


def _counts_rows(context: Context, function: str, distinct: bool, argument: Expression, branches: list[Branch]) -> bool:
    """COUNT of something that is never NULL is COUNT(*)."""
    if function != "count" or distinct:
        return False
    return not any(context.may_be_null(argument, b) for b in branches)


def _is_distinct(context: Context, node: exp.Select) -> bool:
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        context.fail(
            distinct,
            "DISTINCT-ON",
            "DISTINCT ON is not maintained",
            reason="which row stays depends on an order of rows",
            hint="use MIN or MAX with GROUP BY",
        )
    return distinct is not None
