"""Constructs that Crown does not maintain: each with its code, the reason, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.relation import Subcondition

# Parts of a SELECT that sqlglot reads and Crown maintains; every other part that is present is refused.
_SELECT_PARTS = frozenset(
    ("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
)
_SET_PARTS = frozenset(("with_", "this", "expression", "distinct", "order", "limit", "offset"))
_TABLE_PARTS = frozenset(("this", "alias", "db", "catalog", "joins"))
_SUBQUERY_PARTS = frozenset(("this", "alias", "with_", "joins", "order", "limit", "offset"))

_ADVICE: dict[str, tuple[str, str, str, str]] = {
    "laterals": ("LATERAL", "LATERAL VIEW", "it makes rows from a function", "explode the column upstream"),
    "pivots": ("PIVOT", "PIVOT", "its columns depend on the data", "write SUM(CASE WHEN ... END) for each column"),
    "sample": ("SAMPLE", "TABLESAMPLE", "a sample is not determined by the tables", "filter on a hash of the key"),
    "qualify": ("WINDOW-FUNCTION", "QUALIFY", "it filters by window functions", "use ORDER BY ... LIMIT"),
    "windows": ("WINDOW-FUNCTION", "WINDOW", "window functions are not maintained", "use GROUP BY"),
    "cluster": ("SORT", "CLUSTER BY", "a maintained result has no physical order", "remove it"),
    "distribute": ("SORT", "DISTRIBUTE BY", "a maintained result has no physical order", "remove it"),
    "sort": ("SORT", "SORT BY", "a maintained result has no physical order", "use ORDER BY"),
    "into": ("INTO", "INTO", "a view only reads", "write the view's changes to the table"),
    "locks": ("LOCK", "FOR UPDATE", "a view only reads", "remove it"),
    "connect": ("RECURSION", "CONNECT BY", "recursion is not maintained", "unroll it to a fixed depth"),
    "match": ("MATCH-RECOGNIZE", "MATCH_RECOGNIZE", "it depends on the order of rows", "write the pattern as joins"),
    "system_time": ("TIME-TRAVEL", "AS OF", "a view follows the present tables", "remove it"),
    "version": ("TIME-TRAVEL", "VERSION AS OF", "a view follows the present tables", "remove it"),
    "when": ("TIME-TRAVEL", "AS OF", "a view follows the present tables", "remove it"),
    "kind": ("STRUCT", "SELECT AS STRUCT", "results are flat rows", "select the columns"),
}


def check_parts(context: Context, node: exp.Expr) -> None:
    """Refuse a SELECT, set operation, table or subquery with a part that Crown would otherwise overlook."""
    if isinstance(node, exp.Select):
        allowed = _SELECT_PARTS | {"hint"}  # a hint changes no answer
    elif isinstance(node, exp.SetOperation):
        allowed = _SET_PARTS
    elif isinstance(node, exp.Table):
        allowed = _TABLE_PARTS
    else:
        allowed = _SUBQUERY_PARTS
    for part, value in node.args.items():
        if not value or part in allowed:
            continue
        code, name, reason, advice = _ADVICE.get(
            part,
            (
                "UNSUPPORTED",
                part.strip("_").upper().replace("_", " "),
                "it has no meaning for a maintained view",
                "remove it",
            ),
        )
        first = value[0] if isinstance(value, list) else value
        context.fail(
            first if isinstance(first, exp.Expr) else node,
            code,
            f"{name} is not maintained",
            reason=reason,
            hint=advice,
        )


def refuse_correlation(context: Context, predicate: Expression, condition: Subcondition) -> NoReturn:
    """A condition compares with the outer row other than by equality of one column each."""
    if condition.construct == "outer join":
        context.fail(
            context.places.get(predicate, condition.place),
            "OUTER-JOIN-CONDITION",
            "this outer join's condition is not maintained",
            reason="rows without a partner are found by key: ON must be equalities between one table of each side, "
            "and conditions on one table",
            hint="move the comparison into a subquery with the keys of both sides, or use an inner join",
        )
    context.fail(
        context.places.get(predicate, condition.place),
        "CORRELATED-INEQUALITY",
        f"{condition.construct} with this comparison to the outer row is not maintained",
        reason="whether a partner exists is looked up by key: only equalities between one outer and one inner table",
        hint="join with the inner table and use SELECT DISTINCT, or compare inside the subquery only",
    )


def refuse_residual_condition(context: Context, predicate: Expression, condition: Subcondition) -> NoReturn:
    context.fail(
        context.places.get(predicate, condition.place),
        "CONDITION-RESIDUAL",
        f"{condition.construct} with a comparison between two of its own tables is not maintained here",
        reason="the tables of a semi-join or anti-join are joined by equality only",
        hint="move those tables into a subquery or CTE with SELECT DISTINCT",
    )
