"""How many branches a query may have: each is a separate join to maintain."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.diagnose import Place

MAX_BRANCHES = 64


def refuse_branches(context: Context, place: exp.Expr | Place | None, reason: str) -> NoReturn:
    context.fail(
        place,
        "TOO-MANY-BRANCHES",
        f"these joins have more than {MAX_BRANCHES} combinations of matched and unmatched sides",
        reason=reason,
        hint="split the query into views with DISTINCT or GROUP BY, or use inner joins where rows always match",
    )
