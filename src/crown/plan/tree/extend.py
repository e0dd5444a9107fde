"""Least extension: the fewest variables that must join the output to make an acyclic conjunction free-connex.

Components don't share existential variables, so each unguarded one is repaired by itself. Only variables that two of
its atoms share can help: a variable of one atom alone only makes an interface larger. Of equally small
extensions one that keeps the result linear (by a key) is taken. Up to `EXACT` candidates all subsets
are tried, smallest first; above, or when the steps run out (one for each subset), all are taken and then dropped again
where the rest suffices, so that the extension is minimal, if perhaps not the smallest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb

from crown.plan.tree.components import Component, components
from crown.plan.tree.hypergraph import Hyperedge, union
from crown.plan.tree.keys import Dependency, has_linear_result
from crown.plan.tree.search_limit import Steps

EXACT = 12
STEPS = 4096


def least_extension(
    edges: Sequence[Hyperedge], outputs: Hyperedge, known: Sequence[Dependency], steps: Steps | None = None
) -> Hyperedge:
    """Return the variables to add to `outputs`; empty when the conjunction is free-connex already.

    >>> sorted(least_extension([frozenset("ab"), frozenset("bc"), frozenset("cd")], frozenset("ad"), ()))
    ['b', 'c']
    """
    steps = steps or Steps(STEPS)
    added: Hyperedge = frozenset()
    for component in components(edges, outputs):
        if not component.is_guarded(edges):
            added |= _repair(edges, outputs, component, known, steps)
    return added


def _repair(
    edges: Sequence[Hyperedge], outputs: Hyperedge, component: Component, known: Sequence[Dependency], steps: Steps
) -> Hyperedge:
    inside = [edges[atom] for atom in component.atoms]
    holders = Counter(variable for edge in inside for variable in edge - outputs)
    candidates = sorted(variable for variable, count in holders.items() if count > 1)

    def suffices(added: Hyperedge) -> bool:
        return all(part.is_guarded(inside) for part in components(inside, outputs | added))

    if len(candidates) > EXACT:
        steps.hopeless = True
        return _pruned(candidates, suffices)
    for size in range(1, len(candidates) + 1):
        if not steps.take(comb(len(candidates), size)):
            return _pruned(candidates, suffices)
        found = [frozenset(choice) for choice in combinations(candidates, size) if suffices(frozenset(choice))]
        if found:
            visible = union(inside) & outputs
            return min(found, key=lambda added: (not has_linear_result(visible | added, edges, known), sorted(added)))
    raise AssertionError("with all shared variables in the output every component is one atom")


def _pruned(candidates: Sequence[str], suffices: Callable[[Hyperedge], bool]) -> Hyperedge:
    """All shared variables, less those that turn out not to be needed: half of the rest at a time, then single ones."""
    kept = list(candidates)
    step = max(1, len(kept) // 2)
    while step:
        position = 0
        while position < len(kept):
            fewer = kept[:position] + kept[position + step :]
            if suffices(frozenset(fewer)):
                kept = fewer
            else:
                position += step
        step //= 2
    return frozenset(kept)
