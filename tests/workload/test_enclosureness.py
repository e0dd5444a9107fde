"""Enclosureness against brute force on random logs, and the values that the paper states."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from crown.ir.plan import Node
from crown.workload.enclosureness import (
    DisjointIntervals,
    enclosureness,
    tree_enclosureness,
    tree_tuple_enclosureness,
    tuple_enclosureness,
)
from crown.workload.lifespan import AFTER, BEFORE, Lifespans, concatenate, lifespans

Interval = tuple[int, int]


def node(name: str, atom: int | None, parent: int | None) -> Node:
    return Node(name=name, variables=("x",), atom=atom, parent=parent, key=("x",), connex=True)


def spans(intervals: list[Interval]) -> Lifespans:
    return Lifespans(np.array([s for s, _ in intervals], np.int64), np.array([e for _, e in intervals], np.int64))


def intervals(value: Lifespans) -> list[Interval]:
    return list(zip(value.start.tolist(), value.end.tolist(), strict=True))


def most_disjoint(candidates: list[Interval]) -> int:
    """By trying all subsets; intervals are closed, so touching ones are not disjoint."""
    distinct = sorted(set(candidates))
    for size in range(len(distinct), 0, -1):
        for chosen in itertools.combinations(distinct, size):
            if all(a[1] < b[0] for a, b in itertools.pairwise(chosen)):
                return size
    return 0


def oracle_lifespans(updates: list[tuple[int, int]]) -> list[Interval]:
    """Row by row with plain counters; `updates` are (row, +1 or -1) in order."""
    result = []
    for row in sorted({row for row, _ in updates}):
        own = [(moment, change) for moment, (r, change) in enumerate(updates) if r == row]
        lowest = min(itertools.accumulate(change for _, change in own))
        copies = max(0, -lowest)
        start = BEFORE if copies else None
        for moment, change in own:
            copies += change
            if copies > 0 and start is None:
                start = moment
            elif copies == 0 and start is not None:
                result.append((start, moment))
                start = None
        if start is not None:
            result.append((start, AFTER))
    return result


def oracle_effective(own: Interval, below: list[Interval]) -> list[Interval]:
    start, end = own
    ends = [e for _, e in below if e > start]
    starts = [s for s, _ in below if s < end]
    return [(start, min([end, *ends])), (max([start, *starts]), end)]


def random_log(generator: random.Random, length: int, rows: int) -> Lifespans:
    updates = [(generator.randrange(rows), generator.choice((1, 1, -1))) for _ in range(length)]
    codes, change = np.array(updates, np.int64).T
    value = lifespans(codes, change, np.arange(length))
    assert sorted(intervals(value)) == sorted(oracle_lifespans(updates))
    return value


@pytest.mark.parametrize("seed", range(150))
def test_oracle_sequence(seed: int) -> None:
    generator = random.Random(seed)
    value = random_log(generator, generator.randrange(1, 14), generator.randrange(1, 6))
    got = tuple_enclosureness(value).tolist()
    all_spans = intervals(value)
    expected = [
        most_disjoint([other for other in all_spans if own[0] <= other[0] and other[1] <= own[1] and other != own])
        for own in all_spans
    ]
    assert got == expected, f"seed {seed}: {all_spans}"
    assert enclosureness(value) == max(1.0, sum(expected) / len(expected))


@pytest.mark.parametrize("seed", range(150))
def test_oracle_tree(seed: int) -> None:
    generator = random.Random(seed)
    count = generator.randrange(2, 5)
    nodes = [node("n0", None if generator.random() < 0.4 else 0, None)]
    atoms = 0 if nodes[0].atom is None else 1
    while atoms < count:
        nodes.append(node(f"n{len(nodes)}", atoms, generator.randrange(len(nodes))))
        atoms += 1
    length = generator.randrange(1, 12)
    updates = [
        (generator.randrange(count), generator.randrange(2), generator.choice((1, 1, -1))) for _ in range(length)
    ]
    by_atom: dict[int, Lifespans] = {}
    for atom in range(count):
        own = [(row, change, moment) for moment, (a, row, change) in enumerate(updates) if a == atom]
        columns = np.array(own, np.int64).reshape(-1, 3).T
        by_atom[atom] = lifespans(*columns)

    def below(position: int) -> list[int]:
        children = [c for c, n in enumerate(nodes) if n.parent == position]
        return children + [deeper for child in children for deeper in below(child)]

    total, tuples = 0, 0
    got = tree_tuple_enclosureness(nodes, by_atom)
    for position, current in enumerate(nodes):
        if current.atom is None:
            continue
        effective = []
        for lower in below(position):
            deeper = [span for d in below(lower) for span in intervals(by_atom[nodes[d].atom or 0])]
            for own_span in intervals(by_atom[nodes[lower].atom or 0]):
                effective += oracle_effective(own_span, deeper)
        expected = [
            most_disjoint([e for e in effective if own[0] <= e[0] and e[1] <= own[1]])
            for own in intervals(by_atom[current.atom])
        ]
        assert got[current.atom].tolist() == expected, f"seed {seed}"
        total += sum(expected)
        tuples += len(expected)
    assert tree_enclosureness(nodes, by_atom) == max(1.0, total / max(1, tuples))


def test_long_chains_use_every_jump() -> None:
    """One long interval around many short ones: the count is exact at every power of two and beside it."""
    short = spans([(2 * i, 2 * i + 1) for i in range(1000)])
    index = DisjointIntervals(short)
    for count in (0, 1, 2, 3, 7, 8, 9, 511, 512, 513, 1000):
        assert index.inside(np.array([0]), np.array([2 * count - 1])).tolist() == [count]


CHAIN = [node("a", 0, None), node("b", 1, 0), node("c", 2, 1)]
FORK = [node("a", 0, None), node("b", 1, 0), node("c", 2, 0)]


@pytest.mark.parametrize("nodes", [CHAIN, FORK], ids=["chain", "fork"])
def test_insertion_only_is_one(nodes: list[Node]) -> None:
    generator = random.Random(7)
    moments = list(range(300))
    generator.shuffle(moments)
    atoms = {a: spans([(m, AFTER) for m in moments[a::3]]) for a in range(3)}
    assert tree_enclosureness(nodes, atoms) == 1.0
    assert enclosureness(concatenate(list(atoms.values()))) == 1.0


def test_fifo_is_one_at_height_two_and_not_always_at_three() -> None:
    generator = random.Random(11)
    order = [generator.randrange(3) for _ in range(500)]
    window = 60

    def atom(wanted: int) -> Lifespans:
        # Insertion i takes place at 2i, the deletion of what came `window` insertions before at 2i
        # + 1.
        return spans([(2 * i, 2 * (i + window) + 1) for i, a in enumerate(order) if a == wanted])

    atoms = {a: atom(a) for a in range(3)}
    assert enclosureness(concatenate(list(atoms.values()))) == 1.0
    assert tree_enclosureness(FORK, atoms) == 1.0
    assert tree_enclosureness(CHAIN, atoms) > 5


def test_paper_example_5_3() -> None:
    """R1 above R2 and R2 above R1 have enclosureness n, both beside each other under [x2] have 1."""
    n = 6
    size = 4 * n
    moment = itertools.count()
    relations: dict[int, list[Interval]] = {0: [], 1: []}
    for long, short in ((0, 1), (1, 0)):
        begins = [next(moment) for _ in range(size)]
        relations[short] += [(next(moment), next(moment)) for _ in range(size)]
        relations[long] += [(begin, next(moment)) for begin in begins]
    atoms = {a: spans(value) for a, value in relations.items()}
    generalised = node("[x2]", None, None)
    tree_1 = [generalised, node("R1", 0, 0), node("R2", 1, 1)]
    tree_2 = [generalised, node("R2", 1, 0), node("R1", 0, 1)]
    tree_3 = [generalised, node("R1", 0, 0), node("R2", 1, 0)]
    assert tree_enclosureness(tree_1, atoms) == n
    assert tree_enclosureness(tree_2, atoms) == n
    assert tree_enclosureness(tree_3, atoms) == 1.0
    # Nothing climbs an optional edge: a child below one encloses nothing in its parent.
    assert tree_enclosureness([*tree_1[:2], replace(tree_1[2], edge="optional")], atoms) == 1.0


def test_nothing_at_all() -> None:
    empty = spans([])
    assert enclosureness(empty) == 1.0
    assert tree_enclosureness(CHAIN, {0: empty, 1: empty, 2: empty}) == 1.0
