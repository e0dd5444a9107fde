"""Bags for cyclic conjunctions: a generalised hypertree decomposition whose bags partition the atoms.

Least width first (the most atoms needed to cover the variables of a bag; an atom covers what its row determines by
primary keys, so a bag that one atom determines is linear), then the fewest atoms in bags, since an
atom outside them stays join-free, then the fewest variables in the largest bag. An atom of the cyclic core that lies
inside a bag belongs to it: it can only make the bag smaller. Atoms that GYO reduction removes are in no bag, unless
a set of variables has to be covered (the correlation of a condition that no single atom holds).

Best-first search over partitions: only merging two connected blocks of the cyclic core can help, and neither
width nor atoms in bags ever falls, so the first acyclic partition taken from the queue is the best. When the steps run
out (one for each atom of each partition), the rest of the core becomes one bag.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

from crown.plan.tree.hypergraph import Hyperedge, cover_number, cyclic_core, union
from crown.plan.tree.keys import Dependency, closure
from crown.plan.tree.search_limit import Steps

STEPS = 10_000

Partition: TypeAlias = tuple[tuple[int, ...], ...]


def find_bags(
    edges: Sequence[Hyperedge],
    covered: Sequence[Hyperedge] = (),
    known: Sequence[Dependency] = (),
    steps: Steps | None = None,
) -> Partition:
    """The atoms of each block, in order; blocks of more than one atom are bags. Each set in `covered` lies in a block.

    >>> find_bags([frozenset("ab"), frozenset("bc"), frozenset("ca"), frozenset("cd")])
    ((0, 1, 2), (3,))
    """
    steps = steps or Steps(STEPS)
    start: Partition = tuple((atom,) for atom in range(len(edges)))
    core = frozenset(cyclic_core(edges))
    queue: list[tuple[tuple[int, int, int], Partition]] = [(_price(start, edges, known), start)]
    seen = {start}
    while queue:
        _, partition = heapq.heappop(queue)
        blocks = [union(edges[atom] for atom in block) for block in partition]
        lacking = _lacking(blocks, covered)
        if not lacking:
            return partition
        if steps.cut:
            return _merge(partition, lacking)
        connected_pairs = [pair for pair in combinations(lacking, 2) if blocks[pair[0]] & blocks[pair[1]]]
        for pair in connected_pairs or combinations(lacking, 2):
            merged = _absorb(_merge(partition, pair), edges, core)
            if merged not in seen and steps.take(len(edges)):
                seen.add(merged)
                heapq.heappush(queue, (_price(merged, edges, known), merged))
    raise AssertionError("one bag of all atoms is always acyclic and covers everything")


def _lacking(blocks: Sequence[Hyperedge], covered: Sequence[Hyperedge]) -> tuple[int, ...]:
    """Return the blocks among which some have to be merged: the cyclic core, or those that hold an uncovered set."""
    for wanted in covered:
        if not any(wanted <= block for block in blocks):
            return _between(blocks, wanted)
    return cyclic_core(blocks)


def _between(blocks: Sequence[Hyperedge], wanted: Hyperedge) -> tuple[int, ...]:
    """Blocks that GYO reduction leaves when the wanted variables count as shared: those that connect them."""
    rest = set(range(len(blocks)))
    changed = True
    while changed:
        changed = False
        for index in sorted(rest):
            others = union(blocks[i] for i in rest if i != index)
            useful = blocks[index] & (others | wanted)
            if len(rest) > 1 and any(useful <= blocks[i] for i in rest if i != index):
                rest.remove(index)
                changed = True
                break
    return tuple(sorted(rest))


def _merge(partition: Partition, blocks: Sequence[int]) -> Partition:
    merged = tuple(sorted(atom for block in blocks for atom in partition[block]))
    rest = [block for index, block in enumerate(partition) if index not in blocks]
    return tuple(sorted([*rest, merged]))


def _absorb(partition: Partition, edges: Sequence[Hyperedge], core: frozenset[int]) -> Partition:
    """Blocks of the core that lie inside a bag join it."""
    held = {block: union(edges[atom] for atom in block) for block in partition}
    bags = sorted((block for block in partition if len(block) > 1), key=lambda block: (-len(held[block]), block))
    members = {bag: list(bag) for bag in bags}
    for block in sorted(partition, key=lambda block: (len(held[block]), block)):
        home = next((bag for bag in bags if bag in members and bag != block and held[block] <= held[bag]), None)
        if home is not None and core.issuperset(block):
            members[home] += members.pop(block, list(block))
        else:
            members.setdefault(block, list(block))
    return tuple(sorted(tuple(sorted(atoms)) for atoms in members.values()))


def _price(partition: Partition, edges: Sequence[Hyperedge], known: Sequence[Dependency]) -> tuple[int, int, int]:
    bags = [block for block in partition if len(block) > 1]
    width = max((bag_width(bag, edges, known) for bag in bags), default=1)
    return (width, sum(map(len, bags)), max((len(union(edges[atom] for atom in bag)) for bag in bags), default=0))


def bag_width(bag: Sequence[int], edges: Sequence[Hyperedge], known: Sequence[Dependency] = ()) -> int:
    inside = [edges[atom] for atom in bag]
    return cover_number(union(inside), [closure(edge, known) for edge in inside])


def binding_order(edges: Sequence[Hyperedge]) -> tuple[str, ...]:
    """Return the order in which a bag's join binds its variables: next to those bound, then the most shared."""
    variables = sorted(union(edges))
    degree = {variable: sum(variable in edge for edge in edges) for variable in variables}
    order: list[str] = []
    while len(order) < len(variables):
        bound = frozenset(order)
        near = union(edge for edge in edges if edge & bound)
        order.append(min((v for v in variables if v not in bound), key=lambda v: (v not in near, -degree[v], v)))
    return tuple(order)
