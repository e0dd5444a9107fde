"""LIMIT, OFFSET and FETCH, as numbers. `top` applies them."""

from __future__ import annotations

from sqlglot import exp

from crown.ir.query import NO_LIMIT
from crown.sql.clauses.result.order_by import is_all
from crown.sql.context import Context


def bind_limit(context: Context, node: exp.Expr) -> tuple[int, int] | None:
    """(limit, offset) of `node`, or None if all rows remain.

    Without ORDER BY the planner takes the first rows by all columns.
    """
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if isinstance(limit, exp.Limit) and is_all(limit.expression):
        limit = None
    skipped = _count(context, offset, offset.expression) if offset is not None else 0
    if limit is None:
        return (NO_LIMIT, skipped) if skipped else None
    count = (limit.args.get("count") or exp.Literal.number(1)) if isinstance(limit, exp.Fetch) else limit.expression
    options = limit.args.get("limit_options")
    odd = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    if limit.args.get("expressions") or odd:
        context.fail(limit, "LIMIT", "this form of LIMIT is not supported", hint="write LIMIT and a number")
    return _count(context, limit, count), skipped


def _count(context: Context, clause: exp.Expr, node: exp.Expr | None) -> int:
    if not isinstance(node, exp.Literal) or not node.name.isdigit() or len(node.name) > 18:
        context.fail(
            clause,
            "LIMIT",
            "LIMIT and OFFSET must be whole numbers of at most 18 digits",
            hint="write LIMIT 10, for example",
        )
    return int(node.name)
