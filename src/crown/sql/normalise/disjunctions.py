"""Factor out what all sides of an OR have in common.

`(a.x = b.y AND p) OR (a.x = b.y AND q)` is `a.x = b.y AND (p OR q)`: only in this form is the equality recognised as a
join. And when every side restricts one atom, that atom is restricted by the OR of those parts, regardless of the rest.
"""

from __future__ import annotations

from crown.ir.expression import Call, Expression
from crown.sql.relation import atoms_of
from crown.sql.scalar.fold import conjunction, conjuncts, fold
from crown.types import BOOLEAN


def factored(predicate: Expression) -> Expression:
    """Return an equivalent predicate with the common parts of an OR outside it; other predicates as they are."""
    if not (isinstance(predicate, Call) and predicate.function == "or"):
        return predicate
    sides = [conjuncts(side) for side in predicate.arguments]
    common = [part for part in sides[0] if all(part in side for side in sides[1:])]
    rests = [[part for part in side if part not in common] for side in sides]
    if not all(rests):
        return conjunction(common)
    rest = _or([conjunction(_by_atoms(r)) for r in rests])
    implied = _implied(rests) if len(atoms_of(rest)) > 1 else []
    return conjunction([*common, *implied, rest])


def _implied(sides: list[list[Expression]]) -> list[Expression]:
    """For each atom that every side restricts by itself: the OR of its restrictions."""
    found = []
    for atom in sorted({a for side in sides for part in side for a in atoms_of(part)}):
        own = [[part for part in side if atoms_of(part) == {atom}] for side in sides]
        if all(own):
            found.append(_or([conjunction(parts) for parts in own]))
    return found


def _by_atoms(parts: list[Expression]) -> list[Expression]:
    """Combine parts over the same atoms: an atom then outputs one truth value instead of its columns."""
    groups: dict[frozenset[str], list[Expression]] = {}
    for part in parts:
        groups.setdefault(atoms_of(part), []).append(part)
    return [conjunction(group) for group in groups.values()]


def _or(parts: list[Expression]) -> Expression:
    return fold(Call("or", tuple(parts), BOOLEAN), lambda _: True)
