"""Hypergraphs: atoms as sets of variables. Acyclicity by GYO reduction, and connectivity.

Law: a hypergraph is acyclic iff repeatedly dropping variables that only one edge holds, and edges that lie
inside another edge, leaves at most one edge (Graham; Yu and Ozsoyoglu).
"""

from __future__ import annotations

from collections import Counter
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
        holders = Counter(variable for edge in rest.values() for variable in edge)
        reduced = {index: frozenset(v for v in edge if holders[v] > 1) for index, edge in rest.items()}
        for index in sorted(reduced):
            edge = reduced[index]
            if any(edge <= other for i, other in reduced.items() if i != index):
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
    group_of_variable: dict[str, int] = {}
    leader = list(range(len(edges)))

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    for index, edge in enumerate(edges):
        for variable in edge - dropped:
            other = group_of_variable.setdefault(variable, index)
            first, second = sorted((find(other), find(index)))
            leader[second] = first
    groups: dict[int, list[int]] = {}
    for index in range(len(edges)):
        groups.setdefault(find(index), []).append(index)
    return [tuple(group) for _, group in sorted(groups.items())]


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
