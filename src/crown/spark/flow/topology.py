"""How one query is laid out over Spark's operators: a stage for each resolver, one for the cells, one for the merge.

See `crown.plan.cells.layout` for what each of them is there for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crown.ir.plan import Plan
from crown.ir.tables import Table
from crown.plan import plan, to_json
from crown.plan.cells import layout
from crown.plan.cells.layout import Layout
from crown.spark.flow.canonical import canonical, output_names
from crown.spark.flow.cells import cell_keys
from crown.spark.flow.identity import Identity, describe
from crown.spark.flow.processor import Stage
from crown.spark.flow.rejects import Rejects
from crown.sql import parse


@dataclass(frozen=True)
class Topology:
    """Plans name their outputs by position; `names` are the author's."""

    sql: str
    names: tuple[str, ...]
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
        """The plan of each table that has a stage of its own, with the number of its cells."""
        return {resolver.table.name: (resolver.plan, resolver.cells) for resolver in self.layout.resolvers}

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
    return Topology(sql, output_names(query.body), layout.lay_out(plan(canonical(query)), cells))
