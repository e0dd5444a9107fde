"""Hypergraphs: atoms as sets of variables. Acyclicity by GYO reduction, and connectivity.

Law: a hypergraph is acyclic iff repeatedly dropping variables that only one edge holds, and edges that lie
inside another edge, leaves at most one edge (Graham; Yu and Ozsoyoglu).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Hyperedge: TypeAlias = frozenset[str]


def cyclic_core(edges: Sequence[Hyperedge]) -> tuple[int, ...]:
    """Return the indices of the edges that GYO reduction can't remove; empty iff the hypergraph is acyclic.

    >>> triangle = [frozenset("ab"), frozenset("bc"), frozenset("ca"), frozenset("cd")]
    >>> cyclic_core(triangle)
    (0, 1, 2)
    >>> cyclic_core(triangle[1:])
    ()
    """
    rest = dict(enumerate(edges))
    changed = True
    while changed and len(rest) > 1:
        holders: dict[str, list[int]] = {}
        for index, edge in rest.items():
            for variable in edge:
                holders.setdefault(variable, []).append(index)
        reduced = {index: frozenset(v for v in edge if len(holders[v]) > 1) for index, edge in rest.items()}
        for index in sorted(reduced):
            edge = reduced[index]
            # Only what holds a variable of the edge can hold all of them.
            others = min((holders[v] for v in edge), key=len, default=list(reduced))
            if any(other in reduced and edge <= reduced[other] for other in others if other != index):
                del reduced[index]
        changed = reduced != rest
        rest = reduced
    return tuple(sorted(rest)) if len(rest) > 1 else ()


def is_acyclic(edges: Sequence[Hyperedge]) -> bool:
    return not cyclic_core(edges)


def connected(edges: Sequence[Hyperedge], without: Iterable[str] = ()) -> list[tuple[int, ...]]:
    """Return the groups of edges connected through variables other than `without`, in order of their first edge.

    >>> connected([frozenset("ab"), frozenset("cd"), frozenset("bc")], without="c")
    [(0, 2), (1,)]
    """
    dropped = frozenset(without)
    holders: dict[str, list[int]] = {}
    for index, edge in enumerate(edges):
        for variable in edge - dropped:
            holders.setdefault(variable, []).append(index)
    groups = []
    seen = [False] * len(edges)
    for first in range(len(edges)):
        if seen[first]:
            continue
        seen[first] = True
        group = [first]
        for index in group:  # (it grows)
            for variable in edges[index]:
                for other in holders.pop(variable, ()):
                    if not seen[other]:
                        seen[other] = True
                        group.append(other)
        groups.append(tuple(sorted(group)))
    return groups


def union(edges: Iterable[Hyperedge]) -> Hyperedge:
    return frozenset().union(*edges)


def cover_number(variables: Hyperedge, edges: Sequence[Hyperedge], exact: int = 2000) -> int:
    """Return the least number of edges that together hold all `variables` (the width of a bag).

    After `exact` steps it is what a greedy choice needs, which may be more.

    >>> cover_number(frozenset("abc"), [frozenset("ab"), frozenset("bc"), frozenset("ca")])
    2
    """
    useful = list(dict.fromkeys(edge & variables for edge in edges))
    useful = [edge for edge in useful if not any(edge < other for other in useful)]
    if union(useful) != variables:
        raise ValueError("the edges do not cover the variables")
    best = _greedy_cover(variables, useful)
    steps = 0
    stack = [(variables, 0)]
    while stack and steps < exact:
        rest, chosen = stack.pop()
        if not rest:
            best = chosen
        elif chosen + -(-len(rest) // max(len(edge & rest) for edge in useful)) < best:
            # Some edge has to hold the variable that the fewest hold.
            rarest = min(sorted(rest), key=lambda variable: sum(variable in edge for edge in useful))
            found = sorted((edge & rest for edge in useful if rarest in edge), key=len)
            stack += [(rest - edge, chosen + 1) for edge in found]
        steps += 1
    return best


def _greedy_cover(variables: Hyperedge, edges: Sequence[Hyperedge]) -> int:
    rest, number = variables, 0
    while rest:
        rest -= max(edges, key=lambda edge: len(edge & rest))
        number += 1
    return number
