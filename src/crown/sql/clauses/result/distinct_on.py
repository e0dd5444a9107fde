"""DISTINCT ON: the first row of each key by the order, then the order and LIMIT of the SELECT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from crown.ir.expression import Column, Expression
from crown.sql.clauses.bound import BoundQuery, typed
from crown.sql.clauses.from_clause.definitions import OutputColumn
from crown.sql.clauses.result.order_by import bind_subject
from crown.sql.clauses.result.shown import Shown, show_rows
from crown.sql.clauses.result.top import is_output
from crown.sql.clauses.subqueries.first_rows import first_rows
from crown.sql.context import Context
from crown.sql.outputs import Item


def has_distinct_on(node: exp.Expr) -> bool:
    distinct = node.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


def bind_distinct_on(
    context: Context, node: exp.Select, columns: Sequence[OutputColumn], other: Callable[[exp.Expr], Expression]
) -> tuple[Expression, ...] | None:
    """Return the keys of DISTINCT ON; those that an output shows are columns with its name."""
    if not has_distinct_on(node):
        return None
    on = node.args["distinct"].args["on"]
    keys = on.expressions if isinstance(on, exp.Tuple) else [on.this if isinstance(on, exp.Paren) else on]
    return tuple(dict.fromkeys(bind_subject(context, key, columns, other) for key in keys))


def distinct_on(
    context: Context, shown: Shown, on: tuple[Expression, ...] | None, show: Callable[[Shown], BoundQuery]
) -> BoundQuery:
    """Return the first rows of what `show` returns for a SELECT without its order; all of them if `on` is None."""
    if on is None:
        return show(shown)
    names = shown.columns
    hidden = dict.fromkeys(e for e in (*on, *(o.expression for o in shown.order)) if not is_output(e, names))
    items = [Item(f"c{i + 1}", shown.node) for i in range(len(names) + len(hidden))]
    rows = show(Shown(shown.node, items, [*shown.outputs, *hidden], False, (), None))
    places = {name.name: i for i, name in reversed(list(enumerate(names)))}
    later = {e: len(names) + i for i, e in enumerate(hidden)}

    def place(expression: Expression) -> int:
        return later[expression] if expression in later else places[expression.name]  # type: ignore[union-attr]

    below = [Column(c.name, c.type) for c in typed(rows.columns)]
    order = tuple(replace(o, expression=below[place(o.expression)]) for o in shown.order)
    first = first_rows(context, rows, [below[place(e)].name for e in on], order, (1, 0), "DISTINCT ON")
    found: list[Expression] = [c.reference for c in first.visible]
    order = tuple(
        replace(o, expression=found[later[o.expression]]) if o.expression in later else o for o in shown.order
    )
    return show_rows(context, first, replace(shown, outputs=found[: len(names)], order=order))
