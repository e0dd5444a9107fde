"""ORDER BY without LIMIT: sort the result when it is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa

from crown import _kernel
from crown.ir.columns import stage_columns
from crown.ir.plan import Plan, TopStage
from crown.ir.serial import encode
from crown.ir.tables import Table, TableColumn
from crown.plan.passthrough import passthrough
from crown.view.engines import Functions, called, open_engine, read_all


def ordered(plan: Plan, rows: pa.Table, functions: Functions) -> pa.Table:
    """Sort `rows` of the view (perhaps with `_multiplicity`) by the plan's order.

    The kernel orders them, as for ORDER BY with a LIMIT that keeps all: one rule for NULLs, NaN and ties.
    """
    if not plan.order or not rows.num_rows:
        return rows
    own = stage_columns(plan)[plan.stages[-1].id]
    table = Table("rows", tuple(TableColumn(column.name, column.type, column.nullable) for column in own))
    all_of_them = passthrough(table)
    top = TopStage("$order", all_of_them.stages[-1].id, plan.order, limit=2**62)
    engine = open_engine(
        replace(all_of_them, stages=(*all_of_them.stages, top)), None, deltas=False, functions=functions
    )
    extra = rows.column_names[len(own) :]
    engine.apply([("rows", rows.rename_columns([column.name for column in own] + extra))])
    return pa.table(engine.rows(multiplicity=bool(extra))).rename_columns(rows.column_names)


def ordered_page(
    plan: Plan, engine: _kernel.Engine, view: str, offset: int, limit: int, functions: Functions
) -> pa.Table:
    """Return rows by their position in the plan's order."""
    columns = [column.name for column in stage_columns(plan)[plan.stages[-1].id]]
    order = json.dumps(encode(plan.order))
    page = engine.ordered_page(order, columns, offset, limit, view=view, functions=called(functions))
    if page is not None:
        return read_all(page)
    # The rows are in several cells, each with its own order.
    return ordered(plan, read_all(engine.rows(view=view)), functions).slice(offset, limit)
