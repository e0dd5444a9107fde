"""Sorting predicates: each goes to its atom's filter, to a class of equal terms, to the residual, or to a correlation.

A level is one conjunction of atoms: a branch, or a condition inside it. Equalities inside a condition never
merge variables of the level around it (they hold only inside), so each level has its own classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crown.ir.expression import Call, Expression, Literal
from crown.sql.context import Context
from crown.sql.normalise.disjunctions import factored
from crown.sql.normalise.equalities import Classes, equated_terms, fixed_term
from crown.sql.refuse import refuse_correlation, refuse_far_correlation, refuse_residual_condition
from crown.sql.relation import Branch, Relation, Subcondition, atoms_of
from crown.sql.scalar.fold import FALSE, UNKNOWN, conjunction, conjuncts
from crown.types import INT32

ONE = Literal(1, INT32)


@dataclass
class Level:
    branch: Branch
    negated: bool = False
    classes: Classes = field(default_factory=Classes)
    filters: dict[str, dict[Expression, None]] = field(default_factory=dict)  # by atom, in order
    residual: list[Expression] = field(default_factory=list)
    correlated: list[tuple[Expression, Expression]] = field(default_factory=list)  # (outer term, inner term or 1)
    children: list[Level] = field(default_factory=list)
    needed: dict[Expression, str] = field(default_factory=dict)  # terms that must be variables -> a name for them
    variables: dict[Expression, str] = field(default_factory=dict)  # class representative -> variable
    never: bool = False  # no row can satisfy it

    def need(self, term: Expression, name: str = "") -> None:
        self.classes.add(term)
        self.needed[term] = self.needed.get(term) or name

    def keep(self, atom: str, predicate: Expression) -> None:
        self.filters.setdefault(atom, {})[predicate] = None


def never_holds(predicates: tuple[Expression, ...]) -> bool:
    """Whether some predicate is known to hold for no row."""
    return any(part in (FALSE, UNKNOWN) for predicate in predicates for part in conjuncts(predicate))


def living_branches(relation: Relation) -> list[Branch]:
    """The branches that can have rows; the first one if none can."""
    return [b for b in relation.branches if not never_holds(b.predicates)] or list(relation.branches[:1])


def build_level(context: Context, branch: Branch) -> Level:
    """Return the level of a branch, with its conditions below it."""
    return _build(context, branch, None, None)


def _build(context: Context, branch: Branch, parent: Level | None, condition: Subcondition | None) -> Level:
    level = Level(branch, negated=condition is not None and condition.negated)
    inner = branch.atom_ids
    outer = parent.branch.atom_ids if parent is not None else frozenset()
    guards: list[Expression] = []
    level.never = never_holds(branch.predicates)
    for predicate in [part for p in branch.predicates for part in conjuncts(factored(p))]:
        touched = atoms_of(predicate)
        if not touched:
            level.keep(branch.atoms[0].id, predicate)
        elif touched <= inner:
            _place(context, level, predicate, touched, condition)
        elif condition is not None and touched <= outer:
            guards.append(predicate)
        elif condition is not None:
            _correlate(context, level, predicate, inner, outer, condition)
        else:
            refuse_far_correlation(context, predicate)
    if condition is not None:
        _guard(context, level, guards, condition)
    for child in branch.conditions:
        built = _build(context, child.branch, level, child)
        if built.never:
            level.never = level.never or not child.negated
            continue
        level.children.append(built)
        for outer_term, inner_term in built.correlated:
            level.need(outer_term)
            level.classes.widen(outer_term, inner_term.type)
    return level


def _place(
    context: Context, level: Level, predicate: Expression, touched: frozenset[str], condition: Subcondition | None
) -> None:
    terms = equated_terms(predicate)
    if len(touched) == 1:
        level.keep(next(iter(touched)), predicate)
        if fixed := fixed_term(predicate):
            level.classes.fix(*fixed)
        elif terms is not None:
            level.classes.unite(*terms)
    elif terms is not None:
        level.classes.unite(*terms)
    elif condition is None:
        level.residual.append(predicate)
    else:
        refuse_residual_condition(context, predicate, condition)


def _correlate(
    context: Context,
    level: Level,
    predicate: Expression,
    inner: frozenset[str],
    outer: frozenset[str],
    condition: Subcondition,
) -> None:
    if not atoms_of(predicate) <= inner | outer:
        refuse_far_correlation(context, predicate)
    terms = equated_terms(predicate)
    if terms is None:
        refuse_correlation(context, predicate, condition)
    outer_term, inner_term = terms if atoms_of(terms[1]) <= inner else (terms[1], terms[0])
    if not (atoms_of(outer_term) <= outer and atoms_of(inner_term) <= inner):
        refuse_correlation(context, predicate, condition)
    level.classes.add(inner_term)
    level.correlated.append((outer_term, inner_term))


def _guard(context: Context, level: Level, guards: list[Expression], condition: Subcondition) -> None:
    """Predicates on the outer row alone: an outer term that is 1 when they hold, else NULL, is equated with 1."""
    by_atom: dict[frozenset[str], list[Expression]] = {}
    for predicate in guards:
        by_atom.setdefault(atoms_of(predicate), []).append(predicate)
    for touched, predicates in by_atom.items():
        if len(touched) > 1:
            refuse_correlation(context, predicates[0], condition)
        level.correlated.append((Call("case", (conjunction(predicates), ONE, Literal(None, INT32)), INT32), ONE))
