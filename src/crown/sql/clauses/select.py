"""One SELECT: FROM, WHERE, then either plain rows or groups, then DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from crown.ir.expression import Column, Expression, columns_of
from crown.ir.query import Aggregate, Body, Named, Order, Select
from crown.sql.clauses.aggregates import MARK, Aggregates
from crown.sql.clauses.attach import Attachment, attach
from crown.sql.clauses.bound import BoundQuery, source_relation, typed
from crown.sql.clauses.definitions import OutputColumn
from crown.sql.clauses.from_clause import bind_from
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.group_by import Groups, group_nodes, group_subqueries
from crown.sql.clauses.grouping_sets import GroupNodes
from crown.sql.clauses.limit import is_output, over_outputs, topped
from crown.sql.clauses.order_by import bind_limit, bind_order
from crown.sql.clauses.places import refuse_window
from crown.sql.clauses.subqueries import SelectSubqueries, Ungrouped
from crown.sql.clauses.where import bind_where
from crown.sql.clauses.windowed import has_window, joined_groups, windowed_rows
from crown.sql.clauses.windows import Windows
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions, cast_value
from crown.sql.normalise.levels import living_branches
from crown.sql.normalise.outer import restricted
from crown.sql.outputs import Item, expand_items
from crown.sql.refuse import refuse_far_correlation
from crown.sql.relation import Branch, Relation
from crown.sql.scalar.binder import AliasBinder, Binder
from crown.sql.scope import Scope


def bind_select(context: Context, node: exp.Select, parent: Scope | None, environment: Environment) -> BoundQuery:
    relation = bind_from(context, node, parent, environment)
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
    """Everything after WHERE. The groups are also by `keys`, over the relation, which are shown first."""
    scope = Scope(relation, parent)
    items = expand_items(context, node, relation)
    grouped = group_nodes(context, node, items)
    aggregates = Aggregates(context, [] if grouped is None else _written(grouped.nodes, items))
    windows = Windows(context, node)
    subqueries = SelectSubqueries(context, environment, "SELECT", aggregates, windows)
    subqueries.groups = group_subqueries([] if grouped is None else grouped.nodes, items)
    outputs = [
        # An output may be named by the outputs after it.
        item.star or AliasBinder(context, scope, subqueries, items[:index]).bind(item.node)
        for index, item in enumerate(items)
    ]
    binder = AliasBinder(context, scope, subqueries, items)
    having = binder.condition(node.args["having"].this) if node.args.get("having") is not None else None
    if having is not None and has_window(having):
        refuse_window(context, node.args["having"], "HAVING")
    qualify = binder.condition(node.args["qualify"].this) if node.args.get("qualify") is not None else None
    order_columns = [OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True)]
    order = bind_order(context, node, order_columns, partial(_order_expression, binder))
    limit = bind_limit(context, node)
    shown = _Shown(node, items, outputs, _is_distinct(context, node), order, limit)
    if not windows.found and qualify is not None:
        context.fail(
            node.args["qualify"], "WINDOW-FUNCTION", "QUALIFY without a window function", hint="use WHERE or HAVING"
        )
    if grouped is not None or aggregates.found or having is not None:
        in_groups = Binder(context, scope, Ungrouped(subqueries))
        groups = Groups(context, grouped or GroupNodes([]), items, outputs, in_groups, keys)
        shown = _with_keys(shown, keys)

        def over_groups(shown: _Shown) -> BoundQuery:
            return _grouped(context, relation, shown, groups, aggregates, having, subqueries.attachments, parent)

        if not windows.found:
            return over_groups(shown)
        if keys:
            refuse_window(context, node, "a correlated subquery with groups")
        return _windowed(context, None, shown, windows, qualify, over_groups)
    rows = _attached(context, relation, subqueries.attachments, parent)
    if windows.found:
        return _windowed(context, rows, shown, windows, qualify, lambda shown: _plain(context, rows, shown))
    return _plain(context, rows, shown)


def _attached(
    context: Context, relation: Relation, attachments: Sequence[Attachment], parent: Scope | None
) -> Relation:
    relation, correlated = attach(context, relation, attachments, [], parent)
    if correlated:
        refuse_far_correlation(context, correlated[0])
    return relation


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
    shown: _Shown,
    windows: Windows,
    qualify: Expression | None,
    rows: Callable[[_Shown], BoundQuery],
) -> BoundQuery:
    """Window functions over what `rows` binds; `relation`: the rows of FROM, unless they are grouped."""
    names = [OutputColumn(i.name, e.type) for i, e in zip(shown.items, shown.outputs, strict=True)]
    hidden = [o.expression for o in shown.order if not is_output(o.expression, tuple(names))]

    def pieces(expressions: Sequence[Expression]) -> BoundQuery:
        items = [Item(f"c{i + 1}", shown.node) for i in range(len(expressions))]
        return rows(_Shown(shown.node, items, list(expressions), False, (), None))

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
    return _plain(context, kept, replace(shown, outputs=outputs, order=order))


@dataclass(frozen=True)
class _Shown:
    """What a SELECT shows of its rows or groups, and in which order."""

    node: exp.Select
    items: list[Item]
    outputs: list[Expression]
    distinct: bool
    order: tuple[Order, ...]
    limit: tuple[int, int] | None


def _order_expression(binder: Binder, node: exp.Expr) -> Expression:
    """Bind an ORDER BY expression that is not the name of an output column; it is matched with outputs later."""
    expression = binder.bind(node)
    place = binder.context.place(node)
    if place is not None:
        # The same columns were met before, in SELECT or WHERE; a complaint about the order belongs here.
        binder.context.places[expression] = place
        for name in columns_of(expression):
            binder.context.order_places[name] = place
    return expression


def _plain(context: Context, relation: Relation, shown: _Shown) -> BoundQuery:
    columns = tuple(OutputColumn(i.name, e.type) for i, e in zip(shown.items, shown.outputs, strict=True))
    ordering = over_outputs(context, shown.order, columns, shown.outputs, distinct=shown.distinct)
    columns, outputs = (*columns, *ordering.columns), [*shown.outputs, *ordering.outputs]
    branches = tuple((b, tuple(context.in_branch(e, b) for e in outputs)) for b in relation.branches)
    bound = BoundQuery(columns, branches, None)
    if shown.distinct:
        bound = BoundQuery(columns, None, _distinct(context, bound))
    return topped(context, bound, ordering, shown.limit)


def _distinct(context: Context, bound: BoundQuery) -> Body:
    assert bound.branches is not None
    columns = typed(bound.columns)
    return Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(c.name, cast_value(e, c.type), bind=True) for c, e in zip(columns, outputs, strict=True)])
                for b, outputs in bound.branches
            ),
        ),
        outputs=tuple(Named(c.name, Column(c.name, c.type)) for c in columns),
        distinct=True,
    )


def _with_keys(shown: _Shown, keys: Sequence[Expression]) -> _Shown:
    taken, items = {i.name.lower() for i in shown.items}, []
    for number, _ in enumerate(keys):
        name = next(n for i in range(len(taken) + 1) if (n := f"key_{number + 1}{'_' * i}") not in taken)
        taken.add(name)
        items.append(Item(name, shown.node))
    return replace(shown, items=[*items, *shown.items], outputs=[*keys, *shown.outputs])


def _grouped(
    context: Context,
    relation: Relation,
    shown: _Shown,
    groups: Groups,
    aggregates: Aggregates,
    having: Expression | None,
    attachments: Sequence[Attachment],
    parent: Scope | None,
) -> BoundQuery:
    """Groups. Subqueries in aggregates and GROUP BY are joined with the rows before, all others with the groups."""
    after = [a for a in attachments if not a.grouped]
    shared = bool(groups.names) and not any(a.predicates for a in after)
    if shared:
        groups.add_values([column for a in after for column in a.relation.visible])
        after = []
    relation = _attached(context, relation, [a for a in attachments if a not in after], parent)
    branches = living_branches(relation)
    folded = _folded(context, groups, aggregates, branches)
    folded.renames |= groups.flags(aggregates.groupings, shown.node)
    beside = frozenset(i for a in after for i in a.ids)

    def over_groups(expression: Expression, at: exp.Expr) -> Expression:
        return groups.rewrite(expression, folded.renames, at, beside)

    outputs = [over_groups(e, i.node) for i, e in zip(shown.items, shown.outputs, strict=True)]
    columns = typed(tuple(OutputColumn(i.name, e.type) for i, e in zip(shown.items, outputs, strict=True)))
    order = tuple(
        o
        if is_output(o.expression, columns)
        else replace(o, expression=over_groups(o.expression, shown.node.args["order"]))
        for o in shown.order
    )
    condition = over_groups(having, shown.node.args["having"]) if having is not None else None
    select = Select(
        branches=build_conjunctions(context, ((b, _wanted(context, b, folded.wanted, groups)) for b in branches)),
        outputs=(),
        group_by=tuple(Named(n, Column(n, e.type)) for e, n in groups.names.items()),
        aggregates=tuple(folded.aggregates),
        sets=groups.sets,
    )
    if after:
        after = [replace(a, predicates=tuple(over_groups(p, a.node) for p in a.predicates)) for a in after]
        shown = replace(shown, outputs=outputs, order=order)
        return _beside_groups(context, select, shown, condition, after, parent)
    ordering = over_outputs(context, order, columns, outputs, distinct=shown.distinct)
    columns, outputs = (*columns, *ordering.columns), [*outputs, *ordering.outputs]
    select = replace(
        select,
        outputs=tuple(Named(c.name, cast_value(e, c.type)) for c, e in zip(columns, outputs, strict=True)),
        distinct=shown.distinct,
        having=condition,
    )
    return topped(context, BoundQuery(columns, None, select), ordering, shown.limit)


def _beside_groups(
    context: Context,
    select: Select,
    shown: _Shown,
    having: Expression | None,
    attachments: list[Attachment],
    parent: Scope | None,
) -> BoundQuery:
    """The groups as rows of their own, with the values of subqueries that read them beside each."""
    named = [*(select.group_by or ()), *(Named(a.name, Column(a.name, a.type)) for a in select.aggregates)]
    source = context.nest("groups", replace(select, outputs=tuple(named)))
    found = tuple(OutputColumn(n.name, n.expression.type) for n in named)
    relation = source_relation(context, "", source, found)
    values: dict[str, Expression] = {c.name: c.reference for c in relation.visible}

    def over_rows(expression: Expression) -> Expression:
        return context.substitute(expression, values, frozenset())

    attachments = [replace(a, predicates=tuple(over_rows(p) for p in a.predicates)) for a in attachments]
    relation = _attached(context, relation, attachments, parent)
    if having is not None:
        kept = [over_rows(having)]
        relation = relation.with_branches(restricted(context, b, kept) for b in relation.branches)
    columns = tuple(OutputColumn(i.name, e.type) for i, e in zip(shown.items, shown.outputs, strict=True))
    order = tuple(
        o if is_output(o.expression, columns) else replace(o, expression=over_rows(o.expression)) for o in shown.order
    )
    return _plain(context, relation, replace(shown, outputs=[over_rows(e) for e in shown.outputs], order=order))


@dataclass
class _Folded:
    """The aggregates of a SELECT, and what they and the groups need of each branch."""

    wanted: dict[str, Expression]  # columns of a branch, by name
    aggregates: list[Aggregate] = field(default_factory=list)
    renames: dict[str, str] = field(default_factory=dict)  # from the columns that stand for aggregates


def _folded(context: Context, groups: Groups, aggregates: Aggregates, branches: list[Branch]) -> _Folded:
    folded = _Folded({name: expression for expression, name in groups.names.items()})
    for aggregate in aggregates.found:
        name = groups.free_name(aggregate.name)
        folded.renames[MARK + aggregate.name] = name

        def column(expression: Expression, base: str = f"{name}_input") -> Expression:
            known = next((n for n, e in folded.wanted.items() if e == expression), None)
            if known is None:
                known = groups.free_name(base)
                folded.wanted[known] = expression
            return Column(known, expression.type)

        if aggregate.argument is not None and _counts_rows(
            context, aggregate.function, aggregate.distinct, aggregate.argument, branches
        ):
            aggregate = replace(aggregate, argument=None)
        folded.aggregates.append(replace(aggregate.over(column), name=name))
    return folded


def _wanted(context: Context, branch: Branch, wanted: dict[str, Expression], groups: Groups) -> list[Wanted]:
    names = set(groups.names.values())
    return [Wanted(n, cast_value(context.in_branch(e, branch), e.type), bind=n in names) for n, e in wanted.items()]


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
            "DISTINCT ON is not supported",
            reason="which row is returned depends on the order of rows",
            hint="use MIN or MAX with GROUP BY",
        )
    return distinct is not None
