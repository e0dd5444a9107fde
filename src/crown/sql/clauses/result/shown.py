"""The result of a SELECT: its outputs, DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from crown.ir.expression import Column, Expression
from crown.ir.query import Body, Named, Order, Select
from crown.sql.clauses.bound import BoundQuery, typed
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.result.top import is_output, over_outputs, topped
from crown.sql.context import Context
from crown.sql.normalise.conjunction import Wanted, build_conjunctions, cast_value
from crown.sql.outputs import Item
from crown.sql.relation import Relation


@dataclass(frozen=True)
class Shown:
    """What a SELECT shows of its rows or groups, and in which order."""

    node: exp.Select
    items: list[Item]
    outputs: list[Expression]
    distinct: bool
    order: tuple[Order, ...]
    limit: tuple[int, int] | None

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(i.name, e.type) for i, e in zip(self.items, self.outputs, strict=True))

    def over(self, outputs: list[Expression], rewrite: Callable[[Expression], Expression]) -> Shown:
        """Show `outputs`, and order by them or by what `rewrite` makes of other expressions."""
        columns = typed(replace(self, outputs=outputs).columns)
        order = tuple(
            o if is_output(o.expression, columns) else replace(o, expression=rewrite(o.expression)) for o in self.order
        )
        return replace(self, outputs=outputs, order=order)


def show_rows(context: Context, relation: Relation, shown: Shown) -> BoundQuery:
    """Show rows that are not grouped."""
    ordering = over_outputs(context, shown.order, shown.columns, shown.outputs, distinct=shown.distinct)
    columns, outputs = (*shown.columns, *ordering.columns), [*shown.outputs, *ordering.outputs]
    branches = tuple((b, tuple(context.in_branch(e, b) for e in outputs)) for b in relation.branches)
    bound = BoundQuery(columns, branches, None)
    if shown.distinct:
        bound = BoundQuery(columns, None, _distinct(context, bound))
    return topped(context, bound, ordering, shown.limit)


def _distinct(context: Context, bound: BoundQuery) -> Body:
    assert bound.branches is not None
    columns = typed(bound.columns)
    return Select(
        branches=build_conjunctions(
            context,
            (
                (b, [Wanted(c.name, cast_value(e, c.type), bind=True) for c, e in zip(columns, outputs, strict=True)])
                for b, outputs in bound.branches
            ),
        ),
        outputs=tuple(Named(c.name, Column(c.name, c.type)) for c in columns),
        distinct=True,
    )
