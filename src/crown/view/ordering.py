"""ORDER BY without LIMIT: sort the result when it is read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from crown import _kernel
from crown.ir.columns import stage_columns
from crown.ir.plan import Plan, TopStage
from crown.ir.serial import to_json
from crown.ir.tables import Table, TableColumn
from crown.plan.identity import identity


def ordered(plan: Plan, rows: pa.Table) -> pa.Table:
    """Sort `rows` of the view (perhaps with `_multiplicity`) by the plan's order.

    The kernel orders them, as for ORDER BY with a LIMIT that keeps all: one rule for NULLs, NaN and ties.
    """
    if not plan.order or not rows.num_rows:
        return rows
    own = stage_columns(plan)[plan.stages[-1].id]
    table = Table("rows", tuple(TableColumn(column.name, column.type, column.nullable) for column in own))
    all_of_them = identity(table)
    top = TopStage("$order", all_of_them.stages[-1].id, plan.order, limit=2**62)
    engine = _kernel.Engine(to_json(replace(all_of_them, stages=(*all_of_them.stages, top))), deltas=False)
    extra = rows.column_names[len(own) :]
    engine.apply([("rows", rows.rename_columns([column.name for column in own] + extra))])
    return pa.table(engine.rows(multiplicity=bool(extra))).rename_columns(rows.column_names)
