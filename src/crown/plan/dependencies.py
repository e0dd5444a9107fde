"""Primary keys as functional dependencies between variables.

A row of an atom over a table with a primary key is determined by the key's variables. What a set of variables
determines is its closure. The query with every atom and the output replaced by their closures has the same answers
up to one row for one row; if that one is free-connex, so in effect is the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crown.expression import Column
from crown.plan.hypergraph import Edge
from crown.plan.model import Atom, Table


@dataclass(frozen=True)
class Dependency:
    key: Edge
    determines: Edge
    label: str  # "PRIMARY KEY (id) of customer"


def dependencies(atoms: Iterable[Atom], tables: Iterable[Table]) -> tuple[Dependency, ...]:
    """One dependency per atom whose whole primary key is bound to variables."""
    keys = {table.name: table.primary_key for table in tables if table.primary_key}
    found = []
    for atom in atoms:
        variable_of = {
            binding.expression.name: binding.variable
            for binding in atom.bindings
            if isinstance(binding.expression, Column)
        }
        columns = keys.get(atom.source, ())
        if columns and all(column in variable_of for column in columns):
            key = frozenset(variable_of[column] for column in columns)
            label = f"PRIMARY KEY ({', '.join(columns)}) of {atom.source}"
            found.append(Dependency(key, frozenset(atom.variables), label))
    return tuple(found)


def closure(variables: Edge, known: Sequence[Dependency]) -> Edge:
    """All that `variables` determine.

    >>> chain = [Dependency(frozenset("a"), frozenset("ab"), ""), Dependency(frozenset("b"), frozenset("bc"), "")]
    >>> sorted(closure(frozenset("a"), chain))
    ['a', 'b', 'c']
    """
    grown = variables
    while True:
        before = grown
        for dependency in known:
            if dependency.key <= grown:
                grown |= dependency.determines
        if grown == before:
            return grown


def is_linear(outputs: Edge, edges: Sequence[Edge], known: Sequence[Dependency]) -> bool:
    """Whether one atom's row determines a whole result, so that the result has no more rows than that atom."""
    return any(outputs <= closure(edge, known) for edge in edges)
