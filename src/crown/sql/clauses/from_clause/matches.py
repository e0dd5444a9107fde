"""Outer joins whose ON has subqueries that can't be attached to one side: matching pairs, and rows without a match.

Whether rows match depends only on the columns that ON reads. So a row of a preserved side has no match exactly when no
matching pair has the same values in these columns.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Column, Expression, Literal, columns_of
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.subqueries.attach import equalities
from crown.sql.clauses.subqueries.domain import same
from crown.sql.context import Context
from crown.sql.normalise.nesting import nest_relation
from crown.sql.normalise.outer import restricted
from crown.sql.relation import Branch, Relation, VisibleColumn
from crown.sql.scope import Scope


def read_columns(relation: Relation, node: exp.Expr) -> frozenset[str]:
    """Return the columns of the relation that a condition may read, in its subqueries too, judging by the names."""
    read = {(column.text("table").lower(), column.name.lower()) for column in node.find_all(exp.Column)}
    qualified = {c.id for t in relation.tables for c in t.columns if (t.alias.lower(), c.name.lower()) in read}
    return frozenset(qualified | {c.id for c in relation.visible if ("", c.name.lower()) in read})


def reads_both(left: Relation, right: Relation, on: exp.Expr) -> bool:
    """Whether one subquery of ON, with what IN or ANY compares it with, reads columns of both sides."""
    tests = [_test(query) for query in on.find_all(exp.Query)]
    return any(read_columns(left, test) and read_columns(right, test) for test in tests)


def _test(query: exp.Expr) -> exp.Expr:
    node = query
    while isinstance(node.parent, exp.Subquery | exp.Paren | exp.Any | exp.All):
        node = node.parent
    quantified = isinstance(node, exp.Any | exp.All) or isinstance(node.parent, exp.In)
    return node.parent if quantified and node.parent is not None else query


def outer_join_by_matches(
    context: Context,
    left: Relation,
    right: Relation,
    predicates: list[Expression],
    join: exp.Join,
    parent: Scope | None,
    environment: Environment,
) -> tuple[Relation, list[Expression]]:
    """Return the rows of the join, and the predicates of ON that read the queries around it."""
    both = left.product(right)
    both = both.with_branches(restricted(context, b, predicates) for b in both.branches)
    on, side = join.args["on"], (join.side or "").upper()
    pairs, correlated = environment.grammar.restrict(
        context, on, both, list(both.correlated), parent, environment, "ON"
    )
    branches = list(pairs.branches)
    beside = frozenset(c for p in predicates for c in columns_of(p))
    for kept, word in ((left, "LEFT"), (right, "RIGHT")):
        if side in (word, "FULL"):
            read = read_columns(kept, on) | (beside & kept.ids)
            branches += _without_match(context, kept, pairs, read, join, environment)
    return pairs.with_branches(branches), correlated


def _without_match(
    context: Context, kept: Relation, pairs: Relation, read: frozenset[str], join: exp.Join, environment: Environment
) -> list[Branch]:
    """Return the rows of a side that are in no matching pair, with NULLs beside them."""
    matched = nest_relation(context, pairs, distinct=True, only=read)
    (branch,) = matched.branches
    found = {name: column for name, column in branch.values.items() if isinstance(column, Column)}
    keys = [
        pair
        for name, column in found.items()
        for pair in same(
            column,
            Column(name, column.type),
            any(context.may_be_null(Column(name, column.type), b) for b in kept.branches),
        )
    ]
    hidden = tuple(VisibleColumn("", column.name, column.type) for column in found.values())
    rows = Relation((Branch(branch.atoms),), (), (), hidden=hidden)
    semi_join = environment.grammar.semi_join
    alone = semi_join(context, kept, rows, list(equalities(keys)), True, "outer join", join)
    padding = {c.id: Literal(None, c.type) for c in pairs.columns if c.id not in kept.ids}
    why = "its ON has a subquery that reads both sides, or keeps both"
    return [replace(b, values={**b.values, **padding}).added_by("outer join", why) for b in alone.branches]
