"""Whether a join has one row at most for given values of some of its expressions, by primary keys."""

from __future__ import annotations

from collections.abc import Iterable

from crown.ir.expression import Column, Expression, Literal
from crown.sql.context import Context
from crown.sql.normalise.equalities import equated_terms, fixed_term
from crown.sql.relation import Branch, Relation, atom_of
from crown.sql.scalar.fold import conjuncts


def has_one_row(context: Context, relation: Relation, fixed: Iterable[Expression]) -> bool:
    if len(relation.branches) != 1 or relation.branches[0].optional:
        return False
    (branch,) = relation.branches
    known = {value.name for e in fixed if isinstance(value := context.in_branch(e, branch), Column)}
    equal: list[tuple[str, str]] = []
    for part in (part for p in branch.predicates for part in conjuncts(p)):
        constant, terms = fixed_term(part), equated_terms(part)
        if constant is not None and isinstance(constant[0], Column) and isinstance(constant[1], Literal):
            known.add(constant[0].name)
        elif terms is not None and isinstance(terms[0], Column) and isinstance(terms[1], Column):
            equal.append((terms[0].name, terms[1].name))
    return _all_determined(context, branch, known, equal)


def _all_determined(context: Context, branch: Branch, known: set[str], equal: list[tuple[str, str]]) -> bool:
    """Follow equalities and primary keys until nothing more is determined."""
    waiting = {a.id: context.primary_key(a) for a in branch.atoms}
    done: set[str] = set()
    for _ in range(len(waiting) + len(equal) + 1):
        done |= {a for a, key in waiting.items() if key and all(f"{a}.{column}" in known for column in key)}
        for pair in (*equal, *((b, a) for a, b in equal)):
            if pair[0] in known or atom_of(pair[0]) in done:
                known.add(pair[1])
    return done == set(waiting)
