"""Keys as functional dependencies between variables: primary keys of tables, groups of views.

A row of an atom over a table or view with a key is determined by the key's variables. What a set of variables
determines is its closure. The query with every atom and the output replaced by their closures has the same answers
up to one row for one row; if that one is free-connex, so in effect is the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crown.ir.expression import Column
from crown.ir.plan import Atom
from crown.plan.tree.hypergraph import Hyperedge


@dataclass(frozen=True)
class Dependency:
    key: Hyperedge
    determines: Hyperedge
    label: str  # "PRIMARY KEY (id) of customer"


def dependencies(atoms: Iterable[Atom], keys: Mapping[str, tuple[tuple[str, ...], str]]) -> tuple[Dependency, ...]:
    """One for each atom whose source's whole key is bound to variables; `keys` gives columns and a label by source."""
    found = []
    for atom in atoms:
        if atom.source not in keys:
            continue
        columns, label = keys[atom.source]
        variable_of = {
            binding.expression.name: binding.variable
            for binding in atom.bindings
            if isinstance(binding.expression, Column)
        }
        if all(column in variable_of for column in columns):
            key = frozenset(variable_of[column] for column in columns)
            found.append(Dependency(key, frozenset(atom.variables), label))
    return tuple(found)


def closure(variables: Hyperedge, known: Sequence[Dependency]) -> Hyperedge:
    """Return all that `variables` determine.

    >>> chain = [Dependency(frozenset("a"), frozenset("ab"), ""), Dependency(frozenset("b"), frozenset("bc"), "")]
    >>> sorted(closure(frozenset("a"), chain))
    ['a', 'b', 'c']
    """
    readers: dict[str, list[int]] = {}
    for number, dependency in enumerate(known):
        for variable in dependency.key:
            readers.setdefault(variable, []).append(number)
    missing = [len(dependency.key) for dependency in known]
    grown = set(variables).union(*(dependency.determines for dependency in known if not dependency.key))
    waiting = list(grown)
    while waiting:
        for number in readers.get(waiting.pop(), ()):
            missing[number] -= 1
            if not missing[number]:
                new = known[number].determines - grown
                grown |= new
                waiting += new
    return frozenset(grown)


def has_linear_result(outputs: Hyperedge, edges: Sequence[Hyperedge], known: Sequence[Dependency]) -> bool:
    """Return whether one atom's row determines a whole result, so that the result has no more rows than that atom."""
    return any(outputs <= closure(edge, known) for edge in edges)
