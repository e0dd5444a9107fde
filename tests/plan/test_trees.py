"""Trees, classes, extensions and bags against their definitions, on random hypergraphs."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crown.plan.tree.bags import bag_width, find_bags
from crown.plan.tree.classify import is_free_connex, is_q_hierarchical, query_class
from crown.plan.tree.extend import least_extension
from crown.plan.tree.hypergraph import Hyperedge, is_acyclic, union
from crown.plan.tree.price import Subtree
from crown.plan.tree.trees import every_tree, find_trees
from tests.plan import brute_force

VARIABLES = "abcdef"
edge = st.frozensets(st.sampled_from(VARIABLES), min_size=1, max_size=3)
hypergraph = st.lists(edge, min_size=1, max_size=6)
outputs = st.frozensets(st.sampled_from(VARIABLES))


def acyclic_by_search(edges: list[Hyperedge]) -> bool:
    """By definition: some tree over the edges has the connect property (a maximum-weight spanning tree, if any has)."""
    used, weight = {0}, 0
    while len(used) < len(edges):
        heaviest, node = max((len(edges[i] & edges[j]), j) for i in used for j in range(len(edges)) if j not in used)
        used.add(node)
        weight += heaviest
    return weight == sum(sum(v in e for e in edges) - 1 for v in union(edges))


@given(hypergraph)
def test_acyclicity_equals_the_spanning_tree_criterion(edges: list[Hyperedge]) -> None:
    assert is_acyclic(edges) == acyclic_by_search(edges)


@given(hypergraph, outputs)
def test_free_connex_equals_two_acyclicities(edges: list[Hyperedge], wanted: Hyperedge) -> None:
    wanted &= union(edges)
    assert is_free_connex(edges, wanted) == (acyclic_by_search(edges) and acyclic_by_search([*edges, wanted]))


@given(hypergraph, outputs)
def test_every_tree_has_the_five_properties(edges: list[Hyperedge], wanted: Hyperedge) -> None:
    wanted &= union(edges)
    if is_free_connex(edges, wanted):
        trees = find_trees(edges, wanted, [1.0] * len(edges))
        for subtree in trees.best:
            check_properties(subtree, edges, wanted)


def check_properties(subtree: Subtree, edges: list[Hyperedge], wanted: Hyperedge) -> None:
    """Definition 3.2, for the tree as the kernel gets it and for the paper's form of it."""
    nodes = list(subtree.nodes())
    assert sorted(n.atom for n in nodes if n.atom is not None) == list(range(len(edges)))
    assert union(n.variables for n in nodes if n.connex) == wanted
    for node in nodes:
        assert node.children or node.atom is not None
        if node.atom is None:
            assert any(node.variables <= child.variables for child in node.children)
        for child in node.children:
            assert node.connex or not child.connex
    sets, parents = paper_form(subtree, edges)
    tree = brute_force.Tree(sets, parents, len(edges))
    assert brute_force.is_covered(tree)
    assert brute_force.is_connected_for_each_variable(tree)
    assert brute_force.is_guarded(tree)
    assert brute_force.generalised_are_above(tree)
    assert brute_force.is_connex(tree, wanted)


def paper_form(subtree: Subtree, edges: list[Hyperedge]) -> tuple[tuple[Hyperedge, ...], tuple[int | None, ...]]:
    """A derived node below a relation, or with a child that is no guard, is its component's root in the paper's tree.

    Its first guard that is a relation takes its place; its other children hang on that one.
    """
    sets: list[Hyperedge] = list(edges)
    parents: list[int | None] = [None] * len(edges)

    def visit(node: Subtree, parent: int | None, free: bool) -> None:
        generalised = node.atom is None and free and all(node.variables <= child.variables for child in node.children)
        if generalised:
            place = len(sets)
            sets.append(node.variables)
            parents.append(parent)
            for child in node.children:
                visit(child, place, True)
            return
        if node.atom is not None:
            parents[node.atom] = parent
            for child in node.children:
                visit(child, node.atom, False)
            return
        guard = next(c for c in node.children if c.atom is not None and node.variables <= c.variables)
        assert guard.atom is not None
        visit(guard, parent, False)
        for child in node.children:
            if child is not guard:
                visit(child, guard.atom, False)

    visit(subtree, None, True)
    return tuple(sets), tuple(parents)


SIX = [
    ["ab", "bc", "cd", "de", "ef", "fg"],
    ["ab", "ac", "ad", "ae", "af", "ag"],
    ["abc", "abd", "ae", "bf", "cg", "a"],
    ["ab", "ab", "bc", "bcd", "d", "de"],
    ["abc", "ab", "bc", "a", "cd", "de"],
    ["a", "ab", "cd", "d", "ab", "cd"],
]


@pytest.mark.parametrize("subtree", SIX, ids=" ".join)
def test_enumeration_finds_every_tree_of_six_atoms(subtree: list[str]) -> None:
    check_enumeration(named(*subtree))


@settings(max_examples=30)
@given(st.lists(edge, min_size=1, max_size=4))
def test_enumeration_finds_every_tree(edges: list[Hyperedge]) -> None:
    if is_acyclic(edges):
        check_enumeration(edges)


def check_enumeration(edges: list[Hyperedge]) -> None:
    expected = {tree.canonical() for tree in brute_force.every_tree(edges)}
    found = [canonical(subtree) for subtree in every_tree(edges, union(edges), [1.0] * len(edges))]
    assert len(found) == len(set(found)), "a tree is listed twice"
    assert set(found) == expected
    assert find_trees(edges, union(edges), [1.0] * len(edges)).count == len(expected)


def canonical(subtree: Subtree) -> object:
    below = sorted((canonical(child) for child in subtree.children), key=repr)
    return (subtree.atom, tuple(sorted(subtree.variables)), tuple(below))


@settings(max_examples=300)
@example([frozenset(held) for held in ("a", "ae", "a", "b", "b", "e")], frozenset(), [0.0, 0.0, 0.5, 0.5, 1.0, 0.5])
@given(hypergraph, outputs, st.lists(st.sampled_from([0.0, 0.5, 1.0, 4.0]), min_size=6, max_size=6))
def test_the_best_tree_is_the_best_of_all(edges: list[Hyperedge], wanted: Hyperedge, updates: list[float]) -> None:
    wanted &= union(edges)
    if is_free_connex(edges, wanted):
        trees = find_trees(edges, wanted, updates[: len(edges)])
        if trees.count <= 500:
            every = list(every_tree(edges, wanted, updates[: len(edges)]))
            assert len(every) == trees.count
            best = min(every, key=lambda subtree: subtree.price[:2])
            assert trees.best[0].price[:2] == best.price[:2]


@given(hypergraph, outputs)
def test_q_hierarchical_equals_height_one(edges: list[Hyperedge], wanted: Hyperedge) -> None:
    """Lemma 5.9 and its converse, from the paper's appendix."""
    wanted &= union(edges)
    if is_free_connex(edges, wanted):
        height = find_trees(edges, wanted, [1.0] * len(edges)).best[0].height
        assert (height == 1) == is_q_hierarchical(edges, wanted)
    else:
        assert not is_q_hierarchical(edges, wanted)


@given(hypergraph, outputs)
def test_the_extension_is_the_least(edges: list[Hyperedge], wanted: Hyperedge) -> None:
    wanted &= union(edges)
    if is_acyclic(edges):
        added = least_extension(edges, wanted, ())
        assert is_free_connex(edges, wanted | added)
        rest = sorted(union(edges) - wanted)
        smaller = chain.from_iterable(combinations(rest, size) for size in range(len(added)))
        assert not any(is_free_connex(edges, wanted | frozenset(fewer)) for fewer in smaller)


@given(hypergraph, st.lists(edge, max_size=2))
def test_bags_make_the_rest_acyclic(edges: list[Hyperedge], covered: list[Hyperedge]) -> None:
    covered = [wanted & union(edges) for wanted in covered]
    blocks = find_bags(edges, covered)
    assert sorted(atom for block in blocks for atom in block) == list(range(len(edges)))
    held = [union(edges[atom] for atom in block) for block in blocks]
    assert is_acyclic(held)
    assert all(any(wanted <= block for block in held) for wanted in covered)
    if is_acyclic(edges) and not covered:
        assert all(len(block) == 1 for block in blocks)


def named(*edges: str) -> list[Hyperedge]:
    return [frozenset(e) for e in edges]


def test_bags_of_known_shapes() -> None:
    triangle, square = named("ab", "bc", "ca"), named("ab", "bc", "cd", "da")
    assert find_bags(triangle) == ((0, 1, 2),)
    assert find_bags([*triangle, *named("cd")]) == ((0, 1, 2), (3,))  # lollipop
    assert find_bags([*triangle, *named("cd", "de", "ef", "fd")]) == ((0, 1, 2), (3,), (4, 5, 6))  # dumbbell
    assert [len(block) for block in find_bags(square)] == [2, 2]
    clique = named("ab", "ac", "ad", "bc", "bd", "cd")
    assert find_bags(clique) == ((0, 1, 2, 3, 4, 5),)
    assert bag_width(range(6), clique) == 2


def test_classes_of_known_shapes() -> None:
    assert query_class(named("ab", "ac", "ad"), frozenset("a")) == "q-hierarchical"
    assert query_class(named("ab", "bc", "cd"), frozenset("abcd")) == "free-connex"
    assert query_class(named("ab", "bc"), frozenset("ac")) == "acyclic"
    assert query_class(named("ab", "bc", "ca"), frozenset("abc")) == "cyclic"


def test_large_queries_have_a_tree(rng: random.Random) -> None:
    """Chains, stars and snowflakes of 64 atoms, and random trees of atoms: the search stays small."""
    size = 64
    shapes = {
        "chain": [frozenset({f"x{i}", f"x{i + 1}"}) for i in range(size)],
        "star": [frozenset({"x", f"y{i}"}) for i in range(size)],
        "snowflake": [frozenset(f"k{i}" for i in range(size - 1)), *(frozenset({f"k{i}"}) for i in range(size - 1))],
        "tree": [frozenset({f"x{i + 1}", f"x{rng.randrange(i + 1)}"}) for i in range(size)],
    }
    heights = {"chain": 32, "star": 1, "snowflake": 2}
    for name, edges in shapes.items():
        for wanted in (union(edges), frozenset(sorted(union(edges))[:1]), frozenset()):
            trees = find_trees(edges, wanted, [1.0] * size)
            check_properties(trees.best[0], edges, wanted)
            if wanted == union(edges) and name in heights:
                assert trees.best[0].height == heights[name]
                assert trees.exhaustive


def test_static_tables_may_sit_anywhere() -> None:
    """A chain whose middle never changes has a tree in which no change meets a relation below it."""
    edges = named("ab", "bc", "cd")
    assert find_trees(edges, frozenset("abcd"), [1.0, 1.0, 1.0]).best[0].moving_height == 2
    assert find_trees(edges, frozenset("abcd"), [1.0, 1.0, 0.0]).best[0].moving_height == 1
