"""The routes of atoms' rows to cells, by stage and atom."""

from __future__ import annotations

from dataclasses import replace

from crown.ir.plan import Plan, Route
from crown.plan.combine_views import Shared


def routes_of(cell: Plan) -> dict[tuple[str, int], Route]:
    """Return the route of each atom of a cell's plan; none if it has one cell."""
    if cell.routing is None:
        return {}
    return {(way.stage, way.atom): replace(way, shares=cell.routing.shares) for way in cell.routing.routes}


def all_routes(shared: Shared) -> tuple[Route, ...]:
    """Return the routes of all stages' atoms, in the order of the stages and atoms."""
    places = {stage.id: place for place, stage in enumerate(shared.stages)}
    numbered = sorted(shared.routes.items(), key=lambda item: (places[item[0][0]], item[0][1]))
    return tuple(way for _, way in numbered)
