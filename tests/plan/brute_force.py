"""Free-connex trees by definition: every rooted tree over the nodes a query may have, tested property by property.

Independent of `crown.plan.tree.trees`: no recursion over components, no normal form while building; the normal form is
tested at the end, as it is stated (no subtree can be hung higher).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Hyperedge = frozenset[str]


@dataclass(frozen=True)
class Tree:
    """`sets[i]` are the variables of node i; the first nodes are the atoms, in order, the others are generalised."""

    sets: tuple[Hyperedge, ...]
    parents: tuple[int | None, ...]
    atoms: int

    def children(self, node: int) -> list[int]:
        return [i for i, parent in enumerate(self.parents) if parent == node]

    def canonical(self) -> object:
        """The same for trees that differ only in the order of children."""

        def visit(node: int) -> object:
            below = sorted((visit(child) for child in self.children(node)), key=repr)
            return (node if node < self.atoms else None, tuple(sorted(self.sets[node])), tuple(below))

        return visit(self.parents.index(None))


def is_connected_for_each_variable(tree: Tree) -> bool:
    """The connect property: a variable's nodes have exactly one top, a node whose parent lacks the variable."""
    for variable in frozenset().union(*tree.sets):
        tops = [
            node
            for node, held in enumerate(tree.sets)
            if variable in held and (tree.parents[node] is None or variable not in tree.sets[tree.parents[node]])  # type: ignore[index]
        ]
        if len(tops) != 1:
            return False
    return True


def is_guarded(tree: Tree) -> bool:
    return all(
        tree.sets[node] <= tree.sets[child]
        for node in range(tree.atoms, len(tree.sets))
        for child in tree.children(node)
    )


def generalised_are_above(tree: Tree) -> bool:
    return all(
        (parent := tree.parents[node]) is None or parent >= tree.atoms for node in range(tree.atoms, len(tree.sets))
    )


def is_covered(tree: Tree) -> bool:
    """Every leaf is an atom."""
    return all(tree.children(node) for node in range(tree.atoms, len(tree.sets)))


def is_connex(tree: Tree, outputs: Hyperedge) -> bool:
    """Some connected set of nodes with the root holds all outputs, and its keys are outputs only."""
    root = tree.parents.index(None)
    reached, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        reached.add(node)
        waiting += [child for child in tree.children(node) if tree.sets[child] & tree.sets[node] <= outputs]
    return outputs <= frozenset().union(*(tree.sets[node] for node in reached))


def all_properties(tree: Tree, outputs: Hyperedge) -> bool:
    return (
        is_covered(tree)
        and is_guarded(tree)
        and generalised_are_above(tree)
        and is_connected_for_each_variable(tree)
        and is_connex(tree, outputs)
    )


def every_tree(edges: Sequence[Hyperedge]) -> Iterator[Tree]:
    """All trees of a full query with the properties of definition 3.2, generalised nodes with two children or more."""
    shared = sorted({a & b for a, b in combinations(edges, 2)}, key=sorted)
    for number in range(min(len(shared), len(edges) - 1) + 1):
        for chosen in combinations(shared, number):
            sets = (*edges, *chosen)
            for parents in _parents(sets, len(edges)):
                tree = Tree(sets, parents, len(edges))
                many = all(len(tree.children(node)) > 1 for node in range(len(edges), len(sets)))
                if many and all_properties(tree, frozenset().union(*edges)) and is_normal(tree):
                    yield tree


def _parents(sets: Sequence[Hyperedge], atoms: int) -> Iterator[tuple[int | None, ...]]:
    """Every choice of a parent for each node that can still have the connect property, whose trees are exactly those in
    which the sizes of all keys add up to the number of nodes less one over all variables.
    """
    wanted = sum(sum(v in held for held in sets) - 1 for v in frozenset().union(*sets))
    options: list[list[int | None]] = []
    for node, held in enumerate(sets):
        above = [p for p in range(len(sets)) if p != node and (p < atoms or sets[p] <= held)]
        options.append([None, *(p for p in above if node < atoms or p >= atoms)])
    most = [max((len(sets[n] & sets[p]) for p in of if p is not None), default=0) for n, of in enumerate(options)]
    left = [sum(most[node:]) for node in range(len(sets) + 1)]

    def choose(chosen: tuple[int | None, ...], size: int) -> Iterator[tuple[int | None, ...]]:
        node = len(chosen)
        if size + left[node] < wanted:
            return
        if node == len(sets):
            if None in chosen and _reaches_root(chosen):
                yield chosen
            return
        for parent in options[node]:
            if parent is not None:
                yield from choose((*chosen, parent), size + len(sets[node] & sets[parent]))
            elif None not in chosen:
                yield from choose((*chosen, None), size)

    return choose((), 0)


def _reaches_root(parents: Sequence[int | None]) -> bool:
    for node in range(len(parents)):
        current: int | None = node
        for _ in range(len(parents)):
            current = None if current is None else parents[current]
        if current is not None:
            return False
    return True


def is_normal(tree: Tree) -> bool:
    """No subtree could hang higher: no key lies in a relation, or is all of a generalised node, above the parent."""
    for node, parent in enumerate(tree.parents):
        above = None if parent is None else tree.parents[parent]
        while parent is not None and above is not None:
            key, held = tree.sets[node] & tree.sets[parent], tree.sets[above]
            if (key <= held) if above < tree.atoms else (key == held):
                return False
            above = tree.parents[above]
    return True
