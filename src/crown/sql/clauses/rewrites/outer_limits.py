"""LIMIT around a subquery with ORDER BY: move it into the subquery.

`SELECT * FROM (SELECT ... ORDER BY a) AS q LIMIT 100` is how BI tools limit a query that they are given. The order of a
subquery means nothing in SQL, but Spark keeps it under a LIMIT, and the first rows are what everybody expects. Where
the outer query changes nothing but columns, its rows are those of the subquery, so that the LIMIT may move.
"""

from __future__ import annotations

from sqlglot import exp

from crown.sql.nodes import nodes_of_kind

# Anything else, such as WHERE, would select among the rows before the LIMIT does.
_HARMLESS = frozenset({"expressions", "from_", "limit", "offset", "with_", "hint", "kind"})
_LIMITS = ("limit", "offset")
_NOT_BY_ROW = (exp.AggFunc, exp.Window, exp.UDTF)


def move_limits(query: exp.Expr) -> None:
    """Move them in the whole query."""
    for select in nodes_of_kind(query, exp.Select):
        ordered = _ordered_below(select)
        if ordered is None or not any(select.args.get(part) for part in _LIMITS):
            continue
        if any(ordered.args.get(part) for part in _LIMITS):
            _take_smaller(select, ordered)
            continue
        for part in _LIMITS:
            ordered.set(part, select.args.get(part))
            select.set(part, None)


def _take_smaller(select: exp.Select, ordered: exp.Query) -> None:
    """Limit the subquery to fewer rows, if both limits are numbers and neither query skips rows."""
    outer, inner = _number_of_rows(select), _number_of_rows(ordered)
    if outer is not None and inner is not None:
        if outer < inner:
            ordered.set("limit", select.args["limit"])
        select.set("limit", None)


def _number_of_rows(query: exp.Query) -> int | None:
    limit = query.args.get("limit")
    plain = isinstance(limit, exp.Limit) and not query.args.get("offset") and not limit.args.get("offset")
    count = limit.expression if plain and isinstance(limit, exp.Limit) else None
    return int(count.name) if isinstance(count, exp.Literal) and count.name.isdigit() else None


def _ordered_below(select: exp.Select) -> exp.Query | None:
    """Return the subquery that the query shows row by row, if it is ordered."""
    if any(value for part, value in select.args.items() if part not in _HARMLESS):
        return None
    source = select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Subquery):
        return None
    if any(column.find(*_NOT_BY_ROW) is not None for column in select.expressions):
        return None
    if any(value for part, value in source.this.args.items() if part not in ("this", "alias")):
        return None
    inner = source.this.unnest()
    return inner if isinstance(inner, exp.Query) and inner.args.get("order") else None
