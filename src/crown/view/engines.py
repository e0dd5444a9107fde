"""The engine that runs a plan: alone, or with one cell per thread behind a router. Both behave the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from crown import _kernel
from crown.errors import StateError
from crown.ir.plan import Plan
from crown.ir.serial import to_json
from crown.ir.tables import resolved
from crown.plan.cells.distribute import can_be_spread, distribute
from crown.view.identity import identity

OnInvalid: TypeAlias = Literal["raise", "quarantine"]
State: TypeAlias = Mapping[str, list[bytes]]


def read_all(stream: Any) -> pa.Table:
    """What the kernel gives, as a table. (`pyarrow.table` would import pandas first, which takes a second.)"""
    return pa.RecordBatchReader.from_stream(stream).read_all()


def open_engine(
    plan: Plan, *, threads: int, deltas: bool, on_invalid: OnInvalid, state: State | None = None
) -> _kernel.Engine:
    """An empty engine, or the one that was saved as `state`."""
    # Cells that never get a row would still show that of a global aggregate.
    if threads > 1 and can_be_spread(plan):
        return _spread(plan, threads, deltas=deltas, on_invalid=on_invalid, state=state)
    if state is None:
        return _kernel.Engine(to_json(plan), deltas=deltas)
    if "engine" not in state:
        raise StateError("the saved view lacks its part 'engine'", code="CROWN-STATE-CORRUPT")
    return _kernel.Engine.load(to_json(plan), state["engine"], deltas=deltas)


def _spread(plan: Plan, threads: int, *, deltas: bool, on_invalid: OnInvalid, state: State | None) -> _kernel.Engine:
    """One cell per thread; where cells' outputs are not disjoint, one more engine merges them.

    A table with a PRIMARY KEY or a window is resolved before routing: only there are all its rows known. So it is with
    every table when faulty changes are set aside, for they must be found once and in order.
    """
    spread = distribute(plan, threads)
    first = tuple(t for t in plan.tables if t.primary_key or t.window or on_invalid == "quarantine")
    names = {t.name for t in first}
    plain = tuple(resolved(t) if t.name in names else t for t in spread.cell.tables)
    return _kernel.Engine.spread(
        to_json(replace(spread.cell, tables=plain)),
        threads,
        front=to_json(identity(*first)) if first else None,
        merge=None if spread.merge is None else to_json(spread.merge),
        deltas=deltas,
        parts=None if state is None else dict(state),
    )
