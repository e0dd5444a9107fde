"""Scalar subqueries: an aggregate without GROUP BY has exactly one row, so it is joined as one more table."""

from __future__ import annotations

from sqlglot import exp

from crown.expression import Expression
from crown.sql.aggregates import Aggregates
from crown.sql.binder import Binder
from crown.sql.context import Context
from crown.sql.places import refuse_aggregate
from crown.sql.queries import Environment, bind_query, body_of, source_relation
from crown.sql.query import Select
from crown.sql.relation import Relation
from crown.sql.scope import Scope


class SelectPlace:
    """Scalar subqueries and aggregates of one SELECT, as the binder meets them."""

    def __init__(self, context: Context, environment: Environment, aggregates: Aggregates | None, clause: str) -> None:
        self.context = context
        self.environment = environment
        self.aggregates = aggregates
        self.clause = clause
        self.joined: list[Relation] = []  # one row each, to be joined to FROM

    def scalar(self, node: exp.Expr, scope: Scope) -> Expression:
        """An uncorrelated aggregate has exactly one row: it is joined as one more table."""
        query = node.this if isinstance(node, exp.Subquery) else node
        barrier = Scope(Relation((), (), ()), scope, "a scalar subquery")
        bound = bind_query(self.context, node, barrier, self.environment)
        single = isinstance(bound.body, Select) and bound.body.group_by == () and bound.body.having is None
        if len(bound.columns) != 1 or not single:
            self.context.fail(
                query,
                "SCALAR-SUBQUERY",
                "this scalar subquery is not maintained",
                reason="it must have exactly one row whatever the tables hold: one aggregate without GROUP BY",
                hint="use MAX, MIN or another aggregate without GROUP BY, or join with the subquery",
            )
        source = self.context.nest("scalar", body_of(self.context, bound))
        relation = source_relation(self.context, source, source, bound.columns)
        self.joined.append(relation)
        return relation.visible[0].reference

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression:
        if self.aggregates is None:
            refuse_aggregate(self.context, node, self.clause)
        return self.aggregates.bind(node, binder)

    def join(self, relation: Relation) -> Relation:
        """The relation with the scalar subqueries' rows beside it."""
        for scalar in self.joined:
            relation = relation.with_branches(b.joined(s) for b in relation.branches for s in scalar.branches)
        self.joined = []
        return relation
