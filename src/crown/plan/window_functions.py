"""Window functions: a top-k per partition if a rank is bounded, else a stage that stores partitions in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crown.ir.columns import columns_of_stage
from crown.ir.expression import Expression
from crown.ir.plan import OrderBy, RankColumn, TopStage, Variable, WindowStage, WindowValue
from crown.ir.query import RANKS, Body, Select, WindowColumn, Windowed
from crown.ir.scalars import substitute
from crown.plan.aggregate import aggregate_column
from crown.plan.planning import Planning, StageRows
from crown.plan.rows import own_columns, unique


def plan_windowed(body: Windowed, rows: StageRows, planning: Planning) -> StageRows:
    """Return the rows of the input with the columns of the window functions."""
    own = own_columns(rows)
    by_name = dict(zip(rows.names, rows.columns, strict=True))
    partition = tuple(by_name[name].name for name in body.partition)
    order = tuple(OrderBy(substitute(o.expression, own), o.descending, o.nulls_first) for o in body.order)
    names = unique([c.name for c in rows.columns] + [c.name for c in body.columns])[len(rows.columns) :]
    if body.limit is None:
        return _plan_ordered(body, rows, partition, order, names, planning)
    ranks = tuple(RankColumn(name, c.function) for name, c in zip(names, body.columns, strict=True))  # type: ignore[arg-type]
    stage = TopStage(planning.new_id("top"), rows.stage, order, body.limit, 0, partition, body.by, ranks)
    planning.add(stage)
    planning.note(
        body.word or f"{body.by.upper()}() <= {body.limit}",
        stage.id,
        "top-k of each key: O(log N) for each changed row"
        + (f", and up to {body.limit} ranks that shift" if ranks and body.limit > 1 else ""),
        "linear space: quadratic space in the worst case, for all pairs of rows that are compared are stored in order"
        if _is_of_pairs(body.input)
        else "linear space: the rows of the input are stored in order",
    )
    columns = rows.columns + tuple(Variable(name, c.type, False) for name, c in zip(names, body.columns, strict=True))
    shown = replace(rows, stage=stage.id, columns=columns, names=rows.names + tuple(c.name for c in body.columns))
    return _keyed(shown, stage)


def _is_of_pairs(body: Body) -> bool:
    """Whether the rows are those of a subquery beside the outer values that they are compared with."""
    return isinstance(body, Select) and any("outer values" in branch.origins for branch in body.branches)


def _keyed(rows: StageRows, stage: TopStage) -> StageRows:
    """The columns that distinguish rows: the partition if it has one row, otherwise with the row number."""
    if stage.by == "row_number" and stage.limit <= 1:
        return replace(rows, distinct=True, key=stage.partition)
    number = [rank.name for rank in stage.ranks if rank.function == "row_number"]
    return replace(rows, distinct=True, key=(*stage.partition, number[0])) if number else rows


def _plan_ordered(
    body: Windowed,
    rows: StageRows,
    partition: tuple[str, ...],
    order: tuple[OrderBy, ...],
    names: tuple[str, ...],
    planning: Planning,
) -> StageRows:
    own = own_columns(rows)
    values = tuple(_value(name, column, own) for name, column in zip(names, body.columns, strict=True))
    stage = WindowStage(planning.new_id("window"), rows.stage, partition, order, values)
    planning.add(stage)
    functions = dict.fromkeys(c.function if c.aggregate is None else c.aggregate.function for c in body.columns)
    planning.note(
        f"{', '.join(functions).upper()} over ordered partitions",
        stage.id,
        f"recomputed in the changed partitions: {_reach(body)}; only rows whose value changes are in the delta",
        "updates in O(λ); linear space: the rows of the input are stored in order",
    )
    columns = columns_of_stage(stage, {rows.stage: rows.columns})
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
