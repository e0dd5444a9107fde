"""The layout of a plan of many views over several cells.

Each view is laid out separately, by the variables that suit it; stages that read the same rows in the same cells are
then merged. A row goes once to a cell, with the mask of all atoms of all views that it serves there. Views whose cells'
outputs are not disjoint are completed after the cells, and those that can't be distributed run there entirely.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from crown.ir.plan import NamedResult, Plan, Routing, Stage, TreeStage
from crown.ir.serial import decode, encode
from crown.ir.tables import Table, resolved
from crown.plan.cells.distribute import CELLS, can_be_spread
from crown.plan.cells.layout import lay_out
from crown.plan.cells.routes import all_routes, routes_of
from crown.plan.combine_views import Shared, below, results, sources, view_plan
from crown.plan.passthrough import passthrough


@dataclass(frozen=True)
class ProjectLayout:
    """`front` resolves all tables and keeps their rows; `cell` runs in each cell; `merge` reads the cells' outputs."""

    cells: int
    views: tuple[str, ...]
    front: Plan
    cell: Plan
    merge: Plan | None


def lay_out_project(project: Plan, cells: int) -> ProjectLayout:
    """Lay out a plan of many views over cells."""
    inner, merged = Shared(), Shared(prefix="$merged.")
    shown: list[NamedResult] = []
    completed: list[NamedResult] = []
    handed_over: dict[str, NamedResult] = {}
    for result in results(project):
        plan = view_plan(project, result.name)
        if not can_be_spread(plan):
            last = merged.add(plan.stages)[plan.stages[-1].id]
            completed.append(replace(result, stage=last))
            continue
        layout = lay_out(plan, cells)
        last = inner.add(layout.cell.stages, routes_of(layout.cell))[layout.cell.stages[-1].id]
        if layout.merge is None:
            shown.append(replace(result, stage=last))
            continue
        handed_over[last] = NamedResult(last, last, layout.cell.columns, layout.cell.bag)
        stages = tuple(_read_cells(stage, last) for stage in layout.merge.stages)
        end = merged.add(stages)[stages[-1].id]
        completed.append(replace(result, stage=end))
    tables = {table.name: resolved(table) for table in project.tables}
    for last, handed in handed_over.items():
        tables[_table_name(last)] = Table(_table_name(last), handed.columns)
    cell = _plan(project, inner, tables, (*shown, *handed_over.values()))
    routes = all_routes(inner)
    routing = Routing(cells, ("views",), (cells,), routes)
    merge = _plan(project, merged, tables, tuple(completed)) if completed else None
    names = tuple(result.name for result in results(project))
    return ProjectLayout(cells, names, _front(project), replace(cell, routing=routing), merge)


def stages_of(layout: ProjectLayout, view: str) -> set[str]:
    """Return the stages that a view reads, after the cells and in them."""
    for plan in (layout.merge, layout.cell):
        result = next((r for r in (plan.results or ()) if r.name == view), None) if plan is not None else None
        if plan is not None and result is not None:
            found = below(plan, [result.stage])
            read = {source for stage in plan.stages if stage.id in found for source in sources(stage)}
            handed = [source.removeprefix(f"{CELLS}:") for source in read if source.startswith(f"{CELLS}:")]
            return found | below(layout.cell, handed)
    return set()


def project_layout_to_json(layout: ProjectLayout) -> str:
    """Return the layout as JSON text."""
    return json.dumps(encode(layout), allow_nan=False)


def project_layout_from_json(text: str) -> ProjectLayout:
    """Return the layout that `project_layout_to_json` wrote; raises ValueError or TypeError for anything else."""
    layout = decode(ProjectLayout, json.loads(text))
    assert isinstance(layout, ProjectLayout)
    return layout


def _table_name(view: str) -> str:
    return f"{CELLS}:{view}"


def _read_cells(stage: Stage, view: str) -> Stage:
    """Return a stage of a merge that reads the cells' view by its own name."""
    if not isinstance(stage, TreeStage):
        return stage
    atoms = tuple(replace(a, source=_table_name(view)) if a.source == CELLS else a for a in stage.atoms)
    return replace(stage, atoms=atoms)


def _plan(project: Plan, shared: Shared, tables: dict[str, Table], shown: tuple[NamedResult, ...]) -> Plan:
    read = {source for stage in shared.stages for source in sources(stage)}
    used = tuple(table for name, table in tables.items() if name in read)
    return Plan(project.sql, used, tuple(shared.stages), (), bag=False, results=shown)


def _front(project: Plan) -> Plan:
    """Return one tree for each table, which keeps its rows."""
    if not project.tables:
        return Plan("", (), (), (), bag=False, results=())
    plan = passthrough(*project.tables)
    named = tuple(replace(stage, id=f"$table.{sources(stage)[0]}") for stage in plan.stages)
    return replace(plan, stages=named)
