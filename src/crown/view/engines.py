"""The engine that runs a plan: a single one, or one cell per thread behind a router. Both behave the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from crown import _kernel
from crown.errors import StateError
from crown.ir.functions import Declared
from crown.ir.plan import Plan
from crown.ir.serial import to_json
from crown.plan.cells.distribute import can_be_spread
from crown.plan.cells.layout import Layout, lay_out
from crown.plan.cells.views_layout import ProjectLayout
from crown.plan.passthrough import passthrough

OnInvalid: TypeAlias = Literal["raise", "quarantine"]
State: TypeAlias = Mapping[str, list[bytes]]
Functions: TypeAlias = Mapping[str, Declared]


def read_all(stream: Any) -> pa.Table:
    """Read the kernel's stream into a table. (`pyarrow.table` would import pandas first, which takes a second.)"""
    return pa.RecordBatchReader.from_stream(stream).read_all()


def layout_of(plan: Plan, threads: int, on_invalid: OnInvalid) -> Layout | None:
    """How the view runs over one cell per thread; None where one engine does everything."""
    # Cells without rows would still show the row of a global aggregate.
    if threads == 1 or not can_be_spread(plan):
        return None
    return lay_out(plan, threads, resolve_all=on_invalid == "quarantine")


def open_engine(
    plan: Plan, layout: Layout | None, *, deltas: bool, state: State | None = None, functions: Functions | None = None
) -> _kernel.Engine:
    """Return an empty engine, or the one that was saved as `state`."""
    known = called(functions or {})
    if layout is not None:
        return _spread(layout, deltas=deltas, state=state, functions=known)
    if state is None:
        return _kernel.Engine(to_json(plan), deltas=deltas, functions=known)
    if "engine" not in state:
        raise StateError("the saved view has no part 'engine'", code="CROWN-STATE-CORRUPT")
    return _kernel.Engine.load(to_json(plan), state["engine"], deltas=deltas, functions=known)


def open_project(
    project: Plan, layout: ProjectLayout | None, *, deltas: bool, state: State | None, functions: Functions
) -> _kernel.Engine:
    """Return the engine of many views, empty or as it was saved."""
    if layout is None:
        return open_engine(project, None, deltas=deltas, state=state, functions=functions)
    return _kernel.Engine.spread(
        to_json(layout.cell),
        layout.cells,
        front=to_json(layout.front),
        merge=None if layout.merge is None else to_json(layout.merge),
        views=list(layout.views),
        deltas=deltas,
        parts=None if state is None else dict(state),
        functions=called(functions),
    )


def prepare(
    engine: _kernel.Engine,
    project: Plan,
    *,
    functions: Functions,
    progress: Callable[[int, int], object] | None = None,
) -> _kernel.Prepared | None:
    """Build what is new in a project while the engine goes on, for `replan`; None if that has to do everything."""
    return engine.prepare(to_json(project), functions=called(functions), progress=progress)


def replan(
    engine: _kernel.Engine,
    project: Plan,
    layout: ProjectLayout | None,
    *,
    empty: Sequence[str],
    fresh: bool,
    deltas: bool,
    functions: Functions,
    progress: Callable[[int, int], object] | None = None,
    prepared: _kernel.Prepared | None = None,
) -> None:
    """Switch an engine to other views. `empty` are tables that never had a row; `fresh` means that no table had one."""
    known = called(functions)
    if layout is None:
        engine.replan(to_json(project), empty=empty, fresh=fresh, functions=known, progress=progress, prepared=prepared)
        return
    engine.replan(
        to_json(layout.cell),
        cells=layout.cells,
        front=to_json(layout.front),
        merge=None if layout.merge is None else to_json(layout.merge),
        views=list(layout.views),
        deltas=deltas,
        empty=empty,
        fresh=fresh,
        functions=known,
        progress=progress,
    )


def called(functions: Functions) -> dict[str, Callable[[Any], Any]]:
    """Return the functions as the kernel calls them."""
    return {name: function.evaluate for name, function in functions.items()}


def check_plan(plan: Plan, functions: Functions) -> None:
    """Let the kernel validate a plan of which only the layout is run."""
    open_engine(plan, None, deltas=False, functions=functions)


def _spread(
    layout: Layout, *, deltas: bool, state: State | None, functions: dict[str, Callable[[Any], Any]]
) -> _kernel.Engine:
    """Return one cell per thread, with a resolver before routing and a merge after it where the layout has them."""
    first = tuple(resolver.table for resolver in layout.resolvers)
    return _kernel.Engine.spread(
        to_json(layout.cell),
        layout.cells,
        front=to_json(passthrough(*first)) if first else None,
        merge=None if layout.merge is None else to_json(layout.merge),
        deltas=deltas,
        parts=None if state is None else dict(state),
        functions=functions,
    )
