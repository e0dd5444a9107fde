"""ORDER BY over output columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Column, Expression
from crown.ir.query import Order
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.context import Context
from crown.sql.misspelt import nearest


def bind_order(
    context: Context,
    node: exp.Expr,
    columns: Sequence[OutputColumn],
    other: Callable[[exp.Expr], Expression] | None = None,
) -> tuple[Order, ...]:
    """Return the ORDER BY of `node`; `other` binds expressions that are not an output column."""
    clause = node.args.get("order")
    if clause is None:
        return ()
    items = [item for part in clause.expressions for item in _written_out(part, len(columns))]
    return tuple(_order(context, item, columns, other) for item in items)


def _written_out(item: exp.Expr, columns: int) -> list[exp.Expr]:
    """Return ORDER BY ALL as the positions of all columns."""
    if not is_all(item.this if isinstance(item, exp.Ordered) else item):
        return [item]
    found = []
    for position in range(1, columns + 1):
        one = item.copy()
        one.set("this", exp.Literal.number(position))
        found.append(one)
    return found


def is_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


def _order(
    context: Context, item: exp.Expr, columns: Sequence[OutputColumn], other: Callable[[exp.Expr], Expression] | None
) -> Order:
    subject = item.this if isinstance(item, exp.Ordered) else item
    descending, nulls_first = direction(context, item)
    return Order(bind_subject(context, subject, columns, other), descending, nulls_first)


def direction(context: Context, item: exp.Expr) -> tuple[bool, bool]:
    """Whether an item of ORDER BY is descending, and whether it has NULLs first."""
    descending = bool(item.args.get("desc")) if isinstance(item, exp.Ordered) else False
    nulls_first = item.args.get("nulls_first") if isinstance(item, exp.Ordered) else None
    if item.args.get("with_fill") is not None:
        context.fail(item, "UNSUPPORTED", "WITH FILL is not supported", hint="remove it")
    return descending, bool(nulls_first) if nulls_first is not None else not descending


def bind_subject(
    context: Context, node: exp.Expr, columns: Sequence[OutputColumn], other: Callable[[exp.Expr], Expression] | None
) -> Expression:
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        column = columns[ordinal(context, node, len(columns)) - 1]
        return Column(column.name, column.type)
    if isinstance(node, exp.Column) and not node.text("table"):
        found = [c for c in columns if c.name.lower() == node.name.lower()]
        if found:
            return Column(found[0].name, found[0].type)
    if other is not None:
        return other(node)
    refuse_order(context, node, columns)


def refuse_order(context: Context, node: exp.Expr, columns: Sequence[OutputColumn]) -> NoReturn:
    context.fail(
        node,
        "ORDER-NOT-OUTPUT",
        "ORDER BY must use output columns here",
        hint=nearest(node.name, [c.name for c in columns]) or "use the name or position of a column",
    )


def ordinal(context: Context, node: exp.Expr, count: int) -> int:
    """Return a column's position, from 1."""
    text = node.name
    if not text.isdigit() or not 1 <= int(text) <= count:
        context.fail(node, "ORDINAL", f"there is no output column {text}", hint=f"positions are 1 to {count}")
    return int(text)
