"""Plan a Query: nested views first, then the body, each as stages in dependency order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal as OneOf

from crown.ir.atoms import body_sources, map_atoms
from crown.ir.columns import stage_columns
from crown.ir.expression import Column
from crown.ir.plan import Atom, OrderBy, Plan, TopStage, TreeStage, ValuesStage, Variable
from crown.ir.query import (
    NO_LIMIT,
    Body,
    Named,
    Order,
    Query,
    Recursion,
    Select,
    SetOperation,
    Top,
    Values,
    Windowed,
)
from crown.ir.scalars import substitute
from crown.ir.tables import Table, TableColumn
from crown.plan.aggregate import plan_aggregate
from crown.plan.cells.distribute import describe
from crown.plan.explain.notes import note_computed, note_functions, note_tables
from crown.plan.explain.report import Report
from crown.plan.planning import Planning, StageRows
from crown.plan.ranks import bound_ranks
from crown.plan.recursion import Loop
from crown.plan.rows import own_columns, project, without_duplicates
from crown.plan.select import branch_outputs, plan_rows
from crown.plan.set_operations import combine
from crown.plan.window_functions import plan_windowed


def plan_with_report(query: Query, *, cells: int = 1, views: Mapping[str, Plan] | None = None) -> tuple[Plan, Report]:
    """Return the best plan of a query, and the facts that explain it (the distribution over `cells` among them).

    `views` are the plans of the maintained views that it may read, by name. Their stages are part of its plan.
    """
    query = bound_ranks(query)
    planning = _context(query, views or {})
    for name, body in query.nested:
        if isinstance(body, Recursion):
            planning.nested[name] = _plan_recursion(name, body, planning)
            planning.read_as_is.add(planning.nested[name].stage)
            continue
        planning.nested[name] = _plan_nested(body, planning)
        if isinstance(body, Windowed):
            planning.read_as_is.add(planning.nested[name].stage)
            continue
        planning.note(
            "subquery",
            planning.nested[name].stage,
            "a separate view, which the outer query reads like a table",
            "the guarantee of a table: one change inside it may be many here",
        )
    rows = plan_body(_resolve(query.body, planning), "keep", planning)
    note_tables(planning.tables, planning)
    if query.order:
        planning.note("ORDER BY", rows.stage, "sorted when the result is read; deltas have no order", "constant delay")
    plan = Plan(
        sql=query.sql,
        tables=planning.tables,
        stages=tuple(planning.stages),
        columns=tuple(
            TableColumn(name, column.type, column.nullable)
            for name, column in zip(rows.names, rows.columns, strict=True)
        ),
        bag=not rows.distinct,
        order=_order(query.order, rows),
    )
    note_functions(plan, planning)
    report = Report(query.sql, tuple(planning.conjunctions), tuple(planning.constructs), describe(plan, cells))
    return plan, report


def _plan_nested(body: Body, planning: Planning) -> StageRows:
    """Return the rows of a nested query; its stage has the query's names."""
    rows = plan_body(_resolve(body, planning), "keep", planning)
    return project(rows, [Named(n, value) for n, value in own_columns(rows).items()], planning, named=True)


def _plan_recursion(name: str, body: Recursion, planning: Planning) -> StageRows:
    """Return the rows of a recursion, whose step reads them by `name`."""
    duplicates: OneOf["keep", "ignore"] = "keep" if body.all else "ignore"
    rows = plan_body(_resolve(body.base, planning), duplicates, planning)
    base = project(rows, [Named(n, value) for n, value in own_columns(rows).items()], planning, named=True)
    loop = Loop(name, body, base, planning)
    for inner, nested in body.nested:
        planning.nested[inner] = _plan_nested(nested, planning)
    # One derivation must not hide another, so the step always keeps duplicates.
    return loop.close(plan_body(_resolve(body.step, planning), "keep", planning))


def _context(query: Query, views: Mapping[str, Plan]) -> Planning:
    """Return the planning of a query, with the stages of the views that it reads."""
    read = {name: views[name] for name in dict.fromkeys(_sources(query)) if name in views}
    tables = united_tables([query.tables, *(plan.tables for plan in read.values())])
    planning = Planning(query.sql, tables)
    # Register all of them first: stages added later must not take their ids.
    for stage in (stage for plan in read.values() for stage in plan.stages):
        if not planning.has(stage.id):
            planning.add(stage)
    for name, plan in read.items():
        columns = stage_columns(plan)[plan.stages[-1].id]
        rows = StageRows(plan.stages[-1].id, columns, tuple(c.name for c in plan.columns), distinct=not plan.bag)
        named = [Named(n, value) for n, value in own_columns(rows).items()]
        planning.nested[name] = project(rows, named, planning, named=True)
        planning.note(
            "view",
            planning.nested[name].stage,
            f"{name} is read like a table; its stages are kept once",
            "the guarantee of a table: one change of the view may be many here",
        )
    return planning


def united_tables(all_tables: Iterable[tuple[Table, ...]]) -> tuple[Table, ...]:
    """Return each table once, with all columns that some plan reads of it."""
    found: dict[str, Table] = {}
    for table in (table for tables in all_tables for table in tables):
        known = found.setdefault(table.name, table)
        names = {column.name for column in known.columns}
        more = tuple(column for column in table.columns if column.name not in names)
        found[table.name] = replace(known, columns=known.columns + more)
    return tuple(found.values())


def _sources(query: Query) -> Iterator[str]:
    for body in (*(body for _, body in query.nested), query.body):
        yield from body_sources(body)


def plan_body(
    body: Body, duplicates: OneOf["keep", "ignore"], planning: Planning, *, looked_up: bool = False
) -> StageRows:
    """Return the rows of a body. `ignore`: a set operation above only tests whether a row exists.

    `looked_up`: a set operation above looks rows up in them.
    """
    match body:
        case Select():
            if body.group_by is not None:
                rows = plan_aggregate(body, planning)
            else:
                rows = plan_rows(body, "drop" if body.distinct else duplicates, planning, looked_up=looked_up)
                note_computed(branch_outputs(body.branches[0], body.outputs), rows.stage, planning)
                if body.distinct and isinstance(planning.stages[-1], TreeStage):
                    planning.note("DISTINCT", rows.stage, "the tree has each row once; nothing else is stored")
            return without_duplicates(rows, planning) if body.distinct else rows
        case SetOperation():
            below: OneOf["keep", "ignore"] = "keep" if body.all else "ignore"
            asked = looked_up or not (body.operator == "union" and body.all)
            left = plan_body(body.left, below, planning, looked_up=asked)
            right = plan_body(body.right, below, planning, looked_up=asked)
            return combine(body, left, right, planning, looked_up=looked_up)
        case Values():
            return _plan_values(body, planning)
        case Top():
            rows = plan_body(body.input, "keep", planning)
            stage = TopStage(planning.new_id("top"), rows.stage, _order(body.order, rows), body.limit, body.offset)
            planning.add(stage)
            _note_top(body, stage, planning)
            topped = replace(rows, stage=stage.id)
            if body.shown is None:
                return topped
            shown = zip(topped.names[: body.shown], topped.columns, strict=False)
            return project(topped, [Named(name, Column(c.name, c.type)) for name, c in shown], planning)
        case Windowed():
            return plan_windowed(body, plan_body(body.input, "keep", planning), planning)
        case Recursion():
            raise AssertionError("a recursion is nested: its step reads it by name")


def _plan_values(body: Values, planning: Planning) -> StageRows:
    columns = tuple(Variable(column.name, column.type, column.nullable) for column in body.columns)
    stage = ValuesStage(planning.new_id("values"), columns, body.rows)
    planning.add(stage)
    return StageRows(
        stage.id, columns, tuple(c.name for c in columns), distinct=len(set(body.rows)) == len(body.rows) <= 1
    )


def _note_top(body: Top, stage: TopStage, planning: Planning) -> None:
    name, cost = "ORDER BY ... LIMIT", "O(log N) for each changed row"
    if not body.order:
        name = "LIMIT" if body.limit < NO_LIMIT else "OFFSET"
        cost += "; without ORDER BY any rows would do, and it shows the first by all their columns"
    elif body.limit >= NO_LIMIT and not body.offset:
        name = "ORDER BY a column that is not shown"
    elif body.limit >= NO_LIMIT:
        name, cost = "ORDER BY ... OFFSET", "all rows are compared in each batch"
    planning.note(name, stage.id, cost, "linear space: the rows of the input are stored in order")


def _order(order: tuple[Order, ...], rows: StageRows) -> tuple[OrderBy, ...]:
    values = own_columns(rows)
    return tuple(OrderBy(substitute(o.expression, values), o.descending, o.nulls_first) for o in order)


def _resolve(body: Body, planning: Planning) -> Body:
    """Return the body with the names of nested views replaced by their stages."""

    def resolve(atom: Atom) -> Atom:
        rows = planning.nested.get(atom.source)
        return atom if rows is None else replace(atom, source=rows.stage)

    return map_atoms(body, resolve)
