"""Outer joins: an optional source where the optional side is one, else branches.

Those are the inner join, and the rows of one side without a partner, padded with NULLs.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Expression, Literal, columns_of
from crown.sql.context import Context
from crown.sql.normalise.levels import never_holds
from crown.sql.normalise.nesting import nested_if_residual
from crown.sql.normalise.optional import optional_join, unfolded
from crown.sql.relation import Branch, Relation, Subcondition, atoms_of


def restricted(context: Context, branch: Branch, predicates: list[Expression]) -> Branch:
    """Return the branch with further predicates, given over its columns."""
    added = tuple(context.in_branch(p, branch) for p in predicates)
    return replace(branch, predicates=branch.predicates + added)


def outer_join(
    context: Context, left: Relation, right: Relation, predicates: list[Expression], side: str, node: exp.Expr
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
    both = left.product(right)
    kept, other = (left, right) if keeps_left else (right, left)
    branches = optional_join(context, kept, other, predicates, node)
    if branches is None:
        branches = [restricted(context, b, predicates) for b in both.branches]
        branches += _unmatched(context, kept, other, predicates, node)
    if keeps_left and keeps_right:
        branches += _unmatched(context, right, left, predicates, node)
    possible = [b for b in branches if not never_holds(b.predicates)]
    return both.with_branches(possible or branches[:1])


def _unmatched(
    context: Context, kept: Relation, other: Relation, predicates: list[Expression], node: exp.Expr
) -> list[Branch]:
    """Return the rows of `kept` without a partner in `other`, padded with NULLs."""
    alone = filtered(context, kept, other, predicates, True, node, "outer join", pad=True)
    return [branch.added_by("outer join") for branch in alone.branches]


def filtered(
    context: Context,
    kept: Relation,
    other: Relation,
    predicates: list[Expression],
    negated: bool,
    node: exp.Expr,
    construct: str,
    pad: bool = False,
) -> Relation:
    """The rows of `kept` with (or, negated, without) a partner in `other`; padded with NULLs for `other`'s columns."""
    other = unfolded(context, other)
    if not negated and len(other.branches) > 1:
        other = nested_if_residual(context, other, force=True)
    else:
        other = nested_if_residual(context, other)
    padding: dict[str, Expression] = {}
    if pad:
        columns = [c for t in other.tables for c in t.columns] + list(other.visible)
        padding = {c.id: Literal(None, c.type) for c in columns}
    branches = []
    for branch in kept.branches:
        for partner in other.branches:
            values = {**branch.values, **partner.values}
            own = tuple(context.substitute(p, values, branch.atom_ids | partner.atom_ids) for p in predicates)
            inner = Branch(partner.atoms, partner.predicates + own, partner.conditions)
            branch = attached(branch, Subcondition(inner, negated, context.place(node), construct))
        branches.append(replace(branch, values={**branch.values, **padding}))
    return kept.with_branches(branches)


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
