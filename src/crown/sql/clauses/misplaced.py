"""Clauses where aggregates or scalar subqueries are not allowed."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.scalar.binder import Binder
from crown.sql.scope import Scope


def refuse_aggregate(context: Context, node: exp.Expr, clause: str) -> NoReturn:
    context.fail(
        node,
        "AGGREGATE-PLACE",
        f"aggregates are not allowed in {clause}",
        reason="aggregates are computed after rows are joined and filtered",
        hint="use HAVING, or a subquery with GROUP BY",
    )


def refuse_window(context: Context, node: exp.Expr, clause: str) -> NoReturn:
    context.fail(
        node,
        "WINDOW-FUNCTION",
        f"window functions are not allowed in {clause}",
        reason="they are computed after rows are joined, filtered and grouped",
        hint="use QUALIFY, or a subquery in FROM and WHERE around it",
    )


class NoAggregates:
    """A clause such as ON: neither aggregates nor scalar subqueries."""

    def __init__(self, context: Context, clause: str) -> None:
        self.context = context
        self.clause = clause

    def scalar(self, node: exp.Expr, scope: Scope) -> Expression:
        self.context.fail(
            node,
            "SUBQUERY-PLACE",
            f"scalar subqueries are not allowed in {self.clause}",
            hint="move the comparison to WHERE",
        )

    def mark(self, node: exp.Expr, binder: Binder) -> Expression | None:
        return None

    def aggregate(self, node: exp.Expr, binder: Binder) -> Expression:
        refuse_aggregate(self.context, node, self.clause)

    def window(self, node: exp.Expr, binder: Binder) -> Expression:
        refuse_window(self.context, node, self.clause)
