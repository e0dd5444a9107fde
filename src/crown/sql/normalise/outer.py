"""Outer joins: an optional source where the optional side is one, else branches.

Those are the inner join, and the rows of one side without a partner, padded with NULLs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from crown.ir.expression import Expression, Literal, columns_of
from crown.sql.context import Context
from crown.sql.normalise.disjunctions import factored
from crown.sql.normalise.equalities import equated_terms
from crown.sql.normalise.levels import never_holds
from crown.sql.normalise.nesting import nest_relation, nested_if_residual
from crown.sql.normalise.optional import optional_join
from crown.sql.relation import Branch, Relation, Subcondition, atoms_of
from crown.sql.scalar.fold import conjuncts

MAX_KEPT_BRANCHES = 4


class SemiJoin(Protocol):
    """Returns the rows of `left` with, or negated without, a row of `right` that satisfies the predicates with it."""

    def __call__(
        self,
        context: Context,
        left: Relation,
        right: Relation,
        predicates: list[Expression],
        negated: bool,
        construct: str,
        node: exp.Expr,
    ) -> Relation: ...


def restricted(context: Context, branch: Branch, predicates: list[Expression]) -> Branch:
    """Return the branch with further predicates, given over its columns."""
    added = tuple(context.in_branch(p, branch) for p in predicates)
    return replace(branch, predicates=branch.predicates + added)


def outer_join(
    context: Context,
    left: Relation,
    right: Relation,
    predicates: list[Expression],
    side: str,
    node: exp.Expr,
    semi_join: SemiJoin,
) -> Relation:
    """`left` LEFT, RIGHT or FULL OUTER JOIN `right` ON `predicates`."""
    keeps_left, keeps_right = side in ("LEFT", "FULL"), side in ("RIGHT", "FULL")
    if keeps_left and not keeps_right:
        right, predicates = _pushed(context, right, predicates)
    if keeps_right and not keeps_left:
        left, predicates = _pushed(context, left, predicates)
    if keeps_left:
        right = nested_if_residual(context, right)
    if keeps_right:
        left = nested_if_residual(context, left)
        # The joined rows and the rows of the right side without a partner both read it: flattened, the branches of a
        # chain of FULL JOINs would be a quadratic number. And what USING shows of several sources is a column of one.
        computed = keeps_left and len(left.branches) > 1 and not _are_by_key(context, left, right, predicates)
        if computed or len(left.branches) > MAX_KEPT_BRANCHES:
            left = nest_relation(context, left, distinct=False)
    both = left.product(right)
    kept, other = (left, right) if keeps_left else (right, left)
    by_key = _are_by_key(context, kept, other, predicates)
    branches = optional_join(context, kept, other, predicates, node) if by_key else None
    if branches is None:
        why = "it is itself a join or a union" if by_key else "its ON compares other than by equality with one table"
        branches = [restricted(context, b, predicates) for b in both.branches]
        branches += _unmatched(context, kept, other, predicates, node, semi_join, why)
    if keeps_left and keeps_right:
        branches += _unmatched(context, right, left, predicates, node, semi_join, "FULL JOIN keeps both sides")
    possible = [b for b in branches if not never_holds(b.predicates)]
    return both.with_branches(possible or branches[:1])


def _are_by_key(context: Context, kept: Relation, other: Relation, predicates: list[Expression]) -> bool:
    return all(_is_by_key(context, k, o, predicates) for k in kept.branches for o in other.branches)


def _is_by_key(context: Context, kept: Branch, other: Branch, predicates: list[Expression]) -> bool:
    """Whether each predicate is an equality between one source of each side, or about one source."""
    values, atoms = {**kept.values, **other.values}, kept.atom_ids | other.atom_ids
    parts = [part for p in predicates for part in conjuncts(factored(context.substitute(p, values, atoms)))]
    return all(len(atoms_of(part)) <= 1 or _is_key(part, other.atom_ids) for part in parts)


def _is_key(predicate: Expression, other: frozenset[str]) -> bool:
    terms = equated_terms(predicate)
    return terms is not None and (atoms_of(terms[0]) <= other) != (atoms_of(terms[1]) <= other)


def _unmatched(
    context: Context,
    kept: Relation,
    other: Relation,
    predicates: list[Expression],
    node: exp.Expr,
    semi_join: SemiJoin,
    why: str,
) -> list[Branch]:
    """Return the rows of `kept` without a partner in `other`, padded with NULLs."""
    alone = semi_join(context, kept, other, predicates, True, "outer join", node)
    padding = {c.id: Literal(None, c.type) for c in other.columns}
    reason = f"{', '.join(t.alias for t in other.tables)}: {why}"
    return [replace(b, values={**b.values, **padding}).added_by("outer join", reason) for b in alone.branches]


def attached(branch: Branch, condition: Subcondition) -> Branch:
    """Return the branch with a condition. Hoist EXISTS predicates that only touch outer columns."""
    inner = condition.branch
    if not condition.negated:
        hoisted = tuple(p for p in inner.predicates if not atoms_of(p) & inner.atom_ids and atoms_of(p))
        if hoisted:
            rest = tuple(p for p in inner.predicates if p not in hoisted)
            branch = replace(branch, predicates=branch.predicates + hoisted)
            condition = replace(condition, branch=replace(inner, predicates=rest))
    return replace(branch, conditions=(*branch.conditions, condition))


def _pushed(context: Context, optional: Relation, predicates: list[Expression]) -> tuple[Relation, list[Expression]]:
    """Conditions on the optional side alone restrict that side before the join."""
    ids = optional.ids
    own = [p for p in predicates if set(columns_of(p)) <= ids and set(columns_of(p))]
    if not own:
        return optional, predicates
    rest = [p for p in predicates if p not in own]
    return optional.with_branches(restricted(context, b, own) for b in optional.branches), rest
