"""Sort predicates: each goes to its atom's filter, to a class of equal terms, to the residual, or to a correlation.

A level is one conjunction of atoms: a branch, a condition inside it, or an optional source. Equalities inside a
condition never merge variables of the level around it (they hold only inside), so each level has its own classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crown.ir.expression import Call, Expression, Literal, fails_on_its_own
from crown.sql.context import Context
from crown.sql.normalise.disjunctions import factored
from crown.sql.normalise.equalities import Classes, equated_terms, fixed_term
from crown.sql.refuse import refuse_correlation, refuse_far_correlation
from crown.sql.relation import Branch, OptionalSource, Relation, Subcondition, atoms_of
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
    optional: list[Level] = field(default_factory=list)
    misfit: OptionalSource | None = None  # optional source that can't attach to one atom by key, or blocks another
    needed: dict[Expression, str] = field(default_factory=dict)  # terms that must be variables -> a name for them
    variables: dict[Expression, str] = field(default_factory=dict)  # class representative -> variable
    never: bool = False  # no row can satisfy it
    subquery: bool = False  # of an optional source: that it is the value of a subquery

    def need(self, term: Expression, name: str = "") -> None:
        self.classes.add(term)
        self.needed[term] = self.needed.get(term) or name

    def holder(self, expression: Expression) -> Level:
        """The level of the atom that the expression reads: this one, or that of an optional source below it."""
        atoms = atoms_of(expression)
        for below in self.optional:
            found = below.holder(expression)
            if atoms <= found.branch.atom_ids:
                return found
        return self

    def is_optional(self, expression: Expression) -> bool:
        """Whether the expression reads an optional source."""
        return not atoms_of(expression) <= self.branch.atom_ids

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
        elif touched <= inner | branch.optional_ids:
            level.residual.append(predicate)
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
    _build_optional(context, level)
    return level


def _place(
    context: Context, level: Level, predicate: Expression, touched: frozenset[str], condition: Subcondition | None
) -> None:
    terms = equated_terms(predicate)
    if len(touched) == 1 and not fails_on_its_own(predicate):
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
        refuse_correlation(context, predicate, condition)


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
        level.correlated.append((_holds(predicates), ONE))


def _holds(predicates: list[Expression]) -> Expression:
    """1 where the predicates hold, else NULL."""
    return Call("case", (conjunction(predicates), ONE, Literal(None, INT32)), INT32)


def _build_optional(context: Context, level: Level) -> None:
    """The levels of the optional sources: each below the level whose atom its ON reads."""
    levels: dict[str, Level] = {}
    for one in level.branch.optional:
        own = _optional_level(context, level, levels, one)
        if own is None:
            read = {atom for predicate in one.predicates for atom in atoms_of(predicate)} - {one.source.id}
            level.misfit = next((other for other in level.branch.optional if other.source.id in read), one)
            return
        levels[one.source.id] = own


def _optional_level(context: Context, level: Level, levels: dict[str, Level], one: OptionalSource) -> Level | None:
    own, atom = Level(Branch((one.source,), one.predicates), subquery=one.subquery), one.source.id
    parts = [part for p in one.predicates for part in conjuncts(factored(p))]
    outer = [part for part in parts if atoms_of(part) - {atom}]
    around = frozenset(a for part in outer for a in atoms_of(part)) - {atom}
    parent = level if around <= level.branch.atom_ids else levels.get(next(iter(around))) if len(around) == 1 else None
    if parent is None or (parent is not level and not all(_needs_row(context, part, around) for part in outer)):
        return None
    for part in parts:
        touched = atoms_of(part)
        if part not in outer:
            _place(context, own, part, touched, None) if touched else own.keep(atom, part)
        elif atom in touched and not _match(own, part):
            return None
    guards: dict[frozenset[str], list[Expression]] = {}
    for part in outer:
        if atom not in atoms_of(part):
            guards.setdefault(atoms_of(part), []).append(part)
    own.correlated += [(_holds(predicates), ONE) for predicates in guards.values()]
    if any(len(touched) > 1 for touched in guards) or not _has_home(parent, [term for term, _ in own.correlated]):
        return None
    for outer_term, inner_term in own.correlated:
        parent.need(outer_term)
        parent.classes.widen(outer_term, inner_term.type)
    parent.optional.append(own)
    return own


def _match(own: Level, predicate: Expression) -> bool:
    """Record an equality with a term of the outer level; return False if the predicate is not one."""
    terms = equated_terms(predicate)
    if terms is None:
        return False
    atom = own.branch.atom_ids
    outer_term, inner_term = terms if atoms_of(terms[1]) <= atom else (terms[1], terms[0])
    if not atoms_of(inner_term) <= atom or atoms_of(outer_term) & atom:
        return False
    own.classes.add(inner_term)
    own.correlated.append((outer_term, inner_term))
    return True


def _needs_row(context: Context, predicate: Expression, atoms: frozenset[str]) -> bool:
    """Whether the predicate holds only where the atoms have a row."""
    return never_holds((context.without_rows(predicate, atoms, frozenset()),))


def _has_home(level: Level, terms: list[Expression]) -> bool:
    """Whether one atom of the level has all the terms, or terms that equal them."""
    homes = level.branch.atom_ids
    for term in terms:
        level.classes.add(term)
        homes &= frozenset(atom for member in level.classes.members(term) for atom in atoms_of(member))
    return bool(homes)
