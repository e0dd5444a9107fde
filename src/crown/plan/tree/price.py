"""A rooted tree of nodes while it is being chosen, and its price: height first, then sum of depth times updates.

Height counts relation nodes on a path. Only paths that start at an atom that changes count for the choice: a
static table never updates, so it may sit anywhere. A generalised node adds no height because each of its children
holds its whole key, so one change below is at most one change there. A derived node with a child that holds only a
part of its variables does: one change below may change many of its rows, as in a relation.

Depth counts a generalised node as half a relation, because its rows and links have to be stored too: 3-Hop is faster
with the middle relation as its root than with a generalised node above it. Counted as nothing, it leaves the fewest
atoms below relations (`reaches_many` says where that matters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crown.ir.plan import Atom, Node
from crown.plan.tree.hypergraph import Hyperedge
from crown.plan.tree.keys import Dependency, closure

GENERALISED_DEPTH = 0.5


@dataclass(frozen=True)
class Subtree:
    """A subtree. `atom` is None for generalised and derived nodes."""

    variables: Hyperedge
    atom: int | None
    connex: bool
    children: tuple[Subtree, ...]
    height: int  # relation nodes on the longest path
    moving_height: int  # the same over paths that start at an atom with updates
    cost: float  # sum over its atoms of depth (1 for the atom itself) times updates
    updates: float  # sum over its atoms

    @property
    def price(self) -> tuple[int, float, int]:
        return (self.moving_height, self.cost, self.height)

    def nodes(self) -> Iterator[Subtree]:
        yield self
        for child in self.children:
            yield from child.nodes()


def height_added(variables: Hyperedge, atom: int | None, child: Subtree) -> int:
    """Return what the node above adds to the height of this child."""
    return 1 if atom is not None or not variables <= child.variables else 0


def moving_height_above(variables: Hyperedge, atom: int | None, child: Subtree) -> int:
    """Return the moving height that this child gives to the node above it."""
    return child.moving_height + height_added(variables, atom, child) if child.moving_height else 0


def make_subtree(
    variables: Hyperedge,
    atom: int | None,
    connex: bool,
    children: Sequence[Subtree],
    updates_of: Sequence[float],
    generalised_depth: float = GENERALISED_DEPTH,
) -> Subtree:
    """Return the node over its children, with its price."""
    own = 0.0 if atom is None else updates_of[atom]
    height, moving = (0, 0) if atom is None else (1, int(own > 0))
    cost, updates = own, own
    for child in children:
        step = height_added(variables, atom, child)
        height = max(height, child.height + step)
        moving = max(moving, moving_height_above(variables, atom, child))
        cost += child.cost + (step or generalised_depth) * child.updates
        updates += child.updates
    return Subtree(variables, atom, connex, tuple(children), height, moving, cost, updates)


def reaches_many(subtree: Subtree, takes_back: Sequence[bool], known: Sequence[Dependency]) -> bool:
    """Return whether one change of an atom whose rows leave again may change many rows of a node above it."""
    for child in subtree.children:
        leaving = any(node.atom is not None and takes_back[node.atom] for node in child.nodes())
        if leaving and not subtree.variables <= closure(child.variables & subtree.variables, known):
            return True
    return any(reaches_many(child, takes_back, known) for child in subtree.children)


def to_nodes(subtree: Subtree, atoms: Sequence[Atom], variable_order: Sequence[str]) -> tuple[Node, ...]:
    """Return the nodes parents first, each key in the order of `variable_order` on both sides."""
    rank = {variable: position for position, variable in enumerate(variable_order)}
    nodes: list[Node] = []

    def ordered(variables: Hyperedge) -> tuple[str, ...]:
        return tuple(sorted(variables, key=rank.__getitem__))

    def visit(current: Subtree, parent: int | None, above: Hyperedge) -> None:
        index = len(nodes)
        names = atoms[current.atom].variables if current.atom is not None else ordered(current.variables)
        name = atoms[current.atom].name if current.atom is not None else f"[{', '.join(names)}]"
        nodes.append(Node(name, names, current.atom, parent, ordered(current.variables & above), current.connex))
        for child in current.children:
            visit(child, index, current.variables)

    visit(subtree, None, frozenset())
    return tuple(nodes)


def relations_above(nodes: Sequence[Node]) -> list[tuple[int, ...]]:
    """For each node the nodes above it that count as relations, nearest first.

    Those are relation nodes, and derived nodes above a child that holds only a part of their variables. Nothing above
    an optional edge counts: no row there is inserted or deleted because of one below.
    """
    above: list[tuple[int, ...]] = []
    for node in nodes:
        if node.parent is None or node.edge == "optional":
            above.append(())
        else:
            parent = nodes[node.parent]
            counts = parent.atom is not None or len(node.key) < len(parent.variables)
            above.append(((node.parent,) if counts else ()) + above[node.parent])
    return above
