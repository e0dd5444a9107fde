"""The layout of one query over Spark's operators: one for each resolver, one for the cells, one for the merge.

See `crown.plan.cells.layout` for the purpose of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crown.ir.plan import Plan
from crown.ir.query import Query
from crown.ir.serial import encode
from crown.ir.tables import Table
from crown.plan import plan, to_json
from crown.plan.cells import layout
from crown.plan.cells.layout import Layout
from crown.plan.cells.stored import stored
from crown.plan.cells.together import Slots, lay_out_together
from crown.spark.checkpoint.identity import Identity, digest, operator_fingerprint
from crown.spark.checkpoint.meaning import bound
from crown.spark.flow.cell_keys import cell_keys
from crown.spark.flow.plan_views import plan_views, shown_order
from crown.spark.flow.processor import Operator
from crown.spark.flow.rejects import Rejects


@dataclass(frozen=True)
class Topology:
    """Plans name their outputs by position; `names` are the author's."""

    sql: str
    names: tuple[str, ...]
    query: Query
    layout: Layout

    @property
    def cells(self) -> int:
        return self.layout.cells

    @property
    def cell(self) -> Plan:
        return self.layout.cell

    @property
    def merge(self) -> Plan | None:
        return self.layout.merge

    @property
    def resolved(self) -> dict[str, tuple[Plan, int]]:
        """The plan of each table that has its own operator, with the number of its cells."""
        return {resolver.table.name: (resolver.plan, resolver.cells) for resolver in self.layout.resolvers}

    @property
    def result(self) -> Plan:
        return self.merge or self.cell

    @cached_property
    def fingerprint(self) -> str:
        """What identifies this view in a checkpoint: its meaning, and that of the rows in its operators."""
        return digest([self.meaning(), self.cells, {name: stored(plan_) for name, plan_ in self.plans.items()}])

    def meaning(self) -> Any:
        """Return what the view computes, as JSON."""
        return encode(replace(self.query, sql=""))

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The plan of each operator by its name."""
        tables = {f"table-{resolver.table.name}": resolver.plan for resolver in self.layout.resolvers}
        return tables | {"cells": self.cell} | ({} if self.merge is None else {"merge": self.merge})

    @cached_property
    def identity(self) -> Identity:
        """What a checkpoint of this view must have been made with."""
        return Identity(self.fingerprint, self.cells, self.sql, self.query.tables)

    def described(self) -> tuple[Identity, dict[str, str]]:
        """Return the identity, and the plans of all operators as a state holds them."""
        return self.identity, {name: to_json(plan_) for name, plan_ in self.plans.items()}

    def table(self, name: str) -> Table:
        return next(table for table in self.cell.tables if table.name == name)

    def operator(self, name: str, plan_: Plan, cells: int, on_invalid: str, rejects: Rejects | None) -> Operator:
        return Operator(
            name=name,
            plan=to_json(plan_),
            fingerprint=operator_fingerprint(self.fingerprint, name),
            identity=self.identity,
            sql=self.sql,
            names=self.names if plan_ is self.result else tuple(column.name for column in plan_.columns),
            table_order=tuple(table.name for table in plan_.tables),
            keys=cell_keys(cells),
            on_invalid=on_invalid,
            rejects=rejects,
        )


def lay_out(sql: str, schema: Mapping[str, Mapping[str, Any]], cells: int, *, dialect: str = "spark") -> Topology:
    """Plan the query for `cells` cells."""
    query, names = bound(sql, schema, dialect)
    return Topology(sql, names, query, layout.lay_out(plan(query), cells))


@dataclass(frozen=True)
class ViewsTopology(Topology):
    """Several views as one query, whose rows are those of all of them (see `crown.plan.cells.together`)."""

    views: tuple[Slots, ...]
    queries: tuple[tuple[str, Query], ...]
    meeting: tuple[str, ...]  # the views that the merge completes

    def meaning(self) -> Any:
        columns = {view.name: [column.name for column in view.columns] for view in self.views}
        return [[name, columns[name], encode(replace(query, sql=""))] for name, query in self.queries]

    @cached_property
    def identity(self) -> Identity:
        return Identity(self.fingerprint, self.cells, self.sql, self.query.tables, self.views)


def lay_out_views(
    sqls: Mapping[str, str],
    schema: Mapping[str, Mapping[str, Any]],
    cells: int,
    *,
    names: Mapping[str, str] | None = None,
    dialect: str = "spark",
) -> ViewsTopology:
    """Plan several views, which may read each other, as one query for `cells` cells."""
    project = plan_views(sqls, schema, names=names, dialect=dialect, canonically=True)
    together = lay_out_together(project.plan, cells)
    result = together.layout.merge or together.layout.cell
    columns = tuple(column.name for column in result.columns)
    first = replace(project.views[0].query, tables=project.plan.tables)
    queries = tuple((view.name, view.query) for view in project.views)
    orders = {view.name: shown_order(view.plan) for view in project.views}
    views = tuple(replace(slots, order=orders[slots.name]) for slots in together.views)
    return ViewsTopology(project.plan.sql, columns, first, together.layout, views, queries, together.meeting)
