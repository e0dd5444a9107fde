"""ASOF JOIN: each row of the left side with the nearest row of the right side, as a LATERAL subquery with LIMIT 1."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind

ASOF = "crown_asof"  # marks the subquery that an ASOF JOIN is written as
_DESCENDING: dict[type[exp.Expr], bool] = {exp.GT: True, exp.GTE: True, exp.LT: False, exp.LTE: False}


def write_out_asof(context: Context, query: exp.Expr) -> None:
    """Replace all ASOF joins of the query."""
    for join in nodes_of_kind(query, exp.Join):
        if (join.args.get("method") or "").upper() == "ASOF":
            _rewrite(context, join)


def _rewrite(context: Context, join: exp.Join) -> None:
    table = join.this
    alias = table.alias_or_name
    if (side := (join.side or "").upper()) not in ("", "LEFT"):
        _refuse_side(context, join, side)
    if not alias:
        _refuse(context, join)
    condition: exp.Expr = join.args.get("on") or _using(context, join, alias)
    parts: list[exp.Expr] = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    compared = [part for part in parts if type(part) in _DESCENDING]
    inside = [side for part in compared for side in (part.this, part.expression) if _reads_only(side, alias)]
    if len(compared) != 1 or len(inside) != 1:
        _refuse(context, join)
    # left > right: the greatest right.
    descending = _DESCENDING[type(compared[0])] == (inside[0] is compared[0].expression)
    item = table.copy()
    item.set("joins", None)
    nearest = exp.Select(expressions=[exp.Star()]).from_(item).where(*(part.copy() for part in parts))
    nearest = nearest.order_by(exp.Ordered(this=inside[0].copy(), desc=descending, nulls_first=False)).limit(1)
    nearest.meta[ASOF] = True
    if using := join.args.get("using"):
        names = [exp.to_identifier(name.name) for name in using]
        nearest.set("expressions", [exp.Star(except_=names)])
    lateral = exp.Lateral(this=exp.Subquery(this=nearest), alias=exp.TableAlias(this=exp.to_identifier(alias)))
    left = (join.side or "").upper() == "LEFT"
    plain = exp.Join(this=lateral, side="LEFT", on=exp.true()) if left else exp.Join(this=lateral, kind="CROSS")
    join.replace(plain)


def _using(context: Context, join: exp.Join, alias: str) -> exp.Expr:
    """USING (a, b): equal in all but the last column, in which the left is the later one."""
    select = join.find_ancestor(exp.Select)
    source = select.args.get("from_") if select is not None and join is select.args["joins"][0] else None
    if source is None or not source.this.alias_or_name or not join.args.get("using"):
        _refuse(context, join)
    names = [name.name for name in join.args["using"]]
    sides = [(exp.column(name, source.this.alias_or_name), exp.column(name, alias)) for name in names]
    kinds = [exp.EQ] * (len(names) - 1) + [exp.GTE]
    return exp.and_(*(kind(this=one, expression=other) for kind, (one, other) in zip(kinds, sides, strict=True)))


def _reads_only(node: exp.Expr, alias: str) -> bool:
    columns = nodes_of_kind(node, exp.Column)
    return bool(columns) and all(column.text("table").lower() == alias.lower() for column in columns)


def _refuse_side(context: Context, join: exp.Join, side: str) -> NoReturn:
    swapped = "write it from the other side: b ASOF LEFT JOIN a" if side == "RIGHT" else "use ASOF LEFT JOIN"
    context.fail(
        join,
        "JOIN-KIND",
        f"ASOF {side} JOIN is not supported",
        reason="each row of the left side gets its nearest row of the right side: ASOF JOIN drops rows without one, "
        "ASOF LEFT JOIN shows them with NULLs",
        hint=swapped,
    )


def _refuse(context: Context, join: exp.Join) -> NoReturn:
    context.fail(
        join,
        "JOIN-KIND",
        "this ASOF JOIN is not supported",
        reason="the nearest row is found by exactly one comparison between the sides, beside equalities",
        hint="write ASOF [LEFT] JOIN b ON a.k = b.k AND a.ts >= b.ts, with the table before each column",
    )
