"""The query inside EXISTS, IN, a quantified comparison or a scalar subquery, with what it reads of the outer row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Expression, Literal, columns_of
from crown.ir.query import Order
from crown.sql.clauses.aggregates import MARK, Aggregates
from crown.sql.clauses.attach import attach, equalities
from crown.sql.clauses.bound import BoundQuery, refuse_placed, relation_of
from crown.sql.clauses.decorrelate import correlation_of, group_relation
from crown.sql.clauses.definitions import OutputColumn
from crown.sql.clauses.domain import Pair, domain_of, known, outside, reads_one_atom
from crown.sql.clauses.from_clause import bind_from
from crown.sql.clauses.grammar import Environment, with_definitions
from crown.sql.clauses.group_by import has_aggregate
from crown.sql.clauses.order_by import bind_limit, bind_order
from crown.sql.clauses.places import refuse_window
from crown.sql.context import Context
from crown.sql.normalise.outer import restricted
from crown.sql.outputs import expand_items
from crown.sql.relation import Relation, VisibleColumn
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.fold import FALSE, conjunction
from crown.sql.scope import Scope
from crown.types import BOOLEAN, INT64


@dataclass(frozen=True)
class Inner:
    """Rows, and the predicates that choose those of an outer row. `outputs` are over the columns of both."""

    relation: Relation
    correlated: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    names: tuple[str, ...] = ()  # of the outputs
    bound: BoundQuery | None = None  # the whole query, if it is more than a join and reads nothing of the outer row
    order: tuple[Order, ...] = ()
    limit: tuple[int, int] | None = None  # of the rows of one outer row, and the offset


@dataclass(frozen=True)
class Single:
    """An aggregate without GROUP BY: one row for each outer row, in `groups`, or `defaults` where there is no group.

    `filtered`: the last value says whether the row is there at all (HAVING).
    """

    groups: Relation
    pairs: tuple[Pair, ...]
    guards: tuple[Expression, ...]
    values: tuple[VisibleColumn, ...]
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
    """Return the query in parentheses that have nothing of their own."""
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
    """`exists`: only whether there is a row matters, not which come first. `name` is for a query of its own."""
    query = unwrapped(context, query)
    if not isinstance(query, exp.Select):
        barrier = Scope(Relation((), (), ()), scope, "a subquery that is a set operation")
        return _whole(context, environment.grammar.query(context, query, barrier, environment), query, name)
    environment = with_definitions(context, query, environment)
    relation = bind_from(context, query, scope, environment)
    relation, correlated = environment.grammar.where(context, query.args.get("where"), relation, scope, environment)
    grouped = any(query.args.get(part) for part in ("group", "having", "qualify")) or any(
        has_aggregate(e) for e in query.expressions
    )
    if correlated and query.args.get("qualify"):
        refuse_window(context, query.args["qualify"], "a correlated subquery")
    limited = any(query.args.get(part) for part in ("limit", "offset"))
    if not correlated and (grouped or (limited and not exists)):
        barrier = Scope(
            Relation((), (), ()), scope, "a subquery with aggregates or LIMIT that is not correlated in WHERE"
        )
        return _whole(context, environment.grammar.rows(context, query, relation, barrier, environment), query, name)
    if grouped:
        return _grouped(context, query, relation, correlated, scope, environment)
    return _plain(context, query, relation, correlated, scope, environment)


def _whole(context: Context, bound: BoundQuery, query: exp.Expr, name: str) -> Inner:
    relation = relation_of(context, bound, name, (), query)
    outputs, names = tuple(c.reference for c in relation.visible), tuple(c.name for c in relation.visible)
    return Inner(relation, (), outputs, names, bound)


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
    # The order may not matter, but it must be one.
    columns = [OutputColumn(i.name, e.type) for i, e in zip(items, outputs, strict=True)]
    order = bind_order(context, query, columns, binder.bind)
    limit = bind_limit(context, query)
    relation, correlated = attach(context, relation, subqueries.attachments, correlated, scope)
    names = tuple(item.name for item in items)
    return Inner(relation, tuple(correlated), tuple(outputs), names, order=order, limit=limit)


def refuse_limit(context: Context, query: exp.Expr) -> NoReturn:
    context.fail(
        next((found for part in ("limit", "offset") if (found := query.args.get(part)) is not None), query),
        "CORRELATED-SUBQUERY",
        "ORDER BY with LIMIT or OFFSET in a correlated subquery is not supported",
        reason="the first rows would have to be kept for each outer row",
        hint="use MIN or MAX, or remove LIMIT",
    )


def _grouped(
    context: Context,
    query: exp.Select,
    relation: Relation,
    correlated: list[Expression],
    scope: Scope,
    environment: Environment,
) -> Inner | Single:
    if query.args.get("group") is None:
        return _single(context, query, relation, correlated, scope, environment)
    if query.args.get("limit") or query.args.get("offset"):
        refuse_limit(context, query)
    keyed = by_key(context, relation, correlated, scope, query)
    barrier = Scope(Relation((), (), ()), scope, "the output of a subquery with GROUP BY")
    keys = [inner for inner, _ in keyed.pairs]
    bound = environment.grammar.rows(context, query, keyed.relation, barrier, environment, keys)
    result = relation_of(context, bound, "subquery", (), query)
    found, outputs = result.visible[: len(keys)], result.visible[len(keys) :]
    pairs = [(c.reference, outer) for c, (_, outer) in zip(found, keyed.pairs, strict=True)]
    names = tuple(c.name for c in outputs)
    return Inner(result, (*equalities(pairs), *keyed.guards), tuple(c.reference for c in outputs), names)


def _single(
    context: Context,
    query: exp.Select,
    relation: Relation,
    correlated: list[Expression],
    scope: Scope,
    environment: Environment,
) -> Single:
    """An aggregate for each value of the correlated columns."""
    aggregates = Aggregates(context)
    subqueries = environment.grammar.subqueries(context, environment, "a subquery", aggregates)
    barrier = Scope(Relation((), (), ()), scope, "the output of an aggregate in a subquery")
    binder = Binder(context, Scope(relation, barrier), subqueries)
    items = expand_items(context, query, relation)
    values = [item.star or binder.bind(item.node) for item in items]
    having = query.args.get("having")
    limit = bind_limit(context, query)
    conditions = [binder.condition(having.this)] if having is not None else []
    conditions += [FALSE] if limit is not None and (limit[0] == 0 or limit[1] > 0) else []
    values += [conjunction(conditions)] if conditions else []
    marked = {MARK + a.name for a in aggregates.found}
    if not all(set(columns_of(v)) <= marked for v in values):
        context.fail(
            query,
            "NOT-GROUPED",
            "this subquery mixes an aggregate with a column or subquery outside of it",
            reason="without GROUP BY its rows are one group",
            hint="put it inside MIN or MAX, or add GROUP BY",
        )
    relation, correlated = attach(context, relation, subqueries.attachments, correlated, scope)
    keyed = by_key(context, relation, correlated, scope, query)
    groups = group_relation(context, keyed.relation, [i for i, _ in keyed.pairs], aggregates.found, values)
    shown = groups.visible[len(keyed.pairs) :]
    pairs = [(c.reference, outer) for c, (_, outer) in zip(groups.visible, keyed.pairs, strict=False)]
    empty: dict[str, Expression] = {
        MARK + a.name: Literal(0, INT64) if a.function == "count" else Literal(None, a.type) for a in aggregates.found
    }
    defaults = tuple(context.substitute(v, empty, frozenset()) for v in values)
    return Single(groups, tuple(pairs), keyed.guards, shown, defaults, bool(conditions), tuple(i.name for i in items))


def by_key(
    context: Context,
    relation: Relation,
    correlated: Sequence[Expression],
    scope: Scope,
    node: exp.Expr,
    *,
    guarded: bool = True,
) -> Keyed:
    """Return the rows with what they are found by: equalities, through the values that they read if need be.

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
