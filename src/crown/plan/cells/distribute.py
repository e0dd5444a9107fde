"""A plan over many cells: what each cell runs, and what combines their outputs where they are not disjoint.

Each cell runs the stages up to the first one that needs rows of several cells. A fold of sums, a DISTINCT or a top-k is
run in each cell first, on its own rows, and once more over the cells' outputs; the cells stop before any other stage.
The merge plan reads the cells' output as its only table and continues with the same stage ids. A cell without rows
contributes nothing, not even the row of a global aggregate over empty input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final
from typing import Literal as OneOf

from crown.errors import PlanError
from crown.ir.columns import columns_of_stage, stage_columns
from crown.ir.expression import Call, Column, Expression, Literal, makes_rows
from crown.ir.plan import (
    AggregateColumn,
    AggregateStage,
    Atom,
    BagStage,
    Binding,
    DistinctStage,
    MapColumn,
    MapStage,
    Node,
    Plan,
    Route,
    Routing,
    Stage,
    TopStage,
    TreeStage,
    Variable,
    WindowStage,
    sources_of,
)
from crown.ir.scalars import zero
from crown.ir.tables import Table, TableColumn
from crown.plan.cells.hypercube import Cube, choose_cube
from crown.plan.cells.locate import Parts, coordinate_columns, joint_stage
from crown.plan.explain.report import AtomLoad, Distribution
from crown.types import INT64

CELLS = "cells"  # the merge plan's table
_TOGETHER = "$cells"  # its first stage, unless that already has the id of the cells' last stage
_REPEATABLE: Final[dict[str, OneOf["sum", "min", "max"]]] = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True)
class Distributed:
    """`cell` has the routing. Without `merge` the view is the union of the cells' outputs."""

    cell: Plan
    merge: Plan | None


def can_be_spread(plan: Plan) -> bool:
    """Whether several cells can share the work; if not, one of them gets every row."""
    return choose_cube(plan, 2) is not None


def distribute(plan: Plan, cells: int) -> Distributed:
    """Distribute a plan over any number of cells."""
    if cells < 1:
        raise PlanError(f"cells must be at least 1, got {cells}", code="CROWN-PLAN-CELLS")
    if cells == 1:
        return Distributed(plan, None)
    return _spread(plan, cells, choose_cube(plan, cells))


def _spread(plan: Plan, cells: int, cube: Cube | None) -> Distributed:
    if cube is None:
        return Distributed(replace(plan, routing=_all_to_one(plan, cells)), None)
    routed = replace(plan, routing=_routing(cube, cells))
    cut = _find_cut(_tail(cube.parts), [coordinate_columns(cube.parts, dimension) for dimension in cube.dimensions])
    return Distributed(routed, None) if cut is None else _split(routed, cut)


def describe(plan: Plan, cells: int) -> Distribution:
    """Return what explain says of the distribution over `cells`."""
    if cells == 1:
        return Distribution(1, (), (), (), True, "one cell holds everything", ())
    cube = choose_cube(plan, cells)
    spread = _spread(plan, cells, cube)
    routing = spread.cell.routing
    assert routing is not None
    if cube is None:
        why = "no variable of the result can split a table, so one cell does all the work"
        return Distribution(cells, (), (), (), True, why, ())
    atoms = {s.id: s.atoms for s in plan.stages if isinstance(s, TreeStage | BagStage)}
    loads = []
    for route in routing.routes:
        pairs = zip(routing.shares, route.coordinates, strict=True)
        held = prod(share for share, coordinate in pairs if coordinate is not None)
        loads.append(AtomLoad(route.stage, atoms[route.stage][route.atom].name, cells // held, 1 / held))
    names = ", ".join(routing.dimensions)
    why = (
        f"{names}: part of every result row"
        if spread.merge is None
        else f"{names}: not part of the result, so several cells may produce the same row"
    )
    kinds = (
        [] if spread.merge is None else [type(s).__name__.removesuffix("Stage").lower() for s in spread.merge.stages]
    )
    return Distribution(
        cells, routing.dimensions, routing.shares, tuple(loads), spread.merge is None, why, tuple(kinds)
    )


def _routing(cube: Cube, cells: int) -> Routing:
    parts = cube.parts
    tree_of_bag = {atom.source: tree.id for tree in parts.trees for atom in tree.atoms}
    routes = []
    for stage in parts.plan.stages:
        if not isinstance(stage, TreeStage | BagStage):
            continue
        tree = stage.id if isinstance(stage, TreeStage) else tree_of_bag.get(stage.id, stage.id)
        for index, atom in enumerate(stage.atoms):
            if atom.source in parts.stages:
                continue
            coordinates = tuple(
                None if stage.id in parts.replicated else _coordinate(atom, dimension[tree])
                for dimension in cube.dimensions
            )
            routes.append(Route(stage.id, index, coordinates))
    names = tuple(" = ".join(dict.fromkeys(dimension.values())) for dimension in cube.dimensions)
    return Routing(cells, names, cube.shares, tuple(routes))


def _coordinate(atom: Atom, variable: str) -> Expression | None:
    return next((binding.expression for binding in atom.bindings if binding.variable == variable), None)


def _all_to_one(plan: Plan, cells: int) -> Routing:
    """Send every row to the same cell. The others must not be read: a global aggregate over empty input has a row."""
    stages = {stage.id for stage in plan.stages}
    routes = tuple(
        Route(stage.id, index, (Literal(0, INT64),))
        for stage in plan.stages
        if isinstance(stage, TreeStage | BagStage)
        for index, atom in enumerate(stage.atoms)
        if atom.source not in stages
    )
    return Routing(cells, ("one cell",), (cells,), routes)


def _tail(parts: Parts) -> list[Stage]:
    """Return the stages from where all result trees have met to the last one, in order."""
    first = joint_stage(parts)
    wanted = [parts.plan.stages[-1]]
    while wanted[0].id != first:
        wanted.insert(0, parts.stages[sources_of(wanted[0])[0]])
    return wanted


@dataclass(frozen=True)
class _Cut:
    """Where cells stop: the last stage as it runs in a cell, the merge's stages that then give the rows of that stage
    under its own id (none: the cells' rows added up are its rows), and the stages that follow.
    """

    last: Stage
    again: tuple[Stage, ...]
    after: tuple[Stage, ...]


def _find_cut(tail: list[Stage], places: Sequence[Mapping[str, str | None]]) -> _Cut | None:
    """Return the first stage that needs rows of several cells; None when the cells' outputs are disjoint.

    `places` are the columns that determine the cell of a stage's rows, for each dimension.
    """

    def is_exact(stage: Stage) -> bool:
        return all(place[stage.id] is not None for place in places)

    for position, stage in enumerate(tail):
        after = tuple(tail[position + 1 :])
        if is_exact(stage):
            continue
        match stage:
            case TopStage():
                prefilter = replace(stage, limit=stage.limit + stage.offset, offset=0, ranks=())
                return _Cut(prefilter, (replace(stage, input=_TOGETHER),), after)
            case TreeStage(mode="set") | DistinctStage():
                return _Cut(stage, (DistinctStage(stage.id, _TOGETHER),), after)
            case TreeStage(mode="ring") if not _only_summed(after):
                sums = [AggregateColumn(c.name, "sum", Column(c.name, c.type), c.type) for c in stage.ring]
                counts = frozenset(c.name for c in stage.ring)
                return _Cut(
                    replace(stage, always=False), _folded(stage.id, stage.outputs, sums, stage.always, counts), after
                )
            case AggregateStage() if all(a.function in _REPEATABLE and not a.distinct for a in stage.aggregates):
                again = [
                    AggregateColumn(a.name, _REPEATABLE[a.function], Column(a.name, a.type), a.type)
                    for a in stage.aggregates
                ]
                counts = frozenset(a.name for a in stage.aggregates if a.function == "count")
                return _Cut(
                    replace(stage, always=False), _folded(stage.id, stage.group, again, stage.always, counts), after
                )
            case AggregateStage() | WindowStage():
                return _Cut(tail[position - 1], (), (stage, *after))
    return None if is_exact(tail[-1]) else _Cut(tail[-1], (), ())


def _only_summed(after: Sequence[Stage]) -> bool:
    """Return whether partial sums just flow into a stage that adds them up."""
    for stage in after:
        plain = isinstance(stage, MapStage) and stage.filter is None
        if not plain or any(makes_rows(column.expression) for column in getattr(stage, "columns", ())):
            return isinstance(stage, AggregateStage) and all(a.function == "sum" for a in stage.aggregates)
    return False


def _folded(
    stage_id: str, group: tuple[str, ...], again: Sequence[AggregateColumn], always: bool, counts: frozenset[str]
) -> tuple[Stage, ...]:
    """Fold partial results. A sum over no cell at all is NULL, but for `counts` it must be 0."""
    if not always:
        return (AggregateStage(stage_id, _TOGETHER, group, tuple(again)),)
    fold = AggregateStage("$fold", _TOGETHER, group, tuple(again), always=True)
    columns = []
    for folded in again:
        value: Expression = Column(folded.name, folded.type)
        if folded.name in counts:
            value = Call("coalesce", (value, zero(folded.type)), folded.type)
        columns.append(MapColumn(folded.name, folded.type, folded.name not in counts, value))
    return (fold, MapStage(stage_id, fold.id, tuple(columns)))


def _split(plan: Plan, cut: _Cut) -> Distributed:
    known = columns_of_stage(cut.last, stage_columns(plan))
    moved = {stage.id for stage in cut.after}
    kept = [cut.last if stage.id == cut.last.id else stage for stage in plan.stages if stage.id not in moved]
    columns = tuple(TableColumn(column.name, column.type, column.nullable) for column in known)
    is_set = isinstance(cut.last, AggregateStage | DistinctStage) or (
        isinstance(cut.last, TreeStage) and cut.last.mode != "bag"
    )
    cell = replace(plan, stages=tuple(kept), columns=columns, bag=not is_set, order=())
    together = _together(_TOGETHER if cut.again else cut.last.id, known)
    merge = replace(plan, tables=(Table(CELLS, columns),), stages=(together, *cut.again, *cut.after), routing=None)
    return Distributed(cell, merge)


def _together(stage_id: str, columns: tuple[Variable, ...]) -> TreeStage:
    """Return the cells' outputs added up: a tree of one atom."""
    names = tuple(column.name for column in columns)
    atom = Atom(CELLS, CELLS, tuple(Binding(c.name, Column(c.name, c.type)) for c in columns))
    node = Node(CELLS, names, 0, None, (), connex=True)
    return TreeStage(stage_id, columns, (atom,), (node,), names, "bag")
