"""From a Query to its Plan: nested views first, then the body, each as stages in dependency order."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as OneOf

from crown.ir.expression import Column
from crown.ir.plan import Atom, OrderBy, Plan, TopStage, TreeStage, ValuesStage, Variable
from crown.ir.query import (
    NO_LIMIT,
    Body,
    Condition,
    Conjunction,
    Named,
    OptionalAtom,
    Order,
    Query,
    Select,
    SetOperation,
    Top,
    Values,
    Windowed,
)
from crown.ir.scalars import substitute
from crown.ir.tables import TableColumn
from crown.plan.aggregate import plan_aggregate
from crown.plan.cells.distribute import describe
from crown.plan.context import Context, Rows
from crown.plan.explain.notes import note_computed, note_tables
from crown.plan.explain.report import Report
from crown.plan.ranks import bound_ranks
from crown.plan.rows import own_columns, project, without_duplicates
from crown.plan.select import branch_outputs, plan_rows
from crown.plan.setops import combine
from crown.plan.windows import plan_windowed


def plan_with_report(query: Query, *, cells: int = 1) -> tuple[Plan, Report]:
    """Return the best plan of a query, and the facts that explain it (the distribution over `cells` among them)."""
    query = bound_ranks(query)
    context = Context(query.sql, query.tables)
    for name, body in query.nested:
        rows = plan_body(_resolve(body, context), "keep", context)
        named = [Named(n, value) for n, value in own_columns(rows).items()]
        context.nested[name] = project(rows, named, context, named=True)
        if isinstance(body, Windowed):
            context.windows.add(context.nested[name].stage)
            continue
        context.note(
            "subquery",
            context.nested[name].stage,
            "a separate view, which the outer query reads like a table",
            "the guarantee of a table: one change inside may be many here",
        )
    rows = plan_body(_resolve(query.body, context), "keep", context)
    note_tables(query.tables, context)
    if query.order:
        context.note("ORDER BY", rows.stage, "sorted when the result is read; deltas have no order", "constant delay")
    plan = Plan(
        sql=query.sql,
        tables=query.tables,
        stages=tuple(context.stages),
        columns=tuple(
            TableColumn(name, column.type, column.nullable)
            for name, column in zip(rows.names, rows.columns, strict=True)
        ),
        bag=not rows.distinct,
        order=_order(query.order, rows),
    )
    report = Report(query.sql, tuple(context.conjunctions), tuple(context.constructs), describe(plan, cells))
    return plan, report


def plan_body(body: Body, duplicates: OneOf["keep", "ignore"], context: Context, *, looked_up: bool = False) -> Rows:
    """Return the rows of a body. `ignore`: a set operation above looks only at whether a row is there.

    `looked_up`: a set operation above looks rows up in them.
    """
    match body:
        case Select():
            if body.group_by is not None:
                rows = plan_aggregate(body, context)
            else:
                rows = plan_rows(body, "drop" if body.distinct else duplicates, context, looked_up=looked_up)
                note_computed(branch_outputs(body.branches[0], body.outputs), rows.stage, context)
                if body.distinct and isinstance(context.stages[-1], TreeStage):
                    context.note("DISTINCT", rows.stage, "the tree has each row once; nothing else is stored")
            return without_duplicates(rows, context) if body.distinct else rows
        case SetOperation():
            below: OneOf["keep", "ignore"] = "keep" if body.all else "ignore"
            asked = looked_up or not (body.operator == "union" and body.all)
            left = plan_body(body.left, below, context, looked_up=asked)
            right = plan_body(body.right, below, context, looked_up=asked)
            return combine(body, left, right, context, looked_up=looked_up)
        case Values():
            return _plan_values(body, context)
        case Top():
            rows = plan_body(body.input, "keep", context)
            stage = TopStage(context.new_id("top"), rows.stage, _order(body.order, rows), body.limit, body.offset)
            context.add(stage)
            _note_top(body, stage, context)
            topped = replace(rows, stage=stage.id)
            if body.shown is None:
                return topped
            shown = zip(topped.names[: body.shown], topped.columns, strict=False)
            return project(topped, [Named(name, Column(c.name, c.type)) for name, c in shown], context)
        case Windowed():
            return plan_windowed(body, plan_body(body.input, "keep", context), context)


def _plan_values(body: Values, context: Context) -> Rows:
    columns = tuple(Variable(column.name, column.type, column.nullable) for column in body.columns)
    stage = ValuesStage(context.new_id("values"), columns, body.rows)
    context.add(stage)
    return Rows(stage.id, columns, tuple(c.name for c in columns), distinct=len(set(body.rows)) == len(body.rows) <= 1)


def _note_top(body: Top, stage: TopStage, context: Context) -> None:
    name, cost = "ORDER BY ... LIMIT", "O(log N) for each changed row"
    if not body.order:
        name = "LIMIT" if body.limit < NO_LIMIT else "OFFSET"
        cost += "; without ORDER BY any rows would do, and it shows the first by all their columns"
    elif body.limit >= NO_LIMIT and not body.offset:
        name = "ORDER BY a column that is not shown"
    elif body.limit >= NO_LIMIT:
        name, cost = "ORDER BY ... OFFSET", "all rows are compared in each batch"
    context.note(name, stage.id, cost, "linear space: the rows of the input are stored in order")


def _order(order: tuple[Order, ...], rows: Rows) -> tuple[OrderBy, ...]:
    values = own_columns(rows)
    return tuple(OrderBy(substitute(o.expression, values), o.descending, o.nulls_first) for o in order)


def _resolve(body: Body, context: Context) -> Body:
    """Return the body with the names of nested views replaced by their stages."""
    match body:
        case Select():
            return replace(body, branches=tuple(_resolve_branch(branch, context) for branch in body.branches))
        case SetOperation():
            return replace(body, left=_resolve(body.left, context), right=_resolve(body.right, context))
        case Top() | Windowed():
            return replace(body, input=_resolve(body.input, context))
        case Values():
            return body


def _resolve_branch(branch: Conjunction, context: Context) -> Conjunction:
    return replace(
        branch,
        atoms=tuple(_resolve_atom(atom, context) for atom in branch.atoms),
        conditions=tuple(_resolve_condition(condition, context) for condition in branch.conditions),
        optional=tuple(_resolve_optional(one, context) for one in branch.optional),
    )


def _resolve_condition(condition: Condition, context: Context) -> Condition:
    return replace(
        condition,
        atoms=tuple(_resolve_atom(atom, context) for atom in condition.atoms),
        conditions=tuple(_resolve_condition(inner, context) for inner in condition.conditions),
    )


def _resolve_optional(one: OptionalAtom, context: Context) -> OptionalAtom:
    below = tuple(_resolve_optional(inner, context) for inner in one.optional)
    return replace(one, atom=_resolve_atom(one.atom, context), optional=below)


def _resolve_atom(atom: Atom, context: Context) -> Atom:
    rows = context.nested.get(atom.source)
    return atom if rows is None else replace(atom, source=rows.stage)
