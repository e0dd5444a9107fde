"""Queries: SELECT, set operations, ORDER BY and LIMIT, WITH. Flat queries stay lists of branches."""

from __future__ import annotations

from sqlglot import exp

from crown.ir.atoms import body_sources
from crown.ir.query import Body, Query, SetOperation
from crown.sql.clauses.bound import (
    BoundQuery,
    apply_order,
    body_of,
    coerced,
    matched_columns,
    refuse_placed,
    relation_of,
)
from crown.sql.clauses.from_clause.derived import bind_derived
from crown.sql.clauses.from_clause.values import bind_values
from crown.sql.clauses.grammar import Environment, with_definitions
from crown.sql.clauses.recursion.recursion import bind_recursion
from crown.sql.clauses.select import bind_rows, bind_select
from crown.sql.clauses.subqueries.subqueries import SelectSubqueries
from crown.sql.clauses.where import bind_where, restrict, semi_join
from crown.sql.context import Context
from crown.sql.misspelt import nearest
from crown.sql.normalise.conjunction import cast_value
from crown.sql.outputs import REPEATED
from crown.sql.scope import Scope

_OPERATORS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}


def bind(context: Context, statement: exp.Expr) -> Query:
    bound = bind_query(context, statement, None, Environment(_GRAMMAR, {}))
    _bind_unused(context)
    body = body_of(context, bound)
    return Query(context.sql, context.tables(), body, _read(body, context), bound.order)


def _read(body: Body, context: Context) -> tuple[tuple[str, Body], ...]:
    """The nested bodies that the query reads: a subquery that turned out to be a value has left some unread."""
    wanted, kept = set(body_sources(body)), list[tuple[str, Body]]()
    for name, nested in reversed(context.nested):
        if name in wanted:
            kept.insert(0, (name, nested))
            wanted.update(body_sources(nested))
    return tuple(kept)


def _bind_unused(context: Context) -> None:
    """Bind unused names of WITH too, to report their errors; what they read does not count as read by the query."""
    unused = context.definitions
    while unused:
        scratch = Context(context.sql, context.dialect, context.schema, context.functions)
        scratch.nested += context.nested  # which names that are used were bound to
        for definition in unused:
            if not definition.used:
                definition.used = True
                scratch.sql = definition.sql
                around = Environment(_GRAMMAR, definition.names)
                if definition.recursive:
                    bind_recursion(scratch, definition, around)
                else:
                    bind_query(scratch, definition.query, None, around)
        unused = scratch.definitions


def bind_query(context: Context, node: exp.Expr, parent: Scope | None, environment: Environment) -> BoundQuery:
    """Any query expression."""
    if isinstance(node, exp.Subquery):
        return _parenthesised(context, node, parent, environment)
    environment = with_definitions(context, node, environment)
    if isinstance(node, exp.Select):
        return bind_select(context, node, parent, environment)
    if isinstance(node, exp.SetOperation):
        return _set_operation(context, node, parent, environment)
    if isinstance(node, exp.Values):
        return bind_values(context, node)
    statement = isinstance(node, exp.DML | exp.DDL | exp.Command | exp.Pivot)
    context.fail(
        node,
        "NOT-A-QUERY",
        f"{node.key.upper()} is not a query" if statement else "this is not a query",
        reason="a view is the result of a SELECT",
        hint=nearest(context.sql.split(None, 1)[0], ("SELECT", "WITH"), 0.75)
        or "write a SELECT, or a UNION, EXCEPT or INTERSECT of them",
    )


def _parenthesised(context: Context, node: exp.Subquery, parent: Scope | None, environment: Environment) -> BoundQuery:
    refuse_placed(context, node, "alias", "joins")
    environment = with_definitions(context, node, environment)
    inner = bind_query(context, node.this, parent, environment)
    return apply_order(context, node, inner)


def _set_operation(
    context: Context, node: exp.SetOperation, parent: Scope | None, environment: Environment
) -> BoundQuery:
    left = bind_query(context, node.this, parent, environment)
    right = bind_query(context, node.expression, parent, environment)
    if node.args.get("by_name"):
        left, right = _by_name(context, node, left, right, parent, environment)
    return apply_order(context, node, unite(context, node, left, right))


def _by_name(
    context: Context,
    node: exp.SetOperation,
    left: BoundQuery,
    right: BoundQuery,
    parent: Scope | None,
    environment: Environment,
) -> tuple[BoundQuery, BoundQuery]:
    """Return both sides with the columns of either, in the order of the left one; those that a side lacks are NULL."""
    for side in (node.this, node.expression):
        select = side.find(exp.Select)
        if select is not None and select.meta.get(REPEATED) is not None:
            context.fail(
                node,
                "SET-OPERATION",
                f"BY NAME needs columns with different names, and one side has two called {select.meta[REPEATED]}",
                hint="give them aliases",
            )
    names = list({c.name.lower(): c.name for side in (right, left) for c in side.columns}.values())
    own = [column.name.lower() for column in left.columns]
    names.sort(key=lambda name: own.index(name.lower()) if name.lower() in own else len(own))

    def arranged(side: BoundQuery) -> BoundQuery:
        has = [column.name.lower() for column in side.columns]
        if has == [name.lower() for name in names]:
            return side
        if len(set(has)) < len(has):
            context.fail(node, "SET-OPERATION", "BY NAME needs columns with different names", hint="give them aliases")
        shown = [
            exp.column(name, quoted=True) if name.lower() in has else exp.alias_(exp.Null(), name, quoted=True)
            for name in names
        ]
        relation = relation_of(context, side, "", (), node)
        return bind_rows(context, exp.Select(expressions=shown), relation, parent, environment)

    return arranged(left), arranged(right)


def unite(context: Context, node: exp.SetOperation, left: BoundQuery, right: BoundQuery) -> BoundQuery:
    """Return the set operation of two bound queries, without its order."""
    columns = matched_columns(context, node, left, right)
    keeps_all = not node.args.get("distinct")
    operator = next(name for kind, name in _OPERATORS.items() if isinstance(node, kind))
    if operator == "union" and keeps_all and left.branches is not None and right.branches is not None:
        united = [(branch.added_by("union all"), outputs) for branch, outputs in right.branches]
        both = [
            (branch, tuple(cast_value(e, c.type) for e, c in zip(outputs, columns, strict=True)))
            for branch, outputs in (*left.branches, *united)
        ]
        return BoundQuery(tuple(columns), tuple(both), None)
    body = SetOperation(
        operator,  # type: ignore[arg-type]
        keeps_all,
        coerced(body_of(context, left), columns),
        coerced(body_of(context, right), columns),
    )
    return BoundQuery(tuple(columns), None, body)


class _Grammar:
    """The rules that are called recursively."""

    query = staticmethod(bind_query)
    where = staticmethod(bind_where)
    restrict = staticmethod(restrict)
    semi_join = staticmethod(semi_join)
    rows = staticmethod(bind_rows)
    derived = staticmethod(bind_derived)
    recursion = staticmethod(bind_recursion)
    united = staticmethod(unite)
    subqueries = staticmethod(SelectSubqueries)


_GRAMMAR = _Grammar()
