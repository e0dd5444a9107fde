"""How one query is laid out over Spark's operators.

    tables ─▶ [keyed stage per table with a key or window] ─▶ cells (HyperCube) ─▶ [merge] ─▶ deltas

A table with a primary key or a window must see all changes of a key (of the table) in one place before they are
spread over cells: an upsert may move a row from one cell to another, and a window counts the rows of all cells. So
with more than one cell such a table gets a stage of its own that turns its changes into plain inserts and deletes.
The merge stage exists when cells' outputs are not disjoint: it sums their partial results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import AggregateStage, DistinctStage, MapStage, Plan, Route, Routing
from crown.ir.tables import Table, TableColumn, resolved
from crown.plan import plan, to_json
from crown.plan.cells.distribute import distribute
from crown.spark.flow.canonical import canonical, output_names
from crown.spark.flow.cells import cell_keys
from crown.spark.flow.identity import Identity, describe
from crown.spark.flow.processor import Stage
from crown.spark.flow.rejects import Rejects
from crown.spark.flow.selection import quoted
from crown.sql import parse
from crown.types import STRING

_EXACT = frozenset({"boolean", "int8", "int16", "int32", "int64", "string", "date"})


@dataclass(frozen=True)
class Topology:
    """`resolved` holds the plan of each table that needs a stage of its own, with the number of its cells.

    Plans name their outputs by position; `names` are the author's.
    """

    sql: str
    cells: int
    names: tuple[str, ...]
    resolved: Mapping[str, tuple[Plan, int]]
    cell: Plan
    merge: Plan | None

    @property
    def result(self) -> Plan:
        return self.merge or self.cell

    @cached_property
    def fingerprint(self) -> str:
        """What tells this view from another in a checkpoint."""
        plans = [self.cell, *(plan_ for plan_, _ in self.resolved.values()), *([self.merge] if self.merge else [])]
        return _digest(f"{self.cells}:{','.join(map(fingerprint, plans))}")

    @cached_property
    def identity(self) -> Identity:
        """What a checkpoint of this view must have been made with."""
        keyed = {name: plan_.tables[0] for name, (plan_, _) in self.resolved.items()}
        tables = {table.name: describe(keyed.get(table.name, table)) for table in self.cell.tables}
        return Identity(self.fingerprint, self.cells, tables)

    def table(self, name: str) -> Table:
        return next(table for table in self.cell.tables if table.name == name)

    def stage(self, name: str, plan_: Plan, cells: int, on_invalid: str, rejects: Rejects | None) -> Stage:
        return Stage(
            name=name,
            plan=to_json(plan_),
            fingerprint=fingerprint(plan_),
            identity=self.identity,
            sql=self.sql,
            names=self.names if plan_ is self.result else tuple(column.name for column in plan_.columns),
            table_order=tuple(table.name for table in plan_.tables),
            keys=cell_keys(cells),
            on_invalid=on_invalid,
            rejects=rejects,
        )


def fingerprint(plan_: Plan) -> str:
    """What tells one plan from another in a checkpoint: all of it but the wording of the query."""
    return _digest(to_json(replace(plan_, sql="")))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lay_out(sql: str, schema: Mapping[str, Mapping[str, Any]], cells: int) -> Topology:
    """Plan the query for `cells` cells."""
    query = parse(sql, schema)
    names = output_names(query.body)
    whole = plan(canonical(query))
    if cells == 1:
        return Topology(sql, 1, names, {}, whole, None)
    front = {table.name: _resolve(table, schema, cells) for table in whole.tables if table.primary_key or table.window}
    tables = tuple(resolved(table) if table.name in front else table for table in whole.tables)
    spread = distribute(replace(whole, tables=tables), cells)
    merge = None if spread.merge is None else _spread_merge(spread.merge, cells)
    return Topology(sql, cells, names, front, spread.cell, merge)


def _spread_merge(merge: Plan, cells: int) -> Plan:
    """Merge in several places where each result needs the rows of one group only."""
    together, *stages = merge.stages
    columns = {column.name: column for column in merge.tables[0].columns}
    match stages:
        case [AggregateStage(group=(_, *_) as group, always=False), *rest]:
            place = _place([columns[name] for name in group])
        case [DistinctStage(), *rest]:
            place = _place(list(columns.values()))
        case rest:
            place = _place(list(columns.values()))
    if not all(isinstance(stage, MapStage) for stage in rest):
        return merge
    route = Route(together.id, 0, (place,))
    return replace(merge, routing=Routing(cells, ("group",), (cells,), (route,)))


def _place(columns: Sequence[TableColumn]) -> Expression:
    """What a row's cell is chosen by: all columns, so that few values in one of them don't leave cells idle.

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


def _resolve(table: Table, schema: Mapping[str, Mapping[str, Any]], cells: int) -> tuple[Plan, int]:
    """The plan that turns upserts and window expiry of one table into inserts and deletes."""
    columns = ", ".join(quoted(column.name) for column in table.columns)
    described = next(value for name, value in schema.items() if name.lower() == table.name.lower())
    own = plan(parse(f"SELECT {columns} FROM {quoted(table.name)}", {table.name: described}))
    return own, 1 if table.window else cells
