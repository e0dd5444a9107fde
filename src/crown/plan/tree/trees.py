"""All free-connex trees of a conjunction, and the best of them.

Normal form: *no subtree can be attached higher*. If the key of a child lies inside a relation above its parent, or is
all of a generalised node above it, hanging the child there keeps every property of definition 3.2, makes no path longer
and no atom deeper, so only trees where that is impossible are considered. They have a simple recursive form: the
children of a node are exactly the groups of items that stay connected without the node's variables. A generalised node
has at least two children (or the component it is derived from), and its variables are then what two of the items share.

Items are what the connex tree spans: atoms that hold output variables only, and existential components,
shown by their interface. A component becomes a derived node, or hangs directly on a parent that holds its interface.

The same subproblem (a set of items below a key) occurs in many trees, so the best tree is found without listing them:
each subproblem keeps its best (height, cost) pairs. That is exact. Only where a generalised node leaves more than
`ASSIGNMENTS` ways to hang the groups that it doesn't cover are they all kept together. When the steps run out (one for
each item of each way to root a subproblem), a subproblem has a single root from then on, the relation that leaves the
smallest groups. Neither bound is met below eleven atoms in practice; the result says when one was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from crown.plan.tree.components import components
from crown.plan.tree.hypergraph import Hyperedge
from crown.plan.tree.price import GENERALISED_DEPTH, Subtree, make_subtree, moving_height_above
from crown.plan.tree.search_limit import Steps

ASSIGNMENTS = 256
STEPS = 30_000


@dataclass(frozen=True)
class _Item:
    variables: Hyperedge  # of a component: its interface
    atom: int | None
    component: _Space | None = None


@dataclass(frozen=True)
class _Problem:
    """Attach `items` as one subtree whose root holds `key`. `free`: everything above is generalised, so that a
    generalised node may come next. `rooted`: there is a parent, which holds `key`.
    """

    items: frozenset[int]
    key: Hyperedge
    free: bool
    rooted: bool


@dataclass(frozen=True)
class _Choice:
    """One way to root a problem: the node's variables and what hangs below, each a (space, problem)."""

    variables: Hyperedge
    atom: int | None
    below: tuple[tuple[_Space, _Problem], ...]


class _Space:
    """The trees over some items. Components have separate spaces, whose nodes are not connex."""

    def __init__(
        self,
        items: Sequence[_Item],
        updates: Sequence[float],
        connex: bool,
        steps: Steps,
        generalised_depth: float = GENERALISED_DEPTH,
    ) -> None:
        self.items = items
        self.updates = updates
        self.generalised_depth = generalised_depth
        self.connex = connex
        self.steps = steps  # shared by all spaces of one tree
        holders: dict[str, set[int]] = {}
        for index, item in enumerate(items):
            for variable in item.variables:
                holders.setdefault(variable, set()).add(index)
        # What connects the items: for each the variables that others hold too, and who holds them.
        self.links = [[(v, holders[v]) for v in sorted(item.variables) if len(holders[v]) > 1] for item in items]
        self.choices_of: dict[_Problem, tuple[_Choice, ...]] = {}
        self.best_of: dict[_Problem, tuple[Subtree, ...]] = {}
        self.count_of: dict[_Problem, int] = {}

    def root_problem(self) -> _Problem:
        return _Problem(frozenset(range(len(self.items))), frozenset(), free=True, rooted=False)

    def choices(self, problem: _Problem) -> tuple[_Choice, ...]:
        found = self.choices_of.get(problem)
        if found is None:
            found = tuple(self._relation_roots(problem))
            self.steps.take(len(found) * len(problem.items))
            if problem.free and (not self.steps.cut or not found):
                found += tuple(self._until_cut(self._generalised_roots(problem), len(problem.items)))
            if self.steps.cut:
                found = tuple(sorted(found, key=_largest_group)[:1])
            self.choices_of[problem] = found
        return found

    def _until_cut(self, choices: Iterator[_Choice], items: int) -> Iterator[_Choice]:
        for choice in choices:
            yield choice
            if not self.steps.take(items):
                return

    def _split(self, items: frozenset[int], variables: Hyperedge) -> list[frozenset[int]]:
        """Return the groups of items that are connected through other variables, in order of their first item."""
        rest, passed = set(items), set(variables)
        groups = []
        for first in sorted(items):
            if first not in rest:
                continue
            rest.discard(first)
            group = [first]
            for index in group:  # (it grows)
                for variable, holders in self.links[index]:
                    if variable not in passed:
                        passed.add(variable)
                        found = holders & rest
                        rest -= found
                        group += found
            groups.append(frozenset(group))
        return groups

    def _key(self, index: int, group: frozenset[int]) -> Hyperedge:
        """Return what an item shares with a group of others."""
        return frozenset(variable for variable, holders in self.links[index] if not holders.isdisjoint(group))

    def _is_direct(self, problem: _Problem) -> _Space | None:
        """Return the component that hangs on the parent without a derived node, if the problem is that."""
        if problem.rooted and len(problem.items) == 1:
            item = self.items[next(iter(problem.items))]
            if item.component is not None and item.variables == problem.key:
                return item.component
        return None

    def _relation_roots(self, problem: _Problem) -> Iterator[_Choice]:
        for index in sorted(problem.items):
            item = self.items[index]
            if not problem.key <= item.variables:
                continue
            groups = self._split(problem.items - {index}, item.variables)
            keys = [self._key(index, group) for group in groups]
            below = tuple(
                (self, _Problem(group, key, free=False, rooted=True)) for group, key in zip(groups, keys, strict=True)
            )
            if item.component is None:
                yield _Choice(item.variables, item.atom, below)
            elif not problem.free or any(key != item.variables for key in keys):  # else it is a generalised node
                yield _Choice(item.variables, None, (_component(item.component, item.variables, False), *below))

    def _generalised_roots(self, problem: _Problem) -> Iterator[_Choice]:
        for variables in self._shared_sets(problem):
            groups = self._split(problem.items, variables)
            covering = [group for group in groups if any(variables <= self.items[i].variables for i in group)]
            others = [group for group in groups if group not in covering]
            derived = any(self._derives(group, variables) for group in covering)
            if len(covering) < 2 and not derived:
                continue
            takers = [i for i, group in enumerate(covering) if not self._derives(group, variables)]
            for parts in _assignments(covering, others, takers):
                yield _Choice(
                    variables,
                    None,
                    tuple((self, _Problem(part, variables, free=True, rooted=True)) for part in parts),
                )

    def _derives(self, group: frozenset[int], variables: Hyperedge) -> bool:
        """The group is one component with exactly this interface: it hangs on the node directly."""
        item = self.items[next(iter(group))]
        return len(group) == 1 and item.component is not None and item.variables == variables

    def _shared_sets(self, problem: _Problem) -> list[Hyperedge]:
        """Return what two items share, and interfaces of components: the only sets a generalised node can have."""
        holding = [i for i in sorted(problem.items) if problem.key <= self.items[i].variables]
        shared = dict.fromkeys(
            self._key(one, frozenset((other,))) for position, one in enumerate(holding) for other in holding[:position]
        )
        shared.update(dict.fromkeys(self.items[i].variables for i in holding if self.items[i].component is not None))
        return [v for v in shared if v != problem.key or not problem.rooted]

    def best(self, problem: _Problem) -> tuple[Subtree, ...]:
        """Return the trees that no other tree beats in both height and cost, lowest first."""
        found = self.best_of.get(problem)
        if found is None:
            direct = self._is_direct(problem)
            if direct is not None:
                space, below = _component(direct, problem.key, problem.free)
                found = space.best(below)
            else:
                subtrees = [subtree for choice in self.choices(problem) for subtree in self.best_with(choice)]
                found = _pareto(subtrees)
            self.best_of[problem] = found
        return found

    def best_with(self, choice: _Choice) -> tuple[Subtree, ...]:
        """Return the best trees whose root is this one: for each height the cheapest children that fit below it."""

        def reached(child: Subtree) -> int:
            return moving_height_above(choice.variables, choice.atom, child)

        options = [space.best(problem) for space, problem in choice.below]
        if not all(options):
            return ()
        subtrees = []
        for limit in sorted({reached(subtree) for below in options for subtree in below} or {0}):
            fitting = [[subtree for subtree in below if reached(subtree) <= limit] for below in options]
            if all(fitting):
                children = [min(below, key=lambda subtree: (subtree.cost, subtree.price)) for below in fitting]
                subtrees.append(self._subtree(choice, children))
        return _pareto(subtrees)

    def count(self, problem: _Problem) -> int:
        found = self.count_of.get(problem)
        if found is None:
            direct = self._is_direct(problem)
            if direct is not None:
                space, below = _component(direct, problem.key, problem.free)
                found = space.count(below)
            else:
                found = 0
                for choice in self.choices(problem):
                    ways = 1
                    for space, below in choice.below:
                        ways *= space.count(below)
                    found += ways
            self.count_of[problem] = found
        return found

    def every(self, problem: _Problem) -> Iterator[Subtree]:
        direct = self._is_direct(problem)
        if direct is not None:
            space, below = _component(direct, problem.key, problem.free)
            yield from space.every(below)
            return
        for choice in self.choices(problem):
            for children in product(*(tuple(space.every(below)) for space, below in choice.below)):
                yield self._subtree(choice, children)

    def _subtree(self, choice: _Choice, children: Sequence[Subtree]) -> Subtree:
        return make_subtree(choice.variables, choice.atom, self.connex, children, self.updates, self.generalised_depth)


def _largest_group(choice: _Choice) -> int:
    return max((len(problem.items) for _, problem in choice.below), default=0)


def _component(space: _Space, interface: Hyperedge, free: bool) -> tuple[_Space, _Problem]:
    return space, _Problem(frozenset(range(len(space.items))), interface, free=free, rooted=True)


def _assignments(
    covering: list[frozenset[int]], others: list[frozenset[int]], takers: list[int]
) -> Iterator[list[frozenset[int]]]:
    """Yield all ways to put each group that can't be a child of the generalised node below one that can."""
    if len(takers) ** len(others) <= ASSIGNMENTS:
        ways: Iterator[tuple[int, ...]] = product(takers, repeat=len(others))
    else:
        ways = ((taker,) * len(others) for taker in takers)
    for way in ways:
        parts = list(covering)
        for group, taker in zip(others, way, strict=True):
            parts[taker] |= group
        yield parts


def _pareto(subtrees: list[Subtree]) -> tuple[Subtree, ...]:
    kept: list[Subtree] = []
    for subtree in sorted(subtrees, key=lambda s: s.price):
        if not kept or subtree.cost < kept[-1].cost:
            kept.append(subtree)
    return tuple(kept)


@dataclass(frozen=True)
class Trees:
    """The trees of one free-connex conjunction."""

    best: tuple[Subtree, ...]  # the best tree for each choice of the root, best first
    count: int  # of all trees in normal form
    exhaustive: bool


def find_trees(
    edges: Sequence[Hyperedge],
    outputs: Hyperedge,
    updates: Sequence[float],
    generalised_depth: float = GENERALISED_DEPTH,
    steps: Steps | None = None,
) -> Trees:
    """Return the best trees of a free-connex conjunction; `updates` are the expected updates per atom.

    >>> trees = find_trees([frozenset("ab"), frozenset("bc")], frozenset("abc"), [1.0, 1.0])
    >>> [(subtree.height, subtree.cost) for subtree in trees.best]
    [(1, 3.0), (2, 3.0), (2, 3.0)]
    """
    steps = steps or Steps(STEPS)
    space = _space(edges, outputs, updates, steps, generalised_depth)
    problem = space.root_problem()
    best = [subtree for choice in space.choices(problem) for subtree in space.best_with(choice)[:1]]
    return Trees(tuple(sorted(best, key=lambda subtree: subtree.price)), space.count(problem), not steps.cut)


def every_tree(edges: Sequence[Hyperedge], outputs: Hyperedge, updates: Sequence[float]) -> Iterator[Subtree]:
    """Return every free-connex tree in normal form. Their number may be exponential in the number of atoms."""
    space = _space(edges, outputs, updates, Steps(STEPS))
    return space.every(space.root_problem())


def existential_tree(edges: Sequence[Hyperedge], key: Hyperedge, updates: Sequence[float]) -> Subtree | None:
    """The best subtree of atoms none of which is connex, rooted at an atom that holds `key`; None if there is none."""
    space = _Space([_Item(edge, atom) for atom, edge in enumerate(edges)], updates, False, Steps(STEPS))
    problem = _Problem(frozenset(range(len(edges))), key, free=False, rooted=True)
    return min(space.best(problem), key=lambda subtree: subtree.price, default=None)


def _space(
    edges: Sequence[Hyperedge],
    outputs: Hyperedge,
    updates: Sequence[float],
    steps: Steps,
    generalised_depth: float = GENERALISED_DEPTH,
) -> _Space:
    items = [_Item(edge, atom) for atom, edge in enumerate(edges) if edge <= outputs]
    for component in components(edges, outputs):
        atoms = [_Item(edges[atom], atom) for atom in component.atoms]
        inner = _Space(atoms, updates, False, steps, generalised_depth)
        items.append(_Item(component.interface, None, inner))
    return _Space(items, updates, True, steps, generalised_depth)
