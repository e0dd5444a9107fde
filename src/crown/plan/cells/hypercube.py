"""HyperCube shares: the number of parts of each dimension that minimises the load of the fullest cell.

A row of an atom goes to one coordinate of each dimension whose variable it holds and to all of the others, so of an
atom each cell gets size / (product of the shares of its dimensions). Sizes are the tables' expected updates; the
shares' product is the number of cells. All factorisations over the `DIMENSIONS` most useful dimensions are compared, or
over fewer dimensions when there would be more than `FACTORISATIONS` of them. The selectivity of an atom's condition is
not known, so it has little weight (`FILTERED`): among equals, such atoms are replicated first.

The number of distinct values of a variable is unknown, but join variables and parts of primary keys tend to have many,
and descriptive columns (a year, a nation's name) few, which would leave cells idle: the latter are chosen only if there
is nothing else. Dimensions that determine the cell of a result (output variables) are preferred, since the cells'
outputs are then disjoint, unless others reduce the load to less than `WORTH_A_MERGE` of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, prod

from crown.ir.expression import Column
from crown.ir.plan import Atom, BagStage, Plan, RecursionStage, TreeStage
from crown.plan.cells.locate import Dimension, Parts, coordinate_columns, dimensions, feeds_replicated, parts_of

DIMENSIONS = 6
FACTORISATIONS = 4000
_LARGEST_PRIME = 1000
WORTH_A_MERGE = 0.6
FILTERED = 0.9


@dataclass(frozen=True)
class Cube:
    """The chosen dimensions, each with a share of 2 or more, and the load of one cell."""

    parts: Parts
    dimensions: tuple[Dimension, ...]
    shares: tuple[int, ...]
    load: float


def choose_cube(plan: Plan, cells: int) -> Cube | None:
    """Return the best cube; None when the plan can't be spread over cells."""
    parts = parts_of(plan)
    if not parts.trees or feeds_replicated(parts) or _recurses(parts):
        return None
    offered = dimensions(parts)
    offered = [dimension for dimension in offered if _has_many_values(parts, dimension)] or offered
    final = plan.stages[-1].id
    telling = [dimension for dimension in offered if coordinate_columns(parts, dimension)[final] is not None]
    best_telling = _best(parts, telling, cells)
    best = _best(parts, offered, cells)
    if best is None or best_telling is None:
        return best
    return best if best.load < WORTH_A_MERGE * best_telling.load else best_telling


def _recurses(parts: Parts) -> bool:
    """Whether a recursion is part of the result: its rows may come from rows in any cell."""
    stages = parts.plan.stages
    return any(isinstance(stage, RecursionStage) and stage.id not in parts.replicated for stage in stages)


def _has_many_values(parts: Parts, dimension: Dimension) -> bool:
    """Whether in each tree the variable joins atoms or is part of a table's primary key."""
    keys = {table.name: set(table.primary_key) for table in parts.plan.tables}
    for tree in parts.trees:
        variable = dimension[tree.id]
        inside = [s.atoms for a in tree.atoms if isinstance(s := parts.stages.get(a.source), BagStage)]
        atoms = [atom for group in (tree.atoms, *inside) for atom in group]
        holders = [atom for atom in atoms if variable in atom.variables]
        columns = [(a.source, b.expression) for a in holders for b in a.bindings if b.variable == variable]
        in_key = any(isinstance(e, Column) and e.name in keys.get(source, ()) for source, e in columns)
        if len(holders) < 2 and not in_key:
            return False
    return True


def _best(parts: Parts, offered: Sequence[Dimension], cells: int) -> Cube | None:
    sizes = {table.name: table.updates for table in parts.plan.tables}
    useful = sorted(offered, key=lambda dimension: -_size_held(parts, dimension, sizes))[: _places(cells)]
    best: Cube | None = None
    for shares in _factorisations(cells, len(useful)):
        chosen = [(d, s) for d, s in zip(useful, shares, strict=True) if s > 1]
        load = _load(parts, chosen, sizes)
        if best is None or load < best.load:
            best = Cube(parts, tuple(d for d, _ in chosen), tuple(s for _, s in chosen), load)
    return best


def _places(cells: int) -> int:
    """Over how many dimensions the factorisations of a number of cells can all be compared."""
    exponents = Counter(_prime_factors(cells)).values()

    def ways(places: int) -> int:
        return prod(comb(exponent + places - 1, places - 1) for exponent in exponents)

    return next((places for places in range(DIMENSIONS, 1, -1) if ways(places) <= FACTORISATIONS), 1)


def _prime_factors(number: int) -> list[int]:
    """Return the prime factors; the remainder after dividing by the small ones counts as one.

    >>> _prime_factors(12)
    [2, 2, 3]
    """
    found = []
    for prime in range(2, _LARGEST_PRIME):
        while number % prime == 0:
            found.append(prime)
            number //= prime
    return found + [number] * (number > 1)


@cache
def _divisors(number: int) -> tuple[int, ...]:
    found = {1}
    for prime in _prime_factors(number):
        found |= {divisor * prime for divisor in found}
    return tuple(sorted(found))


def _factorisations(number: int, places: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write the number as an ordered product of so many factors.

    >>> list(_factorisations(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if places == 0:
        if number == 1:
            yield ()
        return
    for factor in _divisors(number) if places > 1 else [number]:
        for rest in _factorisations(number // factor, places - 1):
            yield (factor, *rest)


def result_atoms(parts: Parts) -> Iterator[tuple[TreeStage, str, int]]:
    """Yield the atoms over tables that are sent by variables: (result tree, stage, index), bags included."""
    for tree in parts.trees:
        for index, atom in enumerate(tree.atoms):
            source = parts.stages.get(atom.source)
            if isinstance(source, BagStage):
                over_tables = (i for i, inner in enumerate(source.atoms) if inner.source not in parts.stages)
                yield from ((tree, source.id, position) for position in over_tables)
            elif source is None:
                yield tree, tree.id, index


def _sized_atoms(parts: Parts, sizes: dict[str, float]) -> Iterator[tuple[TreeStage, Atom, float]]:
    for tree, stage_id, index in result_atoms(parts):
        stage = parts.stages[stage_id]
        assert isinstance(stage, TreeStage | BagStage)
        atom = stage.atoms[index]
        yield tree, atom, sizes[atom.source] * (1.0 if atom.filter is None else FILTERED)


def _size_held(parts: Parts, dimension: Dimension, sizes: dict[str, float]) -> float:
    return sum(size for tree, atom, size in _sized_atoms(parts, sizes) if dimension[tree.id] in atom.variables)


def _load(parts: Parts, chosen: Sequence[tuple[Dimension, int]], sizes: dict[str, float]) -> float:
    """The load of one cell. Views that every cell computes in full are left out: they always cost the same."""
    load = 0.0
    for tree, atom, size in _sized_atoms(parts, sizes):
        shares = [share for dimension, share in chosen if dimension[tree.id] in atom.variables]
        load += size / prod(shares)
    return load
