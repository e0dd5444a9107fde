"""A conjunction while it is planned: the data that the passes hand on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from crown.ir.expression import Expression
from crown.ir.plan import Atom, Node, RingComponent, Variable
from crown.ir.query import Condition, OptionalAtom
from crown.ir.scalars import variables_of
from crown.plan.explain.report import BagReport
from crown.plan.tree.hypergraph import Hyperedge
from crown.plan.tree.keys import Dependency
from crown.plan.tree.price import Subtree
from crown.plan.tree.search_limit import Steps
from crown.plan.tree.trees import Trees
from crown.types import DataType


@dataclass(frozen=True)
class RingTerm:
    """A ring component before its factors have found their atoms: each factor reads variables of one atom."""

    name: str
    factors: tuple[Expression, ...]
    type: DataType


@dataclass(frozen=True)
class HangingCondition:
    """A condition as a subtree of its own atoms, the key it shares with the tree, and the conditions inside it."""

    negated: bool
    key: Hyperedge
    atoms: tuple[Atom, ...]
    subtree: Subtree
    below: tuple[HangingCondition, ...] = ()


@dataclass(frozen=True)
class Draft:
    variables: tuple[Variable, ...]
    atoms: tuple[Atom, ...]  # as in the query, then with bags in the place of their atoms
    conditions: tuple[Condition, ...]
    residual: tuple[Expression, ...]
    wanted: tuple[str, ...]  # variables that the rows must show
    mode: OneOf["set", "bag", "ring"]
    terms: tuple[RingTerm, ...] = ()
    always: bool = False
    optional: tuple[OptionalAtom, ...] = ()
    outputs: tuple[str, ...] = ()  # wanted, those of residuals, those of optional atoms, then the extension
    query_atoms: tuple[Atom, ...] = ()  # as in the query
    known: tuple[Dependency, ...] = ()
    hanging: tuple[HangingCondition, ...] = ()
    bags: tuple[BagReport, ...] = ()
    added: tuple[str, ...] = ()
    trees: Trees | None = None
    searches: tuple[Steps, ...] = ()
    all_atoms: tuple[Atom, ...] = ()  # of the tree, its optional atoms and its conditions
    nodes: tuple[Node, ...] = ()
    ring: tuple[RingComponent, ...] = ()

    def edges(self) -> list[Hyperedge]:
        return [frozenset(atom.variables) for atom in self.atoms]

    def factor_variables(self) -> Hyperedge:
        return frozenset(variables_of(factor for term in self.terms for factor in term.factors))
