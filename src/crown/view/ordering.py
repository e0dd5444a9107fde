"""ORDER BY without LIMIT: the order of results that are pulled."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from crown.expression import Column
from crown.plan.columns import stage_columns
from crown.plan.model import Plan


def ordered(plan: Plan, rows: pa.Table) -> pa.Table:
    """`rows` (the plan's columns) by the plan's order; ties stay as they are."""
    if not plan.order or not rows.num_rows:
        return rows
    names = [column.name for column in stage_columns(plan)[plan.stages[-1].id]]
    # The least key first: each pass is stable, so the last one decides.
    for key in reversed(plan.order):
        assert isinstance(key.expression, Column)
        order = pc.array_sort_indices(
            rows.column(names.index(key.expression.name)),
            order="descending" if key.descending else "ascending",
            null_placement="at_start" if key.nulls_first else "at_end",
        )
        rows = rows.take(order)
    return rows
