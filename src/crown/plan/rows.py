"""Steps that both kinds of SELECT take: project, filter, unite branches, remove duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crown.ir.expression import Column, Expression, makes_rows
from crown.ir.nullability import may_be_null
from crown.ir.plan import DistinctStage, MapColumn, MapStage, MaterializeStage, SetOperationStage, Variable
from crown.ir.query import Named
from crown.plan.planning import Planning, StageRows


def project(
    rows: StageRows,
    outputs: Sequence[Named],
    planning: Planning,
    *,
    where: Expression | None = None,
    named: bool = False,
) -> StageRows:
    """Project the rows for which `where` holds to `outputs` (over the stage's own columns).

    Without a filter, and when the outputs are just the columns in order, no stage is needed; unless `named` requires
    that the columns have the outputs' names.
    """
    names = tuple(output.name for output in outputs)
    plain = [output.expression.name if isinstance(output.expression, Column) else None for output in outputs]
    columns = [column.name for column in rows.columns]
    if where is None and plain == columns and (not named or list(names) == columns):
        return replace(rows, names=names)
    nullable = {column.name for column in rows.columns if column.nullable}.__contains__
    shown = tuple(
        MapColumn(name, output.expression.type, may_be_null(output.expression, nullable), output.expression)
        for name, output in zip(unique(names), outputs, strict=True)
    )
    stage = MapStage(planning.new_id("map"), rows.stage, shown, where)
    planning.add(stage)
    place_of = {name: shown[position].name for position, name in enumerate(plain) if name is not None}
    key = rows.key if rows.key is not None else tuple(columns)
    exploded = any(makes_rows(output.expression) for output in outputs)
    still_distinct = rows.distinct and not exploded and all(name in place_of for name in key)
    if exploded:
        planning.note(
            "UNNEST",
            stage.id,
            "one row for each element of the array, made when its row changes and when it is read; not stored",
            "constant time for a change: it has as many rows as the array has elements",
        )
    return StageRows(
        stage.id,
        tuple(Variable(c.name, c.type, c.nullable) for c in shown),
        names,
        distinct=still_distinct,
        key=tuple(place_of[name] for name in key) if still_distinct else None,
    )


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with a number after those that came before.

    >>> unique(["a", "b", "a"])
    ('a', 'b', 'a#2')
    """
    taken: set[str] = set()
    found = []
    for name in names:
        fresh, number = name, 2
        while fresh in taken:
            fresh, number = f"{name}#{number}", number + 1
        taken.add(fresh)
        found.append(fresh)
    return tuple(found)


def union_all(branches: Sequence[StageRows], planning: Planning, *, looked_up: bool = False) -> StageRows:
    """Return the bag union of rows with the same columns; `looked_up`: a set operation will look rows up in it."""
    if looked_up and any(planning.can_look_up(branch) for branch in branches):
        branches = [with_lookup(branch, planning) for branch in branches]
    united, *rest = branches
    for other in rest:
        stage = SetOperationStage(planning.new_id("union"), "union", True, (united.stage, other.stage))
        planning.add(stage)
        columns = tuple(
            Variable(one.name, one.type, one.nullable or two.nullable)
            for one, two in zip(united.columns, other.columns, strict=True)
        )
        united = StageRows(stage.id, columns, united.names)
    if not looked_up:
        return united
    if rest and planning.can_look_up(united):
        cost = "one look-up in every other branch for each row that is read, so that no row appears twice"
        planning.note("united branches", united.stage, cost)
    return with_lookup(united, planning)


def with_lookup(rows: StageRows, planning: Planning) -> StageRows:
    """`rows` in a form in which a set operation can look up single rows: stored, if that is impossible otherwise."""
    if planning.can_look_up(rows):
        return rows
    stage = MaterializeStage(planning.new_id("kept"), rows.stage)
    planning.add(stage)
    planning.note("kept branch", stage.id, "its rows are stored for look-up", "linear space")
    return replace(rows, stage=stage.id)


def without_duplicates(rows: StageRows, planning: Planning) -> StageRows:
    if rows.distinct:
        return rows
    stage = DistinctStage(planning.new_id("distinct"), rows.stage)
    planning.add(stage)
    planning.note(
        "DISTINCT after projection",
        stage.id,
        "the rows of the result are stored with counts",
        "constant delay and linear space",
    )
    return StageRows(stage.id, rows.columns, rows.names, distinct=True)


def own_columns(rows: StageRows) -> dict[str, Expression]:
    """Return the columns that the query's names refer to."""
    return {name: Column(c.name, c.type) for name, c in zip(rows.names, rows.columns, strict=True)}
