"""The first rows of a SELECT by an order over its outputs; other expressions of the order become hidden columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crown.ir.expression import Call, Column, Expression
from crown.ir.query import NO_LIMIT, Order, Top
from crown.sql.clauses.bound import BoundQuery, body_of
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.context import Context


@dataclass(frozen=True)
class Ordering:
    """An order over the outputs and `columns`, which are not shown."""

    order: tuple[Order, ...]
    columns: tuple[OutputColumn, ...] = ()
    outputs: tuple[Expression, ...] = ()


def is_output(expression: Expression, columns: tuple[OutputColumn, ...]) -> bool:
    return isinstance(expression, Column) and any(expression.name == c.name for c in columns)


def over_outputs(
    context: Context,
    order: tuple[Order, ...],
    columns: tuple[OutputColumn, ...],
    outputs: list[Expression],
    *,
    distinct: bool,
) -> Ordering:
    """ORDER BY over the output columns: an expression that an output shows is that output.

    Without DISTINCT, what else it needs becomes a column that is not shown.
    """
    hidden: dict[Expression, OutputColumn] = {}

    def rewrite(expression: Expression) -> Expression | None:
        if is_output(expression, columns):
            return expression
        for column, output in zip(columns, outputs, strict=True):
            if output == expression:
                return Column(column.name, column.type)
        if isinstance(expression, Call):
            arguments = [rewrite(a) for a in expression.arguments]
            return None if None in arguments else replace(expression, arguments=tuple(filter(None, arguments)))
        return None if isinstance(expression, Column) else expression

    def hide(expression: Expression) -> Expression:
        if distinct:
            names = [expression.name] if isinstance(expression, Column) else []
            place = context.places.get(expression) or next((context.order_places.get(n) for n in names), None)
            context.fail(
                place,
                "ORDER-NOT-OUTPUT",
                "ORDER BY uses a column that is not in the output",
                reason="one DISTINCT row may have many values of it",
                hint="add it to SELECT",
            )
        taken = {c.name.lower() for c in (*columns, *hidden.values())}
        name = next(n for i in range(1, len(taken) + 2) if (n := f"order_{i}") not in taken)
        column = hidden.setdefault(expression, OutputColumn(name, expression.type))
        return Column(column.name, column.type)

    rewritten = tuple(replace(o, expression=rewrite(o.expression) or hide(o.expression)) for o in order)
    return Ordering(rewritten, tuple(hidden.values()), tuple(hidden))


def topped(context: Context, bound: BoundQuery, ordering: Ordering, limit: tuple[int, int] | None) -> BoundQuery:
    """Apply LIMIT to `bound`, which has the outputs and then the columns of `ordering`."""
    if limit is None and not ordering.columns:
        return replace(bound, order=ordering.order)
    shown = len(bound.columns) - len(ordering.columns)
    number, skipped = limit or (NO_LIMIT, 0)
    hidden = shown if ordering.columns else None
    top = Top(body_of(context, bound), ordering.order, number, skipped, shown=hidden)
    return BoundQuery(bound.columns[:shown], None, top)
