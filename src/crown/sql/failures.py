"""Where in a query's text an expression can fail while it is evaluated."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from crown.sql.diagnose import Span, span

_FAILING: dict[str, tuple[type[exp.Expr], ...]] = {
    "CROWN-DIVIDE-BY-ZERO": (exp.Div, exp.IntDiv, exp.Mod),
    "CROWN-CAST": (exp.Cast,),
    "CROWN-SCALAR-ROWS": (exp.Subquery,),
    "CROWN-OVERFLOW": (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sum, exp.Cast),
}
_HINTS = {
    "CROWN-SCALAR-ROWS": "aggregate in the subquery, with MAX for example, or compare with the key of its table",
    "CROWN-DIVIDE-BY-ZERO": "write NULLIF(divisor, 0) as the divisor to get NULL instead",
    "CROWN-CAST": "use TRY_CAST to get NULL instead, or filter such rows out first",
    "CROWN-OVERFLOW": "cast to a wider type, such as DECIMAL(38, 0) or DOUBLE, before the arithmetic",
}


def failing_place(sql: str, code: str, dialect: str = "spark") -> Span | None:
    """Return the place of the one expression of `sql` that can fail with `code`; None where several can.

    >>> sql = "SELECT COUNT(x) / COUNT(*), x / 2 FROM t"
    >>> start, end = failing_place(sql, "CROWN-DIVIDE-BY-ZERO")
    >>> sql[start:end]
    'COUNT(x) / COUNT(*)'
    """
    try:
        statement = sqlglot.parse_one(sql, read=dialect)
    except SqlglotError:
        return None
    places = {
        _closed(sql, place)
        for node in statement.find_all(*_FAILING.get(code, (exp.Placeholder,)))
        if not _is_safe(node) and (place := span(node)) is not None
    }
    return places.pop() if len(places) == 1 else None


def hint(code: str, message: str = "") -> str | None:
    """How to write a query whose expressions don't fail with `code`."""
    if "multiplicity" in message:
        return "use SELECT DISTINCT, or give each row fewer copies: no row may have more than 2^63 - 1"
    return _HINTS.get(code)


def _is_safe(node: exp.Expr) -> bool:
    """Whether a division can't fail: its divisor is a number other than 0, or NULLIF."""
    if not isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
        return isinstance(node, exp.TryCast)
    divisor = node.expression.unnest()
    return isinstance(divisor, exp.Nullif) or (isinstance(divisor, exp.Literal) and divisor.name.strip("0.") != "")


def _closed(sql: str, place: Span) -> Span:
    """Return the place with the parentheses that belong to it: sqlglot knows where names stand, not where calls end."""
    start, end = place
    while end < len(sql) and sql.count("(", start, end) > sql.count(")", start, end):
        following = sql.find(")", end)
        if following < 0:
            break
        end = following + 1
    return start, end
