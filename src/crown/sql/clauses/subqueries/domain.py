"""The values that a subquery reads of outer queries, as an additional source of the subquery.

A subquery that compares with the outer row other than by equality, or from further in, can't be looked up by key. But
it has one answer for each distinct combination of the outer values that it reads: joined with those, it no longer reads
outer queries, and the outer row finds its answer by equality with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.sql.context import Context
from crown.sql.normalise.atoms import null_rejected
from crown.sql.normalise.nesting import nest_relation
from crown.sql.relation import Branch, Relation, VisibleColumn, atoms_of
from crown.sql.scalar.fold import conjunction
from crown.sql.scope import Scope
from crown.types import BOOLEAN, DataType

Pair = tuple[Expression, Expression]  # inner, outer


@dataclass(frozen=True)
class Domain:
    """`inside` maps the outer columns to those of `relation`. Those in `nullable` may be NULL."""

    relation: Relation
    inside: Mapping[str, Column]
    nullable: frozenset[str]

    def pairs(self, predicates: Sequence[Expression] = ()) -> tuple[Pair, ...]:
        """Return equalities that match only an outer row's values, ignoring NULLs that no predicate accepts."""
        rejected = null_rejected(conjunction(list(predicates)))
        return tuple(
            pair
            for name, column in self.inside.items()
            for pair in same(column, Column(name, column.type), name in self.nullable and column.name not in rejected)
        )

    def beside(self, relation: Relation) -> Relation:
        return relation.product(self.relation)

    def rewritten(self, context: Context, expression: Expression) -> Expression:
        return context.substitute(expression, self.inside, frozenset())


def known(relation: Relation) -> frozenset[str]:
    """Return the ids that have a value in the relation, including the columns of its atoms."""
    return relation.ids | frozenset(i for b in relation.branches for i in b.values)


def outside(predicates: Iterable[Expression], inner: frozenset[str]) -> frozenset[str]:
    """Return the columns that the predicates read of other queries than the one with the columns `inner`."""
    return frozenset(c for p in predicates for c in columns_of(p)) - inner


def domain_of(context: Context, columns: frozenset[str], scope: Scope | None, node: exp.Expr | None) -> Domain:
    """Return the distinct values of the columns, each in the query of `scope` or further out that has it."""
    relation, inside, nullable = Relation((Branch(()),), (), ()), dict[str, Column](), set[str]()
    for level in scope.chain() if scope is not None else ():
        own = columns & level.relation.ids - set(inside)
        if not own:
            continue
        nested = nest_relation(context, level.relation, distinct=True, only=own)
        (branch,) = nested.branches
        found = {name: column for name, column in branch.values.items() if isinstance(column, Column)}
        hidden = tuple(VisibleColumn("", column.name, column.type) for column in found.values())
        relation = relation.product(Relation((Branch(branch.atoms),), (), (), hidden=hidden))
        inside |= found
        for name, column in found.items():
            outer = Column(name, column.type)
            nullable |= {name} if any(context.may_be_null(outer, b) for b in level.relation.branches) else set()
    if not columns <= set(inside):
        context.fail(
            node,
            "CORRELATED-SUBQUERY",
            "this comparison with the outer query is not supported",
            reason="it compares the subquery with an aggregate or another subquery, other than by equality",
            hint="compute the aggregate in a subquery in FROM, and compare with its column",
        )
    return Domain(relation, inside, frozenset(nullable))


def same(inner: Expression, outer: Expression, nullable: bool) -> list[Pair]:
    """Return the equalities that hold exactly when the two are equal or both NULL."""
    if not nullable:
        return [(inner, outer)]
    zero = _zero(inner.type)
    absent = [Call("is_null", (side,), BOOLEAN) for side in (inner, outer)]
    value = [Call("coalesce", (side, zero), side.type) for side in (inner, outer)]
    return [(value[0], value[1]), (absent[0], absent[1])]


def _zero(type_: DataType) -> Expression:
    """Return some value of the type."""
    if type_.element is not None:
        return Call("make_array", (), type_)
    if type_.entry is not None:
        return Call("make_map", (), type_)
    if type_.fields:
        return Call("make_struct", tuple(_zero(field) for _, field in type_.fields), type_)
    if type_ == BOOLEAN:
        return Literal(False, type_)
    if type_ in (types.STRING, types.BINARY):
        return Literal("", type_)
    if type_.is_float:
        return Literal(0.0, type_)
    if type_.is_decimal:
        _, scale = type_.as_decimal or (0, 0)
        return Literal(f"0.{'0' * scale}" if scale else "0", type_)
    return Literal(0, type_)


def reads_one_atom(context: Context, expression: Expression, scope: Scope | None) -> bool:
    """Whether the expression over the columns of the queries around reads one atom of one of them."""
    read = set(columns_of(expression))
    for level in scope.chain() if scope is not None else ():
        if read <= level.relation.ids:
            return all(len(atoms_of(context.in_branch(expression, b))) <= 1 for b in level.relation.branches)
        if read & level.relation.ids:
            return False
    return True
