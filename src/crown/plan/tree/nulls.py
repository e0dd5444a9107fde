"""Joins never see NULL: rows with NULL in a variable that must equal something are dropped at the atom.

A variable must equal something when two bindings of one atom, two joined atoms, or an atom and an EXISTS share it. Of
NOT EXISTS, and of an outer join, only the inner side drops such rows: an outer row with NULL has no match, so it stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from crown.ir.plan import Atom
from crown.ir.query import Condition, OptionalAtom
from crown.plan.planning import Planning
from crown.plan.tree.draft import Draft
from crown.plan.tree.hypergraph import Hyperedge, union


def drop_nulls(draft: Draft, planning: Planning) -> Draft:
    atoms, conditions = _mark(draft.atoms, draft.conditions, frozenset())
    optional = tuple(_mark_optional(one, variables_in(atoms)) for one in draft.optional)
    return replace(draft, atoms=atoms, query_atoms=atoms, conditions=conditions, optional=optional)


def variables_in(atoms: Sequence[Atom]) -> Hyperedge:
    return union(frozenset(atom.variables) for atom in atoms)


def _mark(
    atoms: tuple[Atom, ...], conditions: tuple[Condition, ...], outer: Hyperedge
) -> tuple[tuple[Atom, ...], tuple[Condition, ...]]:
    """`outer` are the variables of the conjunction around this one that it must equal."""
    held = variables_in(atoms)
    holders = Counter(variable for atom in atoms for variable in atom.variables)
    joined = {variable for variable, count in holders.items() if count > 1} | outer
    for condition in conditions:
        if not condition.negated:
            joined |= held & variables_in(condition.atoms)
    marked = tuple(replace(atom, not_null=_not_null(atom, joined)) for atom in atoms)
    inner = []
    for condition in conditions:
        inner_atoms, inner_conditions = _mark(condition.atoms, condition.conditions, held | outer)
        inner.append(replace(condition, atoms=inner_atoms, conditions=inner_conditions))
    return marked, tuple(inner)


def _mark_optional(one: OptionalAtom, around: Hyperedge) -> OptionalAtom:
    held = frozenset(one.atom.variables)
    atom = replace(one.atom, not_null=_not_null(one.atom, set(around)))
    return replace(one, atom=atom, optional=tuple(_mark_optional(inner, held) for inner in one.optional))


def _not_null(atom: Atom, joined: set[str]) -> tuple[str, ...]:
    bindings = Counter(binding.variable for binding in atom.bindings)
    return tuple(v for v in atom.variables if v in joined or bindings[v] > 1 or v in atom.not_null)
