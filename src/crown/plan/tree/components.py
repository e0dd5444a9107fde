"""Existential components: atoms connected through variables that are not output.

A component can reach the rest of the query only through its interface, the output variables it holds. When
one of its atoms holds the whole interface, that atom can root the component's subtree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crown.plan.tree.hypergraph import Hyperedge, connected, union


@dataclass(frozen=True)
class Component:
    atoms: tuple[int, ...]
    interface: Hyperedge

    def is_guarded(self, edges: Sequence[Hyperedge]) -> bool:
        return any(self.interface <= edges[atom] for atom in self.atoms)


def components(edges: Sequence[Hyperedge], outputs: Hyperedge) -> tuple[Component, ...]:
    """Return the existential components; atoms that hold output variables only belong to none.

    >>> [c.atoms for c in components([frozenset("ab"), frozenset("bc"), frozenset("cd")], frozenset("cd"))]
    [(0, 1)]
    """
    return tuple(
        Component(group, union(edges[atom] for atom in group) & outputs)
        for group in connected(edges, without=outputs)
        if any(edges[atom] - outputs for atom in group)
    )
