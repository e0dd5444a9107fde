"""The cost of cells: how many of them a change goes to, the speed-up that remains, and how many to use.

A row goes to the cells of every atom over its table. Atoms that are sent by other columns send it elsewhere, so of a
self-join on `a.dst = b.src` half of the rows go to both of two cells, and each cell has three quarters of the work of
one. Two such sets overlap like random ones: of c cells, sets of n and m cover c(1 - (1 - n/c)(1 - m/c)).

The rule for their number: one, unless batches are large (`LARGE_BATCH`) and there are two cores for each cell (the JVM
and the Python workers need theirs), or the state needs the memory of several machines. Otherwise a second cell saves
less work than routing, copies and one more task in each batch cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from crown.ir.plan import BagStage, Plan, TreeStage
from crown.plan.cells.distribute import can_be_spread, distribute

LARGE_BATCH = 100_000


@dataclass(frozen=True)
class TableShare:
    """`copies` is the number of cells that a row of the table goes to, on average."""

    table: str
    copies: float


def table_shares(plan: Plan, cells: int) -> tuple[TableShare, ...]:
    """Return the share of each table, in the order of the plan."""
    if cells == 1 or not can_be_spread(plan):
        return tuple(TableShare(table.name, 1.0) for table in plan.tables)
    return routed_shares(distribute(plan, cells).cell)


def routed_shares(cell: Plan) -> tuple[TableShare, ...]:
    """Return the share of each table of a plan that runs in cells."""
    routing = cell.routing
    if routing is None:
        return tuple(TableShare(table.name, 1.0) for table in cell.tables)
    atoms = {stage.id: stage.atoms for stage in cell.stages if isinstance(stage, TreeStage | BagStage)}
    sets: dict[str, set[tuple[object, tuple[int, ...]]]] = {table.name: set() for table in cell.tables}
    for route in routing.routes:
        sets[atoms[route.stage][route.atom].source].add((route.coordinates, route.shares or routing.shares))
    shares = []
    for table, routes in sets.items():
        held = [_cells_held(coordinates, among, routing.cells) for coordinates, among in routes]
        shares.append(TableShare(table, routing.cells * (1 - prod(1 - count / routing.cells for count in held))))
    return tuple(shares)


def _cells_held(coordinates: object, shares: tuple[int, ...], cells: int) -> float:
    assert isinstance(coordinates, tuple)
    return cells / prod(share for share, given in zip(shares, coordinates, strict=True) if given is not None)


def gain(plan: Plan, cells: int) -> float:
    """The best possible speed-up over one cell."""
    return 1.0 if cells == 1 or not can_be_spread(plan) else _routed_gain(distribute(plan, cells).cell)


def _routed_gain(cell: Plan) -> float:
    """Return the speed-up of a plan that runs in cells: copies of changes are work that a single cell does not have."""
    updates = {table.name: table.updates for table in cell.tables}
    copies = sum(share.copies * updates[share.table] for share in routed_shares(cell))
    return cell.routing.cells * sum(updates.values()) / copies if cell.routing and copies else 1.0


def cost_lines(plan: Plan, cells: int) -> dict[str, list[str]]:
    """Return what explain says of the cost of cells, by label; nothing of one cell."""
    if cells == 1:
        return {}
    if not can_be_spread(plan):
        return {"suggested": ["1 cell: the others would be idle"]}
    distribution = distribute(plan, cells)
    return routed_cost_lines(distribution.cell, merged=distribution.merge is not None)


def routed_cost_lines(cell: Plan, *, merged: bool) -> dict[str, list[str]]:
    """Return the same of a plan that runs in cells, of one view or several."""
    if cell.routing is None:
        return {}
    cells, shares = cell.routing.cells, routed_shares(cell)
    copies = [f"{share.table}: {share.copies:.3g} of {cells} cells on average" for share in shares]
    costs = f"{cells} cells are at most {_routed_gain(cell):.2g} times as fast as one"
    if merged:
        costs += "; another stage merges their outputs, with its own shuffle and state in each batch"
    lines = {"a change goes to": copies, "costs": [costs], "suggested": [SUGGESTION]}
    copied = [share.table for share in shares if share.copies > 0.99 * cells]
    if 2 * len(copied) > len(shares):
        lines["warning"] = [
            f"{', '.join(copied)} {'is' if len(copied) == 1 else 'are'} copied to every cell: more cells take more "
            "memory and are hardly faster"
        ]
    return lines


SUGGESTION = (
    f"1 cell, unless batches have more than {LARGE_BATCH:,} changes and there are two cores for each cell, or the "
    "state needs several machines"
)
