"""Window functions: the top of each partition where a rank is bounded, else a stage that keeps partitions in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crown.ir.columns import columns_of
from crown.ir.expression import Expression
from crown.ir.plan import OrderBy, RankColumn, TopStage, Variable, WindowStage, WindowValue
from crown.ir.query import RANKS, WindowColumn, Windowed
from crown.ir.scalars import substitute
from crown.plan.aggregate import aggregate_column
from crown.plan.context import Context, Rows
from crown.plan.rows import own_columns, unique


def plan_windowed(body: Windowed, rows: Rows, context: Context) -> Rows:
    """Return the rows of the input with the columns of the window functions."""
    own = own_columns(rows)
    by_name = dict(zip(rows.names, rows.columns, strict=True))
    partition = tuple(by_name[name].name for name in body.partition)
    order = tuple(OrderBy(substitute(o.expression, own), o.descending, o.nulls_first) for o in body.order)
    names = unique([c.name for c in rows.columns] + [c.name for c in body.columns])[len(rows.columns) :]
    if body.limit is None:
        return _plan_ordered(body, rows, partition, order, names, context)
    ranks = tuple(RankColumn(name, c.function) for name, c in zip(names, body.columns, strict=True))  # type: ignore[arg-type]
    stage = TopStage(context.new_id("top"), rows.stage, order, body.limit, 0, partition, body.by, ranks)
    context.add(stage)
    context.note(
        f"{body.by.upper()}() <= {body.limit}",
        stage.id,
        "top-k of each key: O(log N) for each changed row"
        + (f", and up to {body.limit} ranks that shift" if ranks and body.limit > 1 else ""),
        "linear space: the rows of the input are stored in order",
    )
    columns = rows.columns + tuple(Variable(name, c.type, False) for name, c in zip(names, body.columns, strict=True))
    shown = replace(rows, stage=stage.id, columns=columns, names=rows.names + tuple(c.name for c in body.columns))
    return _keyed(shown, stage)


def _keyed(rows: Rows, stage: TopStage) -> Rows:
    """What tells rows apart: the partition if it has one row, with the number of the row otherwise."""
    if stage.by == "row_number" and stage.limit <= 1:
        return replace(rows, distinct=True, key=stage.partition)
    number = [rank.name for rank in stage.ranks if rank.function == "row_number"]
    return replace(rows, distinct=True, key=(*stage.partition, number[0])) if number else rows


def _plan_ordered(
    body: Windowed,
    rows: Rows,
    partition: tuple[str, ...],
    order: tuple[OrderBy, ...],
    names: tuple[str, ...],
    context: Context,
) -> Rows:
    own = own_columns(rows)
    values = tuple(_value(name, column, own) for name, column in zip(names, body.columns, strict=True))
    stage = WindowStage(context.new_id("window"), rows.stage, partition, order, values)
    context.add(stage)
    functions = dict.fromkeys(c.function if c.aggregate is None else c.aggregate.function for c in body.columns)
    context.note(
        f"{', '.join(functions).upper()} over ordered partitions",
        stage.id,
        f"recomputed in the changed partitions: {_reach(body)}; only rows whose value changes are in the delta",
        "updates in O(λ); linear space: the rows of the input are stored in order",
    )
    columns = columns_of(stage, {rows.stage: rows.columns})
    shown = rows.names + tuple(c.name for c in body.columns)
    return replace(rows, stage=stage.id, columns=columns, names=shown, distinct=rows.distinct)


def _value(name: str, column: WindowColumn, own: Mapping[str, Expression]) -> WindowValue:
    aggregate = None
    if column.aggregate is not None:
        aggregate = aggregate_column(name, column.aggregate.over(lambda e: substitute(e, own)), False)
    return WindowValue(
        name,
        column.function,
        column.type,
        tuple(substitute(argument, own) for argument in column.arguments),
        column.offset,
        column.ignore_nulls,
        column.frame,
        aggregate,
    )


def _reach(body: Windowed) -> str:
    """Which rows a change makes the functions compute again."""
    if all(_is_near(column) for column in body.columns):
        return "the rows around the change that have it in their frame"
    if all(_goes_on(column) or _is_near(column) for column in body.columns):
        return "the rows after the change"
    return "all rows of the partition"


def _is_near(column: WindowColumn) -> bool:
    frame = column.frame
    if column.function == "lag":
        return not column.ignore_nulls
    return frame is not None and frame.unit == "rows" and None not in (frame.start, frame.end)


def _goes_on(column: WindowColumn) -> bool:
    frame = column.frame
    if column.function in RANKS:
        return True
    return (
        frame is not None and frame.end is not None and (frame.unit == "rows" or (frame.start, frame.end) == (None, 0))
    )
