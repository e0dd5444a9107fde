"""Scalar subqueries: an aggregate without GROUP BY is joined as one more table.

Uncorrelated it has exactly one row; correlated by equality it has one for each group, see `decorrelate`.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Call, Expression, columns_of
from crown.ir.query import Select
from crown.sql.clauses.aggregates import MARK, Aggregates
from crown.sql.clauses.bound import BoundQuery, body_of, refuse_placed, source_relation
from crown.sql.clauses.decorrelate import correlation_of, group_relation
from crown.sql.clauses.from_clause import bind_from
from crown.sql.clauses.grammar import Environment
from crown.sql.clauses.places import refuse_aggregate
from crown.sql.context import Context
from crown.sql.normalise.atoms import null_rejected, strict_columns
from crown.sql.outputs import expand_items
from crown.sql.relation import Relation
from crown.sql.scalar.binder import Binder
from crown.sql.scope import Scope
from crown.types import BOOLEAN

_NOT_PLAIN = ("with_", "distinct", "group", "having", "order", "limit", "offset")


class SelectSubqueries:
    """Scalar subqueries and aggregates of one SELECT, as the binder meets them."""

    def __init__(
        self,
        context: Context,
        environment: Environment,
        clause: str,
        *,
        aggregates: Aggregates | None = None,
        correlates: bool = False,
    ) -> None:
        self.context = context
        self.correlates = correlates
        self.environment = environment
        self.aggregates = aggregates
        self.clause = clause
        self.joined: list[Relation] = []  # to be joined to FROM: one row each, or one for each outer row
        self.predicates: list[Expression] = []  # that join them
        self.required: dict[str, exp.Expr] = {}  # columns that are absent instead of NULL where a group is missing

    def scalar(self, node: exp.Expr, scope: Scope) -> Expression:
        """Return the value of the subquery, as a column of a relation to be joined."""
        query = node
        while isinstance(query, exp.Subquery) and not any(query.args.get(p) for p in _NOT_PLAIN):
            refuse_placed(self.context, query, "joins", "alias")
            query = query.this
        if isinstance(query, exp.Select) and not any(query.args.get(p) for p in _NOT_PLAIN):
            return self._select(query, scope)
        barrier = Scope(Relation((), (), ()), scope, "this scalar subquery")
        return self._single(self.environment.grammar.query(self.context, node, barrier, self.environment), query)

    def _select(self, query: exp.Select, scope: Scope) -> Expression:
        grammar = self.environment.grammar
        relation = bind_from(self.context, query, scope, self.environment)
        relation, correlated = grammar.where(self.context, query.args.get("where"), relation, scope, self.environment)
        if not correlated:
            barrier = Scope(Relation((), (), ()), scope, "the output of a scalar subquery")
            return self._single(grammar.rows(self.context, query, relation, barrier, self.environment), query)
        return self._correlated(query, relation, correlated, scope)

    def _single(self, bound: BoundQuery, query: exp.Expr) -> Expression:
        """An uncorrelated aggregate has exactly one row."""
        single = isinstance(bound.body, Select) and bound.body.group_by == () and bound.body.having is None
        if len(bound.columns) != 1 or not single:
            self._refuse(query)
        source = self.context.nest("scalar", body_of(self.context, bound))
        relation = source_relation(self.context, source, source, bound.columns)
        self.joined.append(relation)
        return relation.visible[0].reference

    def _correlated(
        self, query: exp.Select, relation: Relation, correlated: list[Expression], scope: Scope
    ) -> Expression:
        """Return an aggregate correlated by equality: its value for each group of the correlated columns."""
        pairs = [correlation_of(p, relation.ids) for p in correlated]
        keys = [p for p in pairs if p is not None and p.function == "eq"]
        aggregates = Aggregates(self.context)
        inner = SelectSubqueries(self.context, self.environment, "a scalar subquery", aggregates=aggregates)
        barrier = Scope(Relation((), (), ()), scope, "the output of a scalar subquery")
        binder = Binder(self.context, Scope(relation, barrier), inner)
        items = expand_items(self.context, query, relation)
        values = [item.star or binder.bind(item.node) for item in items]
        if len(values) != 1 or not aggregates.found:
            self._refuse(query)
        counts = {MARK + a.name for a in aggregates.found if a.function == "count"}
        if (
            len(keys) < len(pairs)
            or not self.correlates
            or inner.joined
            or not set(columns_of(values[0])) <= {MARK + a.name for a in aggregates.found}
            or not strict_columns(values[0]) - counts
        ):
            self.context.fail(
                query,
                "CORRELATED-SUBQUERY",
                "this correlated scalar subquery is not supported",
                reason="it is joined by key, so it must be in WHERE, compare with the outer query by equality "
                "only, and be NULL, not a count of 0, if no row matches",
                hint="join with a subquery that groups by the correlated columns",
            )
        groups = group_relation(self.context, relation, [k.inner for k in keys], aggregates.found, values)
        self.joined.append(groups)
        for column, key in zip(groups.visible, keys, strict=False):
            self.predicates.append(Call("eq", (key.outer, column.reference), BOOLEAN))
        self.required[groups.visible[-1].id] = query
        return groups.visible[-1].reference

    def _refuse(self, query: exp.Expr) -> NoReturn:
        self.context.fail(
            query,
            "SCALAR-SUBQUERY",
            "this scalar subquery is not supported",
            reason="it must return exactly one row for any data: one aggregate without GROUP BY",
            hint="use MAX, MIN or another aggregate without GROUP BY, or join with the subquery",
        )

    def check_required(self, predicate: Expression) -> None:
        """A row whose group is missing is dropped by the join: the predicate must not keep it."""
        missing = set(self.required) & set(columns_of(predicate)) - null_rejected(predicate)
        for column in missing:
            self.context.fail(
                self.required[column],
                "CORRELATED-SUBQUERY",
                "this correlated scalar subquery is not supported here",
                reason="it is NULL if no row matches, and this condition may still be true",
                hint="compare it directly, in a separate condition",
            )

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression:
        if self.aggregates is None:
            refuse_aggregate(self.context, node, self.clause)
        return self.aggregates.bind(node, binder)

    def join(self, relation: Relation) -> Relation:
        """Return the relation with the scalar subqueries' rows beside it."""
        for scalar in self.joined:
            relation = relation.with_branches(b.joined(s) for b in relation.branches for s in scalar.branches)
        self.joined = []
        return relation
