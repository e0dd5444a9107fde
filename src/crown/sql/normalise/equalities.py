"""Classes of terms made equal by a conjunction, transitively.

A term is an expression over one atom. Casts that only widen are stripped from terms, so that
`a.x = b.y` (int) and `a.x = c.z` (bigint) put all three into one class; the class has the widest type.
"""

from __future__ import annotations

from crown import types
from crown.ir.expression import Call, Expression, Literal, fails_on_its_own
from crown.sql.relation import atoms_of
from crown.types import DataType


def stripped(expression: Expression) -> Expression:
    """Return the expression under casts that keep distinct values distinct."""
    while (
        isinstance(expression, Call)
        and expression.function == "cast"
        and types.widens(expression.arguments[0].type, expression.type)
    ):
        expression = expression.arguments[0]
    return expression


class Classes:
    """Union-find over terms. Terms keep the order in which they were first seen."""

    def __init__(self) -> None:
        self._parent: dict[Expression, Expression] = {}
        self._types: dict[Expression, DataType] = {}
        self._constants: dict[Expression, Literal] = {}

    def __contains__(self, term: Expression) -> bool:
        return term in self._parent

    def add(self, term: Expression) -> Expression:
        """Return the representative of the class of `term`, which is put in if it is new."""
        if term not in self._parent:
            self._parent[term] = term
            self._types[term] = term.type
        return self.find(term)

    def find(self, term: Expression) -> Expression:
        while self._parent[term] is not term:
            self._parent[term] = self._parent[self._parent[term]]
            term = self._parent[term]
        return term

    def unite(self, left: Expression, right: Expression) -> None:
        first, second = self.add(left), self.add(right)
        if first is second:
            return
        self._parent[second] = first
        self.widen(first, self._types[second])
        if second in self._constants:
            self._constants.setdefault(first, self._constants[second])

    def widen(self, term: Expression, type_: DataType) -> None:
        """The class must also hold values of `type_`."""
        root = self.find(term)
        self._types[root] = types.common_type(self._types[root], type_) or self._types[root]

    def fix(self, term: Expression, constant: Literal) -> None:
        """`term = constant` holds in every row."""
        self._constants.setdefault(self.add(term), constant)

    def type_of(self, term: Expression) -> DataType:
        return self._types[self.find(term)]

    def constant_of(self, term: Expression) -> Literal | None:
        return self._constants.get(self.find(term))

    def classes(self) -> list[list[Expression]]:
        found: dict[Expression, list[Expression]] = {}
        for term in self._parent:
            found.setdefault(self.find(term), []).append(term)
        return list(found.values())

    def members(self, term: Expression) -> list[Expression]:
        root = self.find(term)
        return [t for t in self._parent if self.find(t) is root]


def equated_terms(predicate: Expression) -> tuple[Expression, Expression] | None:
    """Return the two terms of an equality between expressions over one atom each; None for any other predicate."""
    if not (isinstance(predicate, Call) and predicate.function == "eq") or fails_on_its_own(predicate):
        return None
    left, right = (stripped(a) for a in predicate.arguments)
    if len(atoms_of(left)) == 1 and len(atoms_of(right)) == 1:
        return left, right
    return None


def fixed_term(predicate: Expression) -> tuple[Expression, Literal] | None:
    """(term, constant) of an equality between an expression over one atom and a constant."""
    if not (isinstance(predicate, Call) and predicate.function == "eq") or fails_on_its_own(predicate):
        return None
    left, right = predicate.arguments
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(right, Literal) and len(atoms_of(left)) == 1 and types.widens(stripped(left).type, left.type):
        return stripped(left), right
    return None
