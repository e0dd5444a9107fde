"""Subqueries that compute a value for each row: sources joined to FROM that neither remove nor add rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from crown.ir.expression import Call, Column, Expression
from crown.sql.clauses.subqueries.domain import Pair, domain_of, outside
from crown.sql.context import Context
from crown.sql.normalise.nesting import nest_relation
from crown.sql.normalise.optional import optional_join
from crown.sql.normalise.outer import restricted
from crown.sql.refuse import refuse_far_correlation
from crown.sql.relation import Relation, VisibleColumn, atoms_of
from crown.sql.scope import Scope
from crown.types import BOOLEAN


@dataclass(frozen=True)
class Attachment:
    """One source. It has one row for each outer row at most, or with no predicates exactly one for all of them.

    `grouped`: an aggregate or GROUP BY reads it, so it is joined before rows are grouped.
    """

    relation: Relation
    predicates: tuple[Expression, ...]
    node: exp.Expr
    grouped: bool
    marker: Column  # NULL where it has no row

    @property
    def columns(self) -> tuple[VisibleColumn, ...]:
        return (*self.relation.visible, VisibleColumn("present", self.marker.name, self.marker.type))

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(c.id for c in self.columns)

    @property
    def present(self) -> Expression:
        """Whether it has a row for the outer row."""
        return Call("not", (Call("is_null", (self.marker,), BOOLEAN),), BOOLEAN)

    def joined(self, context: Context, relation: Relation) -> Relation:
        if not self.predicates:
            branches = [b.joined(s) for b in relation.branches for s in self.relation.branches]
            return replace(relation, branches=tuple(branches), hidden=relation.hidden + self.columns)
        joined = optional_join(context, relation, self.relation, self.predicates, self.node, subquery=True)
        assert joined is not None, "an attachment is one source"
        return replace(relation, branches=tuple(joined), hidden=relation.hidden + self.columns)


def equalities(pairs: Sequence[Pair]) -> tuple[Expression, ...]:
    return tuple(Call("eq", (outer, inner), BOOLEAN) for inner, outer in pairs)


def gathered(context: Context, relation: Relation, predicates: Sequence[Expression]) -> Relation:
    """Return the relation; as one source if a side of some equality reads several, since keys need one."""
    sides = [side for p in predicates if isinstance(p, Call) and p.function == "eq" for side in p.arguments]
    for branch in relation.branches:
        own = branch.atom_ids | branch.optional_ids
        if any(len(atoms_of(context.in_branch(side, branch)) & own) > 1 for side in sides):
            return nest_relation(context, relation, distinct=False)
    return relation


def attach(
    context: Context,
    relation: Relation,
    attachments: Sequence[Attachment],
    correlated: list[Expression],
    parent: Scope | None,
) -> tuple[Relation, list[Expression]]:
    """Return the relation with the attachments, and the predicates that compare it with outer queries.

    An attachment that also reads those queries is joined with the values that it reads, which are added to the
    relation; `correlated` then refers to them.
    """
    inner = relation.ids.union(*(a.ids for a in attachments))
    far = outside([p for a in attachments for p in a.predicates], inner)
    own: list[Expression] = []
    if far:
        node = next(a.node for a in attachments if outside(a.predicates, inner))
        values = domain_of(context, far | outside(correlated, inner), parent, node)
        own = [values.rewritten(context, p) for p in correlated]
        correlated = list(equalities(values.pairs(own)))
        relation = values.beside(relation)
        attachments = [
            replace(a, predicates=tuple(values.rewritten(context, p) for p in a.predicates)) for a in attachments
        ]
    for attachment in attachments:
        relation = attachment.joined(context, gathered(context, relation, attachment.predicates))
    return relation.with_branches(restricted(context, b, own) for b in relation.branches), correlated


def attach_near(
    context: Context, relation: Relation, attachments: Sequence[Attachment], parent: Scope | None
) -> Relation:
    """Return the relation with the attachments, which must not compare it with outer queries."""
    relation, correlated = attach(context, relation, attachments, [], parent)
    if correlated:
        refuse_far_correlation(context, correlated[0])
    return relation
