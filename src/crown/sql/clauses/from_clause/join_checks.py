"""Joins that are rejected as they are written: too many, or in an order that other dialects read differently."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from crown.errors import PlanError
from crown.sql.context import Context
from crown.sql.diagnose import span

MOST_TABLES = 100
MOST_PADDING = 50


def check_number(context: Context, joins: Sequence[exp.Expr]) -> None:
    """Refuse what would take seconds to plan, before it does."""
    padding = [join for join in joins if join.text("side").upper() in ("RIGHT", "FULL")]
    if len(joins) >= MOST_TABLES:
        found = f"the query joins {len(joins) + 1} tables"
        why = f"at most {MOST_TABLES} tables can be joined, including those of subqueries in FROM, EXISTS and IN"
    elif len(padding) > MOST_PADDING:
        found = f"FROM has {len(padding)} RIGHT and FULL JOINs"
        why = f"each pads the rows of all joins before it, so at most {MOST_PADDING} of them are planned together"
    else:
        return
    raise PlanError(
        found,
        code="CROWN-PLAN-TOO-MANY-TABLES",
        sql=context.sql,
        position=span(joins[-1]),
        reason=why,
        hint="split the query into several views; UNION ALL and GROUP BY of the key replace many FULL JOINs",
    )


def check_commas(context: Context, joins: Sequence[exp.Expr]) -> None:
    """Refuse `a, b RIGHT JOIN c` where it is `a, (b RIGHT JOIN c)`, because joins are made from left to right here.

    A comma is a join of no kind for sqlglot, as JOIN without a condition is.
    """
    if Dialect.get_or_raise(context.dialect).parser_class.JOINS_HAVE_EQUAL_PRECEDENCE:
        return
    commas = [
        at for at, join in enumerate(joins) if not any(map(join.args.get, ("method", "side", "kind", "on", "using")))
    ]
    for join in joins[commas[0] + 1 :] if commas else ():
        written = " ".join(str(join.args[part]).upper() for part in ("method", "side") if join.args.get(part))
        if not any(word in ("NATURAL", "RIGHT", "FULL") for word in written.split()):
            continue
        context.fail(
            join,
            "JOIN-KIND",
            f"{written} JOIN after a comma is not supported in this dialect",
            reason="the tables after the comma would be joined first",
            hint="write CROSS JOIN instead of the comma to join from left to right, or put the join in parentheses",
        )
