"""The layout of one plan over several cells, as data: resolvers of keyed and windowed tables, the cells, the merge.

    tables ─▶ [a resolver for each table with a key or window] ─▶ cells (HyperCube) ─▶ [merge] ─▶ deltas

A table with a primary key or a window must see all changes of a key (of the table) in one place before they are
spread over cells: an upsert may move a row from one cell to another, and a window counts the rows of all cells. So such
a table has a resolver, which turns its changes into plain inserts and deletes. The merge exists when cells' outputs are
not disjoint: it adds up their partial results.

The threads of a `View` and the stages of a Spark stream both run this description. A `View` resolves all tables in one
engine and merges in another; on Spark, resolvers and merge are distributed over their own cells as far as they allow
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import AggregateStage, DistinctStage, MapStage, Plan, Route, Routing, TopStage, WindowStage
from crown.ir.serial import decode, encode
from crown.ir.tables import Table, TableColumn, resolved
from crown.plan.cells.distribute import distribute
from crown.plan.passthrough import passthrough
from crown.types import BOOLEAN, DATE, INTEGERS, STRING

_EXACT = frozenset({BOOLEAN, *INTEGERS, STRING, DATE})


@dataclass(frozen=True)
class Resolver:
    """The plan that applies the key and window of one table. It can be spread over `cells` by the primary key."""

    plan: Plan
    cells: int

    @property
    def table(self) -> Table:
        (table,) = self.plan.tables
        return table


@dataclass(frozen=True)
class Layout:
    """`cell` has the routing, unless it is the only one; `merge` has one where it can be spread over cells too."""

    cells: int
    resolvers: tuple[Resolver, ...]
    cell: Plan
    merge: Plan | None

    @property
    def merge_cells(self) -> int:
        return 1 if self.merge is None or self.merge.routing is None else self.merge.routing.cells


def lay_out(plan: Plan, cells: int, *, resolve_all: bool = False) -> Layout:
    """Lay out a plan over cells. `resolve_all`: invalid changes are quarantined, so each must be found once and in
    order.

    The routing takes keys into account; the cells themselves see resolved tables.
    """
    spread = distribute(plan, cells)
    if cells == 1:
        return Layout(1, (), spread.cell, None)
    first = [table for table in plan.tables if table.primary_key or table.window or resolve_all]
    resolvers = tuple(
        Resolver(passthrough(table), 1 if table.window or not table.primary_key else cells) for table in first
    )
    tables = tuple(resolved(table) if table in first else table for table in plan.tables)
    merge = None if spread.merge is None else _spread_merge(spread.merge, cells)
    return Layout(cells, resolvers, replace(spread.cell, tables=tables), merge)


def layout_to_json(layout: Layout) -> str:
    """Return the layout as JSON text."""
    return json.dumps(encode(layout), allow_nan=False)


def layout_from_json(text: str) -> Layout:
    """Return the layout that `layout_to_json` wrote; raises ValueError or TypeError for anything else."""
    layout = decode(Layout, json.loads(text))
    assert isinstance(layout, Layout)
    return layout


def _by_key(table: Table) -> bool:
    """Whether a change affects only the rows of one key; with a window it may affect all rows."""
    return bool(table.primary_key) and table.window is None


def _spread_merge(merge: Plan, cells: int) -> Plan:
    """Distribute the merge over cells if each result needs only the rows of one group."""
    together, *stages = merge.stages
    columns = {column.name: column for column in merge.tables[0].columns}
    match stages:
        case [AggregateStage(group=(_, *_) as group, always=False), *rest]:
            value = routing_value([columns[name] for name in group])
        case [TopStage(partition=(_, *_) as partition) | WindowStage(partition=(_, *_) as partition), *rest]:
            value = routing_value([columns[name] for name in partition])
        case [DistinctStage(), *rest]:
            value = routing_value(list(columns.values()))
        case rest:
            value = routing_value(list(columns.values()))
    if not all(isinstance(stage, MapStage) for stage in rest):
        return merge
    route = Route(together.id, 0, (value,))
    return replace(merge, routing=Routing(cells, ("group",), (cells,), (route,)))


def routing_value(columns: Sequence[TableColumn]) -> Expression:
    """Return the expression that chooses a row's cell: all columns, so that one with few values leaves no cell idle.

    Several are written as one text; those where equal values may read differently (0.0 and -0.0) are left out.
    """
    exact = [column for column in columns if column.type in _EXACT]
    if len(exact) < 2:
        first = (exact or columns)[0]
        return Column(first.name, first.type)
    parts: list[Expression] = []
    for column in exact:
        text: Expression = Column(column.name, column.type)
        if column.type != STRING:
            text = Call("cast", (text,), STRING)
        parts += [Call("coalesce", (text, Literal("", STRING)), STRING), Literal(",", STRING)]
    return Call("concat", tuple(parts[:-1]), STRING)
