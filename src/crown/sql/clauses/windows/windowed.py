"""A SELECT with window functions: its rows or groups first, then the functions over them, then its outputs.

An aggregate of a whole partition is its groups, joined back by the partition. All others are computed by stages over
the rows in order (`Windowed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.ir.query import RANKS, Aggregate, Body, Named, Select, WindowColumn, Windowed
from crown.ir.scalars import zero_of
from crown.ir.tables import TableColumn
from crown.sql.clauses.bound import BoundQuery, body_of, relation_of, typed
from crown.sql.clauses.windows.window_functions import WINDOW, FoundWindow
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions, cast_value
from crown.sql.relation import Branch, Relation, VisibleColumn, VisibleTable
from crown.types import BOOLEAN, INT32

Rows = Callable[[Sequence[Expression]], BoundQuery]


@dataclass(frozen=True)
class WindowedRows:
    """Rows to select from, and what expressions with window functions are over them."""

    relation: Relation
    values: Mapping[Expression, Expression]

    def over(self, expression: Expression) -> Expression:
        known = self.values.get(expression)
        if known is not None:
            return known
        if isinstance(expression, Call):
            return replace(expression, arguments=tuple(self.over(a) for a in expression.arguments))
        return expression


def has_window(expression: Expression) -> bool:
    return any(name.startswith(WINDOW) for name in columns_of(expression))


def joined_groups(context: Context, relation: Relation, windows: Sequence[FoundWindow]) -> WindowedRows:
    """The rows of FROM with aggregates of whole partitions: nothing but joins."""
    values: dict[Expression, Expression] = {}
    rows = relation
    for partition in dict.fromkeys(w.partition for w in windows):
        own = [w for w in windows if w.partition == partition]
        groups, columns = _groups(context, rows, partition, own)
        values |= columns
        relation = _joined(context, relation, groups, partition)
    return WindowedRows(relation, values)


def windowed_rows(
    context: Context, rows: Rows, windows: Sequence[FoundWindow], expressions: Sequence[Expression]
) -> WindowedRows:
    """Window functions over `rows`, which binds any expressions over the rows or groups of the SELECT.

    `expressions` are all that will be read of the result.
    """
    pieces = _pieces([*expressions, *(e for w in windows for e in w.expressions)])
    bound = rows(pieces)
    names = typed(bound.columns)
    groups = [w for w in windows if w.is_group]
    ordered = [w for w in windows if not w.is_group]
    columns: Mapping[Expression, Expression]
    if groups:
        source = relation_of(context, replace(bound, branches=None, body=body_of(context, bound)), "rows", (), None)
        columns = {p: c.reference for p, c in zip(pieces, source.visible, strict=True)}
        bound = BoundQuery(names, tuple((b, tuple(columns.values())) for b in source.branches), None)
    if not ordered:
        result = WindowedRows(source, columns)
    else:
        below = {p: Column(c.name, c.type) for p, c in zip(pieces, names, strict=True)}
        body = _with_windows(body_of(context, bound), ordered, below)
        shown = [(c.name, c.type, True) for c in names]
        shown += [(w.name, w.type, w.function not in RANKS) for w in _in_order(ordered)]
        read = _relation(context, "window", body, shown)
        found = [*pieces, *(w.column for w in _in_order(ordered))]
        result = WindowedRows(read, {p: c.reference for p, c in zip(found, read.visible, strict=True)})
    if not groups:
        return result
    joined = [replace(w, partition=tuple(columns[p] for p in w.partition), aggregate=_over(w, columns)) for w in groups]
    values = dict(result.values)
    relation = result.relation
    for partition in dict.fromkeys(w.partition for w in groups):
        own = [j for w, j in zip(groups, joined, strict=True) if w.partition == partition]
        table, found_values = _groups(context, source, own[0].partition, own)
        values |= found_values
        relation = _joined(context, relation, table, tuple(result.values[p] for p in partition))
    return WindowedRows(relation, values)


def _over(window: FoundWindow, columns: Mapping[Expression, Expression] | Mapping[Expression, Column]) -> Aggregate:
    assert window.aggregate is not None
    return window.aggregate.over(lambda e: columns.get(e, e))


def _pieces(expressions: Sequence[Expression]) -> list[Expression]:
    """The largest parts without window functions."""
    found: dict[Expression, None] = {}

    def collect(expression: Expression) -> None:
        if isinstance(expression, Literal):
            return
        if not has_window(expression):
            found[expression] = None
        elif isinstance(expression, Call):
            for argument in expression.arguments:
                collect(argument)

    for expression in expressions:
        collect(expression)
    return list(found) or [Literal(1, INT32)]


def _in_order(windows: Sequence[FoundWindow]) -> list[FoundWindow]:
    """Group the functions by stage: one for each partition and order, with separate ones for ranks."""
    specs = dict.fromkeys(map(_spec, windows))
    return [w for spec in specs for w in windows if _spec(w) == spec]


def _spec(window: FoundWindow) -> tuple[object, ...]:
    return window.function in RANKS, window.partition, window.order


def _with_windows(body: Body, windows: Sequence[FoundWindow], columns: Mapping[Expression, Column]) -> Body:
    for spec in dict.fromkeys(map(_spec, windows)):
        own = [w for w in windows if _spec(w) == spec]
        order = tuple(replace(o, expression=columns[o.expression]) for o in own[0].order)
        partition = tuple(columns[p].name for p in own[0].partition)
        body = Windowed(body, partition, order, tuple(_column(w, columns) for w in own))
    return body


def _column(window: FoundWindow, columns: Mapping[Expression, Column]) -> WindowColumn:
    return WindowColumn(
        window.name,
        window.function,
        window.type,
        tuple(columns.get(a, a) for a in window.arguments),
        window.offset,
        window.ignore_nulls,
        window.frame,
        None if window.aggregate is None else _over(window, columns),
    )


def _groups(
    context: Context, relation: Relation, partition: Sequence[Expression], windows: Sequence[FoundWindow]
) -> tuple[Relation, dict[Expression, Expression]]:
    """A nested body with a row for each partition, and the columns in it that the functions stand for."""
    keys = {f"key_{i + 1}": p for i, p in enumerate(partition)}
    wanted = dict(keys)
    aggregates = []
    for window in windows:
        assert window.aggregate is not None

        def column(expression: Expression) -> Expression:
            name = next((n for n, e in wanted.items() if e == expression), None)
            if name is None:
                name = f"input_{len(wanted) + 1}"
                wanted[name] = expression
            return Column(name, expression.type)

        aggregates.append(replace(window.aggregate.over(column), name=window.name))
    body = Select(
        branches=build_conjunctions(
            context,
            (
                (
                    b,
                    [Wanted(n, cast_value(context.in_branch(e, b), e.type), bind=n in keys) for n, e in wanted.items()],
                )
                for b in relation.branches
            ),
        ),
        outputs=(
            *(Named(n, Column(n, e.type)) for n, e in keys.items()),
            *(Named(w.name, Column(w.name, w.type)) for w in windows),
        ),
        group_by=tuple(Named(n, Column(n, e.type)) for n, e in keys.items()),
        aggregates=tuple(aggregates),
    )
    shown = [(n, e.type, True) for n, e in keys.items()]
    shown += [(w.name, w.type, w.aggregate is None or w.aggregate.function != "count") for w in windows]
    groups = _relation(context, "partitions", body, shown)
    return groups, {w.column: c.reference for w, c in zip(windows, groups.visible[len(keys) :], strict=True)}


def _relation(context: Context, name: str, body: Body, columns: Sequence[tuple[str, object, bool]]) -> Relation:
    """One atom over a nested body."""
    source = context.nest(name, body)
    listed = [TableColumn(n, t, nullable) for n, t, nullable in columns]  # type: ignore[arg-type]
    atom = context.new_source(source, source, listed)
    visible = tuple(VisibleColumn(c.name, atom.column(c.name), c.type) for c in listed)
    return Relation((Branch((atom,)),), (VisibleTable("", visible),), visible)


def _joined(context: Context, relation: Relation, groups: Relation, partition: Sequence[Expression]) -> Relation:
    """Join each row with its group. NULLs of the partition are one group."""
    (group,) = groups.branches
    keys = [column.reference for column in groups.visible[: len(partition)]]

    def joined(branch: Branch) -> Branch:
        predicates = []
        for own, key in zip(partition, keys, strict=True):
            value = cast_value(context.in_branch(own, branch), key.type)
            predicates += _equal(value, key, context.may_be_null(own, branch))
        both = branch.joined(group)
        return replace(both, predicates=(*both.predicates, *predicates))

    return relation.with_branches(map(joined, relation.branches))


def _equal(left: Expression, right: Expression, nullable: bool) -> list[Expression]:
    """`left` IS NOT DISTINCT FROM `right`, as equalities that a join can use."""
    if not nullable:
        return [Call("eq", (left, right), BOOLEAN)]
    sides = [Call("coalesce", (side, zero_of(side.type)), side.type) for side in (left, right)]
    absent = [Call("is_null", (side,), BOOLEAN) for side in (left, right)]
    return [Call("eq", tuple(sides), BOOLEAN), Call("eq", tuple(absent), BOOLEAN)]
