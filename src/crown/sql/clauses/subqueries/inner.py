"""The query inside EXISTS, IN, a quantified comparison or a scalar subquery, with what it reads of the outer row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.ir.query import Order
from crown.sql.clauses.bound import BoundQuery, refuse_placed, relation_of
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.from_clause.joins import bind_from
from crown.sql.clauses.grammar import Environment, with_definitions
from crown.sql.clauses.grouping.aggregates import MARK, Aggregates
from crown.sql.clauses.result.distinct_on import bind_distinct_on, has_distinct_on
from crown.sql.clauses.result.limit import bind_limit
from crown.sql.clauses.result.order_by import bind_order, direction, ordinal
from crown.sql.clauses.subqueries.attach import attach, equalities
from crown.sql.clauses.subqueries.correlates import correlates
from crown.sql.clauses.subqueries.decorrelate import correlation_of, group_relation
from crown.sql.clauses.subqueries.domain import Domain, Pair, domain_of, known, outside, reads_one_atom, same
from crown.sql.context import Context
from crown.sql.normalise.outer import restricted
from crown.sql.outputs import expand_items
from crown.sql.relation import Relation
from crown.sql.scalar.alias_binder import AliasBinder
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.fold import FALSE, conjunction
from crown.sql.scope import Scope, outer_aggregate
from crown.types import BOOLEAN, INT64


@dataclass(frozen=True)
class Inner:
    """Rows, and the predicates that choose those of an outer row. `outputs` are over the columns of both."""

    relation: Relation
    correlated: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    names: tuple[str, ...] = ()  # of the outputs
    bound: BoundQuery | None = None  # the whole query, if it is more than a join and reads nothing of the outer row
    order: tuple[Order, ...] = ()  # over the outputs, by name, and the columns of the relation
    limit: tuple[int, int] | None = None  # of the rows of one outer row, and the offset
    on: tuple[Expression, ...] | None = None  # DISTINCT ON: the first row of each key, as in `order`
    distinct: bool = False

    @property
    def chooses(self) -> bool:
        """Whether its rows are chosen by their order."""
        return self.limit is not None or self.on is not None


@dataclass(frozen=True)
class Single:
    """An aggregate without GROUP BY: one row for each outer row, in `groups`, or `defaults` where there is no group.

    `values` are over the columns of the groups and of the outer row. `filtered`: the last one says whether the row is
    there at all (HAVING).
    """

    groups: Relation
    pairs: tuple[Pair, ...]
    guards: tuple[Expression, ...]
    values: tuple[Expression, ...]
    defaults: tuple[Expression, ...]
    filtered: bool
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values) - self.filtered


@dataclass(frozen=True)
class Keyed:
    """The rows of a subquery that are found by equality of the pairs, for outer rows that satisfy the guards."""

    relation: Relation
    pairs: tuple[Pair, ...]
    guards: tuple[Expression, ...]

    @property
    def known(self) -> frozenset[str]:
        return known(self.relation)


def unwrapped(context: Context, query: exp.Expr) -> exp.Expr:
    """Return the query inside parentheses that have no clauses themselves."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(p) for p in ("order", "limit", "offset", "with_")):
        refuse_placed(context, query, "joins", "alias")
        query = query.this
    return query


def bind_inner(
    context: Context,
    query: exp.Expr,
    scope: Scope,
    environment: Environment,
    *,
    exists: bool = False,
    name: str = "subquery",
) -> Inner | Single:
    """`exists`: only whether there is a row matters, not which come first. `name` is for a nested body."""
    query = unwrapped(context, query)
    if isinstance(query, exp.SetOperation) and correlates(context, query, scope, environment.names):
        return _correlated_set(context, query, scope, environment)
    if not isinstance(query, exp.Select):
        barrier = Scope(Relation((), (), ()), scope, "a subquery that is a set operation")
        return _whole(context, environment.grammar.query(context, query, barrier, environment), query, name)
    environment = with_definitions(context, query, environment)
    relation = bind_from(context, query, scope, environment)
    relation, correlated = environment.grammar.where(context, query.args.get("where"), relation, scope, environment)
    grouped = any(query.args.get(part) for part in ("group", "having", "qualify")) or any(
        _has_own_aggregate(e, Scope(relation, scope)) for e in query.expressions
    )
    if _has_window(query):
        grouped = True
        _check_window_over_aggregate(context, query, scope, environment)
    limited = any(query.args.get(part) for part in ("limit", "offset")) or has_distinct_on(query)
    if grouped and not correlated and _is_single(query) and correlates(context, query, scope, environment.names):
        return _single(context, query, relation, correlated, scope, environment)
    if not correlated and (grouped or (limited and not exists)):
        barrier = Scope(
            Relation((), (), ()),
            scope,
            "a subquery with aggregates, window functions or LIMIT that is not correlated in WHERE",
        )
        return _whole(context, environment.grammar.rows(context, query, relation, barrier, environment), query, name)
    if grouped:
        return _grouped(context, query, relation, correlated, scope, environment)
    return _plain(context, query, relation, correlated, scope, environment)


def _check_window_over_aggregate(context: Context, query: exp.Select, scope: Scope, environment: Environment) -> None:
    is_single = query.args.get("group") is None and _has_plain_aggregate(query)
    if is_single and correlates(context, query, scope, environment.names):
        context.fail(
            query,
            "WINDOW-FUNCTION",
            "window functions over an aggregate without GROUP BY are not supported in a correlated subquery",
            reason="the aggregate has one row for every outer row",
            hint="select the aggregate in a subquery in FROM",
        )


def _whole(context: Context, bound: BoundQuery, query: exp.Expr, name: str) -> Inner:
    relation = relation_of(context, bound, name, (), query)
    outputs, names = tuple(c.reference for c in relation.visible), tuple(c.name for c in relation.visible)
    return Inner(relation, (), outputs, names, bound)


def _correlated_set(context: Context, query: exp.SetOperation, scope: Scope, environment: Environment) -> Inner:
    """A set operation for each combination of the outer values that either side reads."""
    environment = with_definitions(context, query, environment)
    sides = [
        environment.grammar.derived(context, side, scope, environment, "", ())
        for side in (query.this, query.expression)
    ]
    read = frozenset(c for side in sides for c in outside(side.correlated, known(side)))
    values = [domain_of(context, read, scope, query) for _ in sides]
    bound = [_with_values(context, side, own) for side, own in zip(sides, values, strict=True)]
    whole = environment.grammar.united(context, query, *bound)
    result = relation_of(context, whole, "subquery", (), query)
    keys, shown = result.visible[: len(read)], result.visible[len(read) :]
    pairs = [
        pair
        for (name, column), key in zip(values[0].inside.items(), keys, strict=True)
        for pair in same(key.reference, Column(name, column.type), name in values[0].nullable)
    ]
    columns = [OutputColumn(c.name, c.type) for c in shown]
    order, limit = bind_order(context, query, columns), bind_limit(context, query)
    names, outputs = tuple(c.name for c in shown), tuple(c.reference for c in shown)
    return Inner(result, equalities(pairs), outputs, names, None, order, limit)


def _with_values(context: Context, side: Relation, values: Domain) -> BoundQuery:
    """The rows of a side, with the outer values that they belong to."""
    own = [values.rewritten(context, p) for p in side.correlated]
    both = values.beside(side)
    both = both.with_branches(restricted(context, b, own).added_by("outer values") for b in both.branches)
    columns = {f"key_{i + 1}": column for i, column in enumerate(values.inside.values())}
    found = [OutputColumn(n, c.type) for n, c in columns.items()] + [OutputColumn(c.name, c.type) for c in side.visible]
    shown = [*columns.values(), *(c.reference for c in side.visible)]
    branches = ((b, tuple(context.in_branch(e, b) for e in shown)) for b in both.branches)
    return BoundQuery(tuple(found), tuple(branches), None)


def _plain(
    context: Context,
    query: exp.Select,
    relation: Relation,
    correlated: list[Expression],
    scope: Scope,
    environment: Environment,
) -> Inner:
    subqueries = environment.grammar.subqueries(context, environment, "a subquery")
    binder = Binder(context, Scope(relation, scope), subqueries)
    items = expand_items(context, query, relation)
    outputs = [item.star or binder.bind(item.node) for item in items]
    # The order may not matter, but it must be valid.
    columns = [OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True)]
    order = bind_order(context, query, columns, binder.bind)
    limit = bind_limit(context, query)
    on = bind_distinct_on(context, query, columns, binder.bind)
    relation, correlated = attach(context, relation, subqueries.attachments, correlated, scope)
    names = tuple(item.name for item in items)
    distinct = query.args.get("distinct") is not None and on is None
    return Inner(relation, tuple(correlated), tuple(outputs), names, None, order, limit, on, distinct)


def _grouped(
    context: Context,
    query: exp.Select,
    relation: Relation,
    correlated: list[Expression],
    scope: Scope,
    environment: Environment,
) -> Inner | Single:
    if _is_single(query):
        return _single(context, query, relation, correlated, scope, environment)
    keyed = by_key(context, relation, correlated, scope, query)
    construct = "window functions" if query.args.get("group") is None else "GROUP BY"
    barrier = Scope(Relation((), (), ()), scope, f"the output of a subquery with {construct}")
    keys = [inner for inner, _ in keyed.pairs]
    limit, shown = bind_limit(context, query), query
    if limit is not None:
        if has_distinct_on(query):
            context.fail(
                query,
                "CORRELATED-SUBQUERY",
                "DISTINCT ON with GROUP BY or window functions and LIMIT is not supported in a correlated subquery",
                reason="rows of one outer row would be chosen twice",
                hint="select the groups or window functions in a subquery in FROM",
            )
        shown = _with_order_shown(context, query)
    bound = environment.grammar.rows(context, shown, keyed.relation, barrier, environment, keys)
    result = relation_of(context, bound, "subquery", (), query)
    found, outputs = result.visible[: len(keys)], result.visible[len(keys) :]
    pairs = [(c.reference, outer) for c, (_, outer) in zip(found, keyed.pairs, strict=True)]
    order: tuple[Order, ...] = ()
    if limit is not None and query.args.get("order") is not None:
        items = list(query.args["order"].expressions)
        ordered, outputs = outputs[len(outputs) - len(items) :], outputs[: len(outputs) - len(items)]
        order = tuple(Order(c.reference, *direction(context, i)) for c, i in zip(ordered, items, strict=True))
    names = tuple(c.name for c in outputs)
    values = tuple(c.reference for c in outputs)
    return Inner(result, (*equalities(pairs), *keyed.guards), values, names, None, order, limit)


def _has_own_aggregate(node: exp.Expr, scope: Scope) -> bool:
    """Whether the node has an aggregate or window function of this query: not of a subquery, nor of an outer query."""
    parts = node.walk(prune=lambda n: isinstance(n, exp.Query))
    found = [n for n in parts if isinstance(n, exp.AggFunc | exp.Window)]
    return any(isinstance(n, exp.Window) or outer_aggregate(scope, n) is None for n in found)


def _is_single(query: exp.Select) -> bool:
    """Whether a SELECT with aggregates is one group."""
    return query.args.get("group") is None and (bool(query.args.get("having")) or not _has_window(query))


def _has_window(query: exp.Select) -> bool:
    """Whether the SELECT itself has a window function."""
    parts = [*query.expressions, *(query.args[p] for p in ("qualify", "order") if query.args.get(p) is not None)]
    walks = (part.walk(prune=lambda n: isinstance(n, exp.Query)) for part in parts)
    return any(isinstance(node, exp.Window) for walk in walks for node in walk)


def _has_plain_aggregate(query: exp.Select) -> bool:
    """Whether the SELECT itself has an aggregate that is not a window function."""
    for item in query.expressions:
        for node in item.walk(prune=lambda n: isinstance(n, exp.Query)):
            above = node.parent
            while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
                above = above.parent
            if isinstance(node, exp.AggFunc) and not (isinstance(above, exp.Window) and above.this.find(type(node))):
                return True
    return False


def _with_order_shown(context: Context, query: exp.Select) -> exp.Select:
    """Return the query without ORDER BY and LIMIT, which shows what it was ordered by as its last columns."""
    shown = query.copy()
    for part in ("order", "limit", "offset"):
        shown.set(part, None)
    clause = query.args.get("order")
    for item in clause.expressions if clause is not None else ():
        subject = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(subject, exp.Literal) and subject.name.isdigit():
            subject = query.expressions[ordinal(context, subject, len(query.expressions)) - 1].unalias()
        outputs = [*(e.unalias() for e in query.expressions), *(exp.column(e.alias) for e in query.expressions)]
        if query.args.get("distinct") is not None and subject not in outputs:
            refuse_hidden_order(context, item)
        shown.append("expressions", exp.alias_(subject.copy(), f"order_{len(shown.expressions) + 1}"))
    return shown


def refuse_hidden_order(context: Context, node: exp.Expr) -> NoReturn:
    context.fail(
        node,
        "ORDER-NOT-OUTPUT",
        "ORDER BY uses a column that is not in the output",
        reason="one DISTINCT row may have many values of it",
        hint="add it to SELECT",
    )


def _single(
    context: Context,
    query: exp.Select,
    relation: Relation,
    correlated: list[Expression],
    scope: Scope,
    environment: Environment,
) -> Single:
    """An aggregate for each value of the correlated columns. What it shows may read the outer row."""
    aggregates = Aggregates(context)
    subqueries = environment.grammar.subqueries(context, environment, "a subquery", aggregates)
    items = expand_items(context, query, relation)
    binder = AliasBinder(context, Scope(relation, scope), subqueries, items)
    values = [item.star or binder.at(index).bind(item.node) for index, item in enumerate(items)]
    having = query.args.get("having")
    limit = bind_limit(context, query)
    conditions = [binder.condition(having.this)] if having is not None else []
    conditions += [FALSE] if limit is not None and (limit[0] == 0 or limit[1] > 0) else []
    values += [conjunction(conditions)] if conditions else []
    own = known(relation).union(*(a.ids for a in subqueries.attachments))
    _check_single(context, query, values, aggregates, own)
    relation, correlated = attach(context, relation, subqueries.attachments, correlated, scope)
    keyed = by_key(context, relation, correlated, scope, query)
    marked = {MARK + a.name: Column(MARK + a.name, a.type) for a in aggregates.found}
    inside = [v for v in values if set(columns_of(v)) <= set(marked)]
    inside += [c for n, c in marked.items() if any(n in columns_of(v) for v in values if v not in inside)]
    groups = group_relation(context, keyed.relation, [i for i, _ in keyed.pairs], aggregates.found, inside)
    columns = [c.reference for c in groups.visible[len(keyed.pairs) :]]
    found = {c.name: at for c, at in zip(inside, columns, strict=True) if isinstance(c, Column)}
    shown = tuple(
        columns[inside.index(v)] if v in inside else context.substitute(v, found, frozenset()) for v in values
    )
    pairs = [(c.reference, outer) for c, (_, outer) in zip(groups.visible, keyed.pairs, strict=False)]
    empty: dict[str, Expression] = {
        MARK + a.name: Literal(0, INT64) if a.function == "count" else Literal(None, a.type) for a in aggregates.found
    }
    defaults = tuple(context.substitute(v, empty, frozenset()) for v in values)
    return Single(groups, tuple(pairs), keyed.guards, shown, defaults, bool(conditions), tuple(i.name for i in items))


def _check_single(
    context: Context, query: exp.Select, values: list[Expression], aggregates: Aggregates, own: frozenset[str]
) -> None:
    """Reject outputs that read rows of the subquery outside of aggregates, and aggregates that read the outer row."""
    if any(set(columns_of(v)) & own for v in values):
        context.fail(
            query,
            "NOT-GROUPED",
            "this subquery mixes an aggregate with a column or subquery outside of it",
            reason="without GROUP BY its rows are one group",
            hint="put it inside MIN or MAX, or add GROUP BY",
        )
    if outside((e for a in aggregates.found for e in a.expressions), own):
        context.fail(
            query,
            "CORRELATED-SUBQUERY",
            "an aggregate in a subquery can't use a column of the outer query",
            reason="it would have another value for each outer row",
            hint="compute it outside of the aggregate: SUM(x + y) is SUM(x) + y * COUNT(x)",
        )


def by_key(
    context: Context,
    relation: Relation,
    correlated: Sequence[Expression],
    scope: Scope,
    node: exp.Expr,
    *,
    guarded: bool = True,
) -> Keyed:
    """Return the rows with the equalities they are looked up by, through the outer values they read if necessary.

    Unless `guarded`, conditions on the outer row alone are among those.
    """
    inner = known(relation)
    guards = tuple(p for p in correlated if guarded and not set(columns_of(p)) & inner)
    rest = [p for p in correlated if p not in guards]
    found = [correlation_of(p, inner) for p in rest]
    pairs = [
        (c.inner, c.outer)
        for c in found
        if c is not None and c.function == "eq" and reads_one_atom(context, c.outer, scope)
    ]
    if len(pairs) == len(rest):
        return Keyed(relation, tuple(pairs), guards)
    values = domain_of(context, outside(rest, inner), scope, node)
    own = [values.rewritten(context, p) for p in rest]
    both = values.beside(relation)
    both = both.with_branches(restricted(context, b, own).added_by("outer values") for b in both.branches)
    return Keyed(both, values.pairs(own), guards)


def all_hold(guards: Sequence[Expression]) -> Expression:
    """Return whether all guards are TRUE, as TRUE or FALSE."""
    return Call("coalesce", (conjunction(list(guards)), Literal(False, BOOLEAN)), BOOLEAN)
