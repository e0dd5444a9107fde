"""One SELECT: FROM, WHERE, then either plain rows or groups, then DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from crown.ir.expression import Expression, columns_of
from crown.sql.clauses.bound import BoundQuery
from crown.sql.clauses.from_clause.joins import bind_from
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.grouping.aggregates import Aggregates
from crown.sql.clauses.grouping.group_by import Groups, group_nodes, group_subqueries
from crown.sql.clauses.grouping.grouped import Grouping, with_keys
from crown.sql.clauses.grouping.grouping_sets import GroupNodes
from crown.sql.clauses.misplaced import refuse_window
from crown.sql.clauses.result.aliases import write_out_aliases
from crown.sql.clauses.result.distinct_on import bind_distinct_on, distinct_on, has_distinct_on
from crown.sql.clauses.result.limit import bind_limit
from crown.sql.clauses.result.order_by import bind_order
from crown.sql.clauses.result.shown import Shown, show_rows
from crown.sql.clauses.result.top import is_output
from crown.sql.clauses.subqueries.attach import attach_near
from crown.sql.clauses.subqueries.subqueries import SelectSubqueries, Ungrouped
from crown.sql.clauses.where import bind_where
from crown.sql.clauses.windows.window_functions import WindowCollector
from crown.sql.clauses.windows.windowed import has_window, joined_groups, windowed_rows
from crown.sql.context import Context
from crown.sql.outputs import Item, expand_items
from crown.sql.relation import Relation
from crown.sql.scalar.alias_binder import AliasBinder, OutputBinder
from crown.sql.scalar.binder import Binder
from crown.sql.scope import Scope


def bind_select(context: Context, node: exp.Select, parent: Scope | None, environment: Environment) -> BoundQuery:
    relation = bind_from(context, node, parent, environment)
    write_out_aliases(context, node, relation)
    relation, correlated = bind_where(context, node.args.get("where"), relation, parent, environment)
    if correlated:
        raise AssertionError("a correlated WHERE outside a condition")
    return bind_rows(context, node, relation, parent, environment)


def bind_rows(
    context: Context,
    node: exp.Select,
    relation: Relation,
    parent: Scope | None,
    environment: Environment,
    keys: Sequence[Expression] = (),
) -> BoundQuery:
    """Everything after WHERE. `keys`, over the relation, are added to groups and partitions and output first."""
    items = expand_items(context, node, relation)
    grouped = group_nodes(context, node, items, relation.visible)
    aggregates = Aggregates(context, [] if grouped is None else _written(grouped.nodes, items))
    scope = Scope(relation, parent, aggregate=lambda n: aggregates.bind_inside(n, binder))
    windows = WindowCollector(context, node, keys)
    subqueries = SelectSubqueries(context, environment, "SELECT", aggregates, windows)
    subqueries.groups = group_subqueries([] if grouped is None else grouped.nodes, items)
    binder = AliasBinder(context, scope, subqueries, items)
    outputs = [item.star or binder.at(index).bind(item.node) for index, item in enumerate(items)]
    having, qualify = _having(binder, node), _qualify(binder, node, windows)
    shown = _shown(binder, node, items, outputs)
    on = bind_distinct_on(context, node, shown.columns, partial(_order_expression, binder))
    on = None if on is None else (*keys, *on)
    shown = with_keys(shown, keys)
    if grouped is not None or aggregates.found or aggregates.groupings or having is not None:
        in_groups = Binder(context, Scope(relation, parent), Ungrouped(subqueries))
        groups = Groups(context, grouped or GroupNodes([]), items, outputs, in_groups, keys)
        show = Grouping(context, relation, groups, aggregates, having, subqueries.attachments, parent).show
        rows = None
    else:
        rows = attach_near(context, relation, subqueries.attachments, parent)
        show = partial(show_rows, context, rows)
    if windows.found:
        return distinct_on(context, shown, on, lambda s: _windowed(context, rows, s, windows, qualify, show))
    return distinct_on(context, shown, on, show)


def _having(binder: Binder, node: exp.Select) -> Expression | None:
    having = node.args.get("having")
    if having is None:
        return None
    condition = binder.condition(having.this)
    if has_window(condition):
        refuse_window(binder.context, having, "HAVING")
    return condition


def _qualify(binder: Binder, node: exp.Select, windows: WindowCollector) -> Expression | None:
    qualify = node.args.get("qualify")
    if qualify is None:
        return None
    condition = binder.condition(qualify.this)
    if not windows.found:
        binder.context.fail(qualify, "WINDOW-FUNCTION", "QUALIFY without a window function", hint="use WHERE or HAVING")
    return condition


def _shown(binder: AliasBinder, node: exp.Select, items: list[Item], outputs: list[Expression]) -> Shown:
    context, distinct = binder.context, node.args.get("distinct") is not None and not has_distinct_on(node)
    shown = Shown(node, items, outputs, distinct, (), bind_limit(context, node))
    in_order = OutputBinder(binder, outputs) if context.is_spark else binder
    order = bind_order(context, node, list(shown.columns), partial(_order_expression, in_order))
    return replace(shown, order=order)


def _written(nodes: list[exp.Expr], items: list[Item]) -> list[exp.Expr]:
    """The expressions of GROUP BY, with positions and names of outputs written out."""

    def written(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(items):
            return items[int(node.name) - 1].node
        return node

    return [written(node) for node in nodes]


def _windowed(
    context: Context,
    relation: Relation | None,
    shown: Shown,
    windows: WindowCollector,
    qualify: Expression | None,
    rows: Callable[[Shown], BoundQuery],
) -> BoundQuery:
    """Window functions over what `rows` binds; `relation`: the rows of FROM, unless they are grouped."""
    hidden = [o.expression for o in shown.order if not is_output(o.expression, shown.columns)]

    def pieces(expressions: Sequence[Expression]) -> BoundQuery:
        items = [Item(f"c{i + 1}", shown.node) for i in range(len(expressions))]
        return rows(Shown(shown.node, items, list(expressions), False, (), None))

    if relation is not None and all(w.is_group for w in windows.found):
        found = joined_groups(context, relation, windows.found)
    else:
        read = [*shown.outputs, *hidden, *(() if qualify is None else (qualify,))]
        found = windowed_rows(context, pieces, windows.found, read)
    order = tuple(
        o if o.expression not in hidden else replace(o, expression=found.over(o.expression)) for o in shown.order
    )
    kept = found.relation
    if qualify is not None:
        condition = found.over(qualify)
        kept = kept.with_branches(
            replace(b, predicates=(*b.predicates, context.in_branch(condition, b))) for b in kept.branches
        )
    outputs = [found.over(e) for e in shown.outputs]
    return show_rows(context, kept, replace(shown, outputs=outputs, order=order))


def _order_expression(binder: Binder, node: exp.Expr) -> Expression:
    """Bind an ORDER BY expression that is not the name of an output column; it is matched with outputs later."""
    expression = binder.bind(node)
    place = binder.context.place(node)
    if place is not None:
        # The same columns were met before, in SELECT or WHERE; a complaint about the order belongs
        # here.
        binder.context.places[expression] = place
        for name in columns_of(expression):
            binder.context.order_places[name] = place
    return expression
