"""Optional atoms: the optional sides of outer joins, attached below the finished tree by key.

An optional child never removes a row of its parent, so the tree is chosen without it and it may be attached to any node
that holds its key. To show its columns it must be connex: then its key and all its variables join the output, as in an
inner join that is not free-connex. One without outputs only counts, or carries factors of sums, and may be attached
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from crown.ir.plan import Atom, Node
from crown.ir.query import OptionalAtom
from crown.plan.planning import Planning
from crown.plan.tree.draft import Draft
from crown.plan.tree.hypergraph import Hyperedge
from crown.plan.tree.nulls import variables_in


def optional_atoms(optional: Iterable[OptionalAtom]) -> Iterator[Atom]:
    """Parents first."""
    for one in optional:
        yield one.atom
        yield from optional_atoms(one.optional)


def own_variables(optional: Iterable[OptionalAtom], around: Hyperedge) -> Iterator[Hyperedge]:
    """For each optional atom, in the same order, the variables that are NULL where it has no match."""
    for one in optional:
        held = frozenset(one.atom.variables)
        yield held - around
        yield from own_variables(one.optional, held)


def with_key_first(optional: Iterable[OptionalAtom], around: Hyperedge) -> Iterator[Atom]:
    """The optional atoms; a column that is bound to a variable of the key counts as that one."""
    for one in optional:
        last = sorted(one.atom.bindings, key=lambda binding: binding.variable in around)
        yield replace(one.atom, bindings=tuple(last))
        yield from with_key_first(one.optional, frozenset(one.atom.variables))


def shown_variables(optional: Iterable[OptionalAtom], around: Hyperedge, outputs: Hyperedge) -> Iterator[str]:
    """The variables of the optional atoms that enumeration walks: those with outputs at or below them."""
    for one in optional:
        below = list(shown_variables(one.optional, frozenset(one.atom.variables), outputs))
        if below or (frozenset(one.atom.variables) - around) & outputs:
            yield from one.atom.variables
            yield from below


def hang_optional(draft: Draft, planning: Planning) -> Draft:
    """Attach each optional atom to the highest node that holds its key, a connex one if it is enumerated."""
    atoms, nodes = list(draft.atoms), list(draft.nodes)
    order = [variable.name for variable in draft.variables]
    around = variables_in(draft.query_atoms)
    shown = frozenset(draft.outputs)
    for one in draft.optional:
        walked = any(shown_variables([one], around, shown))
        key = frozenset(one.atom.variables) & around
        tree = enumerate(nodes[: len(draft.nodes)])
        place = next(i for i, n in tree if key <= set(n.variables) and (n.connex or not walked))
        _hang(one, place, key, shown, atoms, nodes, order)
    return replace(draft, all_atoms=tuple(atoms), nodes=tuple(nodes))


def _hang(
    one: OptionalAtom,
    place: int,
    key: Hyperedge,
    shown: Hyperedge,
    atoms: list[Atom],
    nodes: list[Node],
    order: Sequence[str],
) -> None:
    names = one.atom.variables
    held = frozenset(names)
    ordered = tuple(v for v in order if v in key)
    connex = any(shown_variables([one], key, shown))
    index = len(nodes)
    nodes.append(Node(one.atom.name, names, len(atoms), place, ordered, connex, "optional"))
    atoms.append(one.atom)
    for inner in one.optional:
        _hang(inner, index, frozenset(inner.atom.variables) & held, shown, atoms, nodes, order)
