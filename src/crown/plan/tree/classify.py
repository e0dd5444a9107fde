"""The class of a conjunction: q-hierarchical, free-connex, acyclic or cyclic (section 3.2 of the paper).

Each class promises more than the next: q-hierarchical, constant time per update whatever the updates are;
free-connex, linear space and constant delay; acyclic, linear time to answer once.
"""

from __future__ import annotations

from collections.abc import Sequence

from crown.plan.explain.report import QueryClass
from crown.plan.tree.components import components
from crown.plan.tree.hypergraph import Hyperedge, is_acyclic


def is_free_connex(edges: Sequence[Hyperedge], outputs: Hyperedge) -> bool:
    """Acyclic, and every existential component has an atom that holds all of its interface.

    This equals the definition by two acyclicity tests (with and without the outputs as one more edge).

    >>> is_free_connex([frozenset("ab"), frozenset("bc")], frozenset("ac"))
    False
    >>> is_free_connex([frozenset("ab"), frozenset("bc")], frozenset("ab"))
    True
    """
    return is_acyclic(edges) and all(component.is_guarded(edges) for component in components(edges, outputs))


def is_q_hierarchical(edges: Sequence[Hyperedge], outputs: Hyperedge) -> bool:
    """For any two variables the sets of atoms that hold them are nested or disjoint, and none that holds more than
    an output variable is existential.
    """
    holders: dict[str, set[int]] = {}
    for i, edge in enumerate(edges):
        for variable in edge:
            holders.setdefault(variable, set()).add(i)
    # Variables with the same atoms need no comparison: a table of 1,000 columns has a few kinds of
    # them.
    kinds = {(frozenset(of_variable), variable in outputs) for variable, of_variable in holders.items()}
    for of_one, one_shown in kinds:
        for of_other, other_shown in kinds:
            if of_one & of_other and not (of_one <= of_other or of_other <= of_one):
                return False
            if one_shown and of_one < of_other and not other_shown:
                return False
    return True


def query_class(edges: Sequence[Hyperedge], outputs: Hyperedge) -> QueryClass:
    if is_q_hierarchical(edges, outputs):
        return "q-hierarchical"
    if not is_acyclic(edges):
        return "cyclic"
    return "free-connex" if is_free_connex(edges, outputs) else "acyclic"
