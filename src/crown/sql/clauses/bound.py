"""Bound queries: the result of binding a query, as a separate body or as a source to select from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from crown import types
from crown.ir.expression import Column, Expression
from crown.ir.query import Body, Named, Order, Recursion, Select, SetOperation, Top, Values, Windowed
from crown.ir.tables import TableColumn
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.misplaced import NoAggregates
from crown.sql.clauses.result.limit import bind_limit
from crown.sql.clauses.result.order_by import bind_order, refuse_order
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions, cast_value
from crown.sql.normalise.levels import never_holds
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.sql.scalar.binder import Binder
from crown.sql.scope import Scope
from crown.types import STRING
from crown.wording import counted

_PLACED = {
    "alias": "an alias",
    "joins": "a join",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "with_": "WITH",
}


@dataclass(frozen=True)
class BoundQuery:
    """A bound query. `branches`, if it is only a bag of joins: each with its outputs, over source columns."""

    columns: tuple[OutputColumn, ...]
    branches: tuple[tuple[Branch, tuple[Expression, ...]], ...] | None
    body: Body | None  # set when `branches` is None
    order: tuple[Order, ...] = ()  # ORDER BY without LIMIT


def refuse_placed(context: Context, node: exp.Expr, *parts: str) -> None:
    """Reject parts of a node that are allowed elsewhere but have no meaning here."""
    for part in parts:
        value = node.args.get(part)
        if value:
            first = value[0] if isinstance(value, list) else value
            context.fail(first, "SYNTAX", f"{_PLACED[part]} is not allowed here", hint="move it inside the parentheses")


def body_of(context: Context, bound: BoundQuery) -> Body:
    """Return the bound query as a separate body."""
    if bound.body is not None:
        return bound.body
    bound = replace(bound, columns=typed(bound.columns))
    assert bound.branches is not None
    names = [c.name for c in bound.columns]
    return Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(n, cast_value(e, c.type)) for n, e, c in zip(names, outputs, bound.columns, strict=True)])
                for b, outputs in bound.branches
            ),
        ),
        outputs=tuple(Named(c.name, Column(c.name, c.type)) for c in bound.columns),
    )


def typed(columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    """A column of only NULLs becomes a string, an arbitrary choice."""
    return tuple(replace(c, type=STRING) if c.type == types.NULL else c for c in columns)


def matched_columns(
    context: Context, node: exp.SetOperation, left: BoundQuery, right: BoundQuery
) -> list[OutputColumn]:
    """Return the columns of a set operation: with the names of the left side and the common types of both."""
    if len(left.columns) != len(right.columns):
        context.fail(
            node.expression,
            "SET-OPERATION",
            f"the two sides have {len(left.columns)} and {len(right.columns)} columns",
            hint="select the same number of columns on both sides",
        )
    columns = []
    for a, b in zip(left.columns, right.columns, strict=True):
        common = types.common_type(a.type, b.type)
        if common is None or (STRING in (a.type, b.type) and a.type != b.type and types.NULL not in (a.type, b.type)):
            context.fail(
                node.expression,
                "TYPE-CLASH",
                f"column {a.name} is {a.type.shown} on one side, {b.type.shown} on the other",
                hint="cast one side to the type of the other",
            )
        columns.append(OutputColumn(a.name, common, a.nullable or b.nullable))
    return columns


def living(
    branches: tuple[tuple[Branch, tuple[Expression, ...]], ...],
) -> tuple[tuple[Branch, tuple[Expression, ...]], ...]:
    """Return the branches that can have rows; the first one if none can."""
    return tuple(b for b in branches if not never_holds(b[0].predicates)) or branches[:1]


def coerced(body: Body, columns: list[OutputColumn]) -> Body:
    """Return the body with its first columns cast to the types of `columns`."""
    if isinstance(body, SetOperation):
        return replace(body, left=coerced(body.left, columns), right=coerced(body.right, columns))
    if isinstance(body, Top):
        return replace(body, input=coerced(body.input, columns))
    if isinstance(body, Values):
        cast = [TableColumn(own.name, c.type, own.nullable) for own, c in zip(body.columns, columns, strict=True)]
        rows = [tuple(cast_value(e, c.type) for e, c in zip(row, columns, strict=True)) for row in body.rows]
        return Values(tuple(cast), tuple(rows))
    assert isinstance(body, Select), "windows are read by a SELECT"
    shown, hidden = body.outputs[: len(columns)], body.outputs[len(columns) :]
    outputs = tuple(
        replace(o, expression=cast_value(o.expression, c.type)) for o, c in zip(shown, columns, strict=True)
    )
    return replace(body, outputs=(*outputs, *hidden))


def apply_order(context: Context, node: exp.Expr, bound: BoundQuery) -> BoundQuery:
    """ORDER BY, LIMIT and OFFSET over the output columns alone."""
    order = bind_order(context, node, bound.columns, partial(_over_outputs, context, bound.columns))
    limit = bind_limit(context, node)
    if limit is None:
        return replace(bound, order=order or bound.order)
    return BoundQuery(bound.columns, None, Top(body_of(context, bound), order, *limit))


def _over_outputs(context: Context, columns: tuple[OutputColumn, ...], node: exp.Expr) -> Expression:
    """Return an expression of ORDER BY over the outputs of a query."""
    if isinstance(node, exp.Column):
        refuse_order(context, node, columns)
    visible = tuple(VisibleColumn(c.name, c.name, c.type) for c in columns)
    scope = Scope(Relation((), (VisibleTable("", visible),), visible))
    return Binder(context, scope, NoAggregates(context, "ORDER BY")).bind(node)


def relation_of(
    context: Context, bound: BoundQuery, alias: str, names: tuple[str, ...], node: exp.Expr | None
) -> Relation:
    """Return a bound query as a relation to select from."""
    columns = renamed(context, typed(bound.columns), names, node)
    if bound.branches is None:
        source = context.nest(alias or "subquery", body_of(context, bound))
        return source_relation(context, alias, source, columns)
    prefix = context.new_id("s")
    visible = tuple(VisibleColumn(c.name, f"{prefix}.{i}", c.type) for i, c in enumerate(columns))
    branches = []
    for branch, outputs in living(bound.branches):
        own = {v.id: cast_value(e, v.type) for v, e in zip(visible, outputs, strict=True)}
        branches.append(replace(branch, values=own))
    return Relation(tuple(branches), (VisibleTable(alias, visible),), visible)


def renamed(
    context: Context, columns: tuple[OutputColumn, ...], names: tuple[str, ...], node: exp.Expr | None
) -> tuple[OutputColumn, ...]:
    if not names:
        return columns
    if len(names) != len(columns):
        context.fail(node, "COLUMN-ALIASES", f"{counted(len(names), 'name')} for {counted(len(columns), 'column')}")
    return tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))


def source_relation(
    context: Context, alias: str, source: str, columns: tuple[OutputColumn, ...], own: Sequence[str] | None = None
) -> Relation:
    """One atom over a nested body, or over a maintained view, which has its `own` column names.

    The ids contain these; `columns` may rename them.
    """
    inner = own if own is not None else output_names(dict(context.nested)[source])
    atom = context.new_source(
        alias or source,
        source,
        [TableColumn(n, c.type, c.nullable) for n, c in zip(inner, columns, strict=True)],
    )
    visible = tuple(VisibleColumn(c.name, atom.column(n), c.type) for n, c in zip(inner, columns, strict=True))
    return Relation((Branch((atom,)),), (VisibleTable(alias, visible),), visible)


def output_names(body: Body) -> list[str]:
    if isinstance(body, SetOperation):
        return output_names(body.left)
    if isinstance(body, Top):
        return output_names(body.input)[: body.shown]
    if isinstance(body, Values):
        return [column.name for column in body.columns]
    if isinstance(body, Windowed):
        return [*output_names(body.input), *(c.name for c in body.columns)]
    if isinstance(body, Recursion):
        return output_names(body.base)
    return [o.name for o in body.outputs]
