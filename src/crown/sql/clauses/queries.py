"""Queries: SELECT, set operations, ORDER BY and LIMIT, WITH. What can be flattened stays a list of branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from crown import types
from crown.ir.expression import Column, Expression
from crown.ir.query import Body, Named, Order, Query, Select, SetOperation, Top
from crown.ir.tables import TableColumn
from crown.sql.clauses.order_by import bind_limit, bind_order
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunction, cast_value
from crown.sql.normalise.levels import never_holds
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.sql.scope import Scope
from crown.types import STRING, DataType

_OPERATORS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}
_PLACED = {
    "alias": "an alias",
    "joins": "a join",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "with_": "WITH",
}
MAX_BRANCHES = 64
FLATTENED = 40
FLATTENED_BRANCHES = 8


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True)
class Bound:
    """A bound query. `branches`, if it is a bag of joins alone: each with its outputs, over source columns."""

    columns: tuple[OutputColumn, ...]
    branches: tuple[tuple[Branch, tuple[Expression, ...]], ...] | None
    body: Body | None  # set when `branches` is None
    order: tuple[Order, ...] = ()  # ORDER BY without LIMIT


@dataclass
class Definition:
    """A name of WITH, or a view: bound where it is used; a body that can't be flattened is kept once.

    One that is used again (`shared`) and took more than `FLATTENED` steps to bind, or has more than
    `FLATTENED_BRANCHES`, is not flattened either: names that use the one before twice would double the query each.
    """

    query: exp.Expr
    columns: tuple[str, ...]
    environment: Mapping[str, Definition]
    sql: str  # the text that it is part of
    shared: bool = False
    used: bool = False
    nested: tuple[str, tuple[OutputColumn, ...]] | None = None


Environment: TypeAlias = Mapping[str, Definition]


def bind(context: Context, statement: exp.Expr) -> Query:
    bound = bind_query(context, statement, None, {})
    _bind_unused(context)
    body = body_of(context, bound)
    return Query(context.sql, context.tables(), body, tuple(context.nested), bound.order)


def _bind_unused(context: Context) -> None:
    """Bind the names of WITH that nothing reads too, for their errors; what they read is not read by the query."""
    unused = context.definitions
    while unused:
        scratch = Context(context.sql, context.dialect, context.schema)
        for definition in unused:
            if not definition.used:
                definition.used = True
                scratch.sql = definition.sql
                bind_query(scratch, definition.query, None, definition.environment)
        unused = scratch.definitions


def bind_query(context: Context, node: exp.Expr, parent: Scope | None, environment: Environment) -> Bound:
    """Any query expression."""
    if isinstance(node, exp.Subquery):
        return _parenthesised(context, node, parent, environment)
    environment = with_definitions(context, node, environment)
    if isinstance(node, exp.Select):
        from crown.sql.clauses.select import bind_select  # a SELECT holds queries, which hold SELECTs

        return bind_select(context, node, parent, environment)
    if isinstance(node, exp.SetOperation):
        return _set_operation(context, node, parent, environment)
    statement = isinstance(node, exp.DML | exp.DDL | exp.Command | exp.Pivot)
    context.fail(
        node,
        "NOT-A-QUERY",
        f"{node.key.upper()} is not a query" if statement else "this is not a query",
        reason="a view is the answer of a SELECT",
        hint="write a SELECT, or a UNION, EXCEPT or INTERSECT of them",
    )


def with_definitions(context: Context, node: exp.Expr, environment: Environment) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    known = dict(environment)
    uses = Counter(table.name.lower() for table in node.find_all(exp.Table))
    for item in clause.expressions:
        if not isinstance(item, exp.CTE):
            context.fail(item, "UNSUPPORTED", "this WITH item is not maintained", hint="name a SELECT")
        name = item.alias
        reads_itself = any(t.name.lower() == name.lower() and not t.db for t in item.this.find_all(exp.Table))
        if clause.args.get("recursive") and reads_itself:
            context.fail(
                item.args["alias"],
                "RECURSION",
                f"{name} is recursive",
                reason="recursive queries are not maintained: one change may travel any number of steps",
                hint="unroll it to a fixed number of joins",
            )
        columns = tuple(c.name for c in item.args["alias"].columns)
        definition = Definition(item.this, columns, dict(known), context.sql, shared=uses[name.lower()] > 1)
        known[name.lower()] = definition
        context.definitions.append(definition)
    return known


def _parenthesised(context: Context, node: exp.Subquery, parent: Scope | None, environment: Environment) -> Bound:
    refuse_placed(context, node, "alias", "joins")
    environment = with_definitions(context, node, environment)
    inner = bind_query(context, node.this, parent, environment)
    return apply_order(context, node, inner)


def refuse_placed(context: Context, node: exp.Expr, *parts: str) -> None:
    """Refuse parts of a node that mean something elsewhere but have no meaning where it stands."""
    for part in parts:
        value = node.args.get(part)
        if value:
            first = value[0] if isinstance(value, list) else value
            context.fail(first, "SYNTAX", f"{_PLACED[part]} can't stand here", hint="put it inside the parentheses")


def body_of(context: Context, bound: Bound) -> Body:
    """The bound query as a body of its own."""
    if bound.body is not None:
        return bound.body
    bound = replace(bound, columns=typed(bound.columns))
    assert bound.branches is not None
    names = [c.name for c in bound.columns]
    return Select(
        branches=tuple(
            build_conjunction(
                context,
                branch,
                [Wanted(n, cast_value(e, c.type)) for n, e, c in zip(names, outputs, bound.columns, strict=True)],
            )
            for branch, outputs in living(bound.branches)
        ),
        outputs=tuple(Named(c.name, Column(c.name, c.type)) for c in bound.columns),
    )


def typed(columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    """A column of nothing but NULL is a string, as good as any."""
    return tuple(replace(c, type=STRING) if c.type == types.NULL else c for c in columns)


def living(
    branches: tuple[tuple[Branch, tuple[Expression, ...]], ...],
) -> tuple[tuple[Branch, tuple[Expression, ...]], ...]:
    """The branches that can have rows; the first one if none can."""
    return tuple(b for b in branches if not never_holds(b[0].predicates)) or branches[:1]


def _set_operation(context: Context, node: exp.SetOperation, parent: Scope | None, environment: Environment) -> Bound:
    left = bind_query(context, node.this, parent, environment)
    right = bind_query(context, node.expression, parent, environment)
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
                f"column {a.name} is {a.type.sql_name} on one side, {b.type.sql_name} on the other",
                hint="cast one side to the type of the other",
            )
        columns.append(OutputColumn(a.name, common, a.nullable or b.nullable))
    keeps_all = not node.args.get("distinct")
    operator = next(name for kind, name in _OPERATORS.items() if isinstance(node, kind))
    if operator == "union" and keeps_all and left.branches is not None and right.branches is not None:
        united = [(branch.added_by("union all"), outputs) for branch, outputs in right.branches]
        both = [
            (branch, tuple(cast_value(e, c.type) for e, c in zip(outputs, columns, strict=True)))
            for branch, outputs in (*left.branches, *united)
        ]
        bound = Bound(tuple(columns), tuple(both), None)
        return apply_order(context, node, bound)
    body = SetOperation(
        operator,  # type: ignore[arg-type]
        keeps_all,
        coerced(body_of(context, left), columns),
        coerced(body_of(context, right), columns),
    )
    return apply_order(context, node, Bound(tuple(columns), None, body))


def coerced(body: Body, columns: list[OutputColumn]) -> Body:
    """The body with its first columns cast to the types of `columns`."""
    if isinstance(body, SetOperation):
        return replace(body, left=coerced(body.left, columns), right=coerced(body.right, columns))
    if isinstance(body, Top):
        return replace(body, input=coerced(body.input, columns))
    shown, hidden = body.outputs[: len(columns)], body.outputs[len(columns) :]
    outputs = tuple(
        replace(o, expression=cast_value(o.expression, c.type)) for o, c in zip(shown, columns, strict=True)
    )
    return replace(body, outputs=(*outputs, *hidden))


def apply_order(context: Context, node: exp.Expr, bound: Bound) -> Bound:
    """ORDER BY, LIMIT and OFFSET over the output columns alone."""
    order = bind_order(context, node, bound.columns)
    limit = bind_limit(context, node, bool(order))
    if limit is None:
        return replace(bound, order=order or bound.order)
    return Bound(bound.columns, None, Top(body_of(context, bound), order, *limit))


def relation_of(context: Context, bound: Bound, alias: str, names: tuple[str, ...], node: exp.Expr | None) -> Relation:
    """A bound query as something to select from."""
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
        context.fail(node, "COLUMN-ALIASES", f"{len(names)} names are given for {len(columns)} columns")
    return tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))


def source_relation(context: Context, alias: str, source: str, columns: tuple[OutputColumn, ...]) -> Relation:
    """One atom over a nested body. The body's own column names are kept in the ids; `columns` may rename them."""
    body = dict(context.nested)[source]
    inner = output_names(body)
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
    return [o.name for o in body.outputs]
