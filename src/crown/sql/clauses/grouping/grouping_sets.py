"""GROUPING SETS, ROLLUP and CUBE as lists of groupings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from sqlglot import exp

from crown.sql.context import Context

MOST_SETS = 256
_Set = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class GroupNodes:
    """The expressions of GROUP BY; `sets`: the positions of those that each grouping has, if there are several."""

    nodes: list[exp.Expr]
    sets: tuple[tuple[int, ...], ...] | None = None


def grouping_sets(context: Context, clause: exp.Expr) -> GroupNodes | None:
    """Return the groupings of GROUP BY; None if it has no grouping sets."""
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    if clause.args.get("totals"):
        context.fail(clause, "GROUPING-SETS", "WITH TOTALS is not supported", hint="use ROLLUP")
    written = list(clause.expressions)
    # GROUP BY a, b WITH ROLLUP, or GROUP BY a, b GROUPING SETS (...): all that is grouped by comes
    # before.
    after = [part for name in ("rollup", "cube", "grouping_sets") for part in clause.args.get(name) or ()]
    if not after and not any(isinstance(e, several) for e in written):
        return None
    if after:
        (last, *more) = after
        if more or any(isinstance(e, several) for e in written):
            context.fail(last, "GROUPING-SETS", "this combination of grouping sets is not supported")
        found = _sets(context, type(last)(expressions=last.expressions or written))
    else:
        parts = [_sets(context, e) if isinstance(e, several) else [(e,)] for e in written]
        _check_number(context, clause, prod(len(part) for part in parts))
        found = [tuple(e for part in choice for e in part) for choice in product(*parts)]
    _check_number(context, clause, len(found))
    nodes = list(written) if after else []
    nodes += [e for one in found for e in one]
    distinct = list(dict.fromkeys(nodes))
    position = {node: index for index, node in enumerate(distinct)}
    sets = tuple(tuple(dict.fromkeys(position[e] for e in one)) for one in found)
    return GroupNodes(distinct, sets)


def _check_number(context: Context, clause: exp.Expr, number: int) -> None:
    if number > MOST_SETS:
        context.fail(
            clause,
            "GROUPING-SETS",
            f"there are {number} grouping sets, more than {MOST_SETS}",
            reason="each is maintained separately, and several lists are combined with each other",
            hint="list the needed sets in one GROUPING SETS (...), or split the query into several views",
        )


def _sets(context: Context, node: exp.Expr) -> list[_Set]:
    if isinstance(node, exp.GroupingSets):
        return [one for part in node.expressions for one in _sets(context, part)]
    if not isinstance(node, exp.Rollup | exp.Cube):
        return [_members(node)]
    items = [_members(part) for part in node.expressions]
    if isinstance(node, exp.Rollup):
        chosen = [tuple(items[:count]) for count in range(len(items), -1, -1)]
    else:
        if len(items) > 10:
            context.fail(node, "GROUPING-SETS", "CUBE of more than 10 expressions is not supported")
        chosen = [choice for count in range(len(items), -1, -1) for choice in combinations(items, count)]
    return [tuple(e for item in choice for e in item) for choice in chosen]


def _members(node: exp.Expr) -> _Set:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)
