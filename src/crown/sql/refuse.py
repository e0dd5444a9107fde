"""Unsupported constructs, each with its code, the reason, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.sql.diagnose import written_name
from crown.sql.nodes import nodes_of
from crown.sql.parts import READ, unread
from crown.sql.relation import Subcondition

_ADVICE: dict[str | tuple[type[exp.Expr], str], tuple[str, str, str, str]] = {
    "laterals": ("LATERAL", "LATERAL VIEW", "it generates rows with a function", "explode the column upstream"),
    (exp.ArraySort, "expression"): (
        "UNKNOWN-FUNCTION",
        "array_sort with a function",
        "only the order of the values themselves is supported",
        "use array_sort(a), or sort_array(a, false) for the opposite order",
    ),
    "sample": ("SAMPLE", "TABLESAMPLE", "the tables do not determine the sample", "filter on a hash of the key"),
    "cluster": ("SORT", "CLUSTER BY", "the result has no physical order", "remove it"),
    "distribute": ("SORT", "DISTRIBUTE BY", "the result has no physical order", "remove it"),
    "sort": ("SORT", "SORT BY", "the result has no physical order", "use ORDER BY"),
    "into": ("INTO", "INTO", "a view only reads", "write the changes of the view to the table"),
    "locks": ("LOCK", "a lock (FOR UPDATE, FOR SHARE)", "a view only reads", "remove it"),
    "connect": ("RECURSION", "CONNECT BY", "only WITH RECURSIVE is supported", "write WITH RECURSIVE"),
    "match": ("MATCH-RECOGNIZE", "MATCH_RECOGNIZE", "it depends on the order of rows", "write the pattern as joins"),
    "system_time": ("TIME-TRAVEL", "AS OF", "a view follows the current tables", "remove it"),
    "version": ("TIME-TRAVEL", "AS OF", "a view follows the current tables", "remove it"),
    "when": ("TIME-TRAVEL", "AS OF", "a view follows the current tables", "remove it"),
    (exp.Select, "kind"): ("STRUCT", "SELECT AS STRUCT or VALUE", "results are flat rows", "select the columns"),
    "nearest": (
        "JOIN-KIND",
        "a NEAREST JOIN",
        "which row is nearest depends on all other rows",
        "use INNER or OUTER JOIN",
    ),
    "match_condition": (
        "JOIN-KIND",
        "MATCH_CONDITION",
        "which row matches depends on all other rows",
        "use JOIN ... ON",
    ),
    "ilike": ("STAR", "* ILIKE", "its columns depend on a pattern", "name the columns"),
    "join_mark": (
        "JOIN-KIND",
        "the outer join mark (+)",
        "it turns a condition in WHERE into a join",
        "use LEFT JOIN ... ON",
    ),
    "by_name": ("SET-OPERATION", "BY NAME", "columns are matched by position", "list the columns in the same order"),
    (exp.Union, "side"): ("SET-OPERATION", "LEFT or FULL UNION", "it chooses columns by name", "use UNION ALL BY NAME"),
    (exp.Union, "kind"): ("SET-OPERATION", "INNER UNION", "it chooses columns by name", "list the columns"),
    (exp.Union, "on"): ("SET-OPERATION", "CORRESPONDING", "columns are matched by position", "list the columns"),
    "search": ("RECURSION", "SEARCH or CYCLE", "rows have no order", "compute the path in the step"),
    "key_expressions": ("RECURSION", "USING KEY", "a round adds rows and replaces none", "aggregate outside of it"),
    "siblings": ("RECURSION", "ORDER SIBLINGS BY", "only WITH RECURSIVE is supported", "use ORDER BY"),
    "only": ("UNSUPPORTED", "ONLY", "tables do not inherit rows", "remove it"),
    "ordinality": ("TABLE-FUNCTION", "WITH ORDINALITY", "rows have no position", "remove it"),
    "temporary": ("UNSUPPORTED", "a temporary table", "it is not in the schema", "use a table of the schema"),
    "scalar": ("UNSUPPORTED", "a scalar value in WITH", "WITH must contain queries", "write a SELECT"),
    (exp.Length, "binary"): (
        "UNKNOWN-FUNCTION",
        "a length in bytes",
        "LENGTH counts bytes in this dialect",
        "use octet_length, or char_length for characters",
    ),
    "collate": ("UNKNOWN-TYPE", "a collation", "strings are compared by their code points", "remove it"),
}


def check_parts(context: Context, query: exp.Expr) -> None:
    """Reject a query with a part, at any depth, that Crown would otherwise ignore."""
    for node in nodes_of(query):
        if type(node) in READ:
            check_node(context, node)


def check_node(context: Context, node: exp.Expr) -> None:
    """Reject a node with an argument that Crown does not read."""
    for part, value in unread(node):
        advised = _ADVICE.get((type(node), part)) or _ADVICE.get(part)
        code, name, reason, advice = advised or _unknown_part(context, node, part)
        first = value[0] if isinstance(value, list) else value
        if isinstance(first, exp.Var) and isinstance(node, exp.Select):
            name = first.name.upper()  # a word after SELECT, such as HIGH_PRIORITY
        context.fail(
            first if isinstance(first, exp.Expr) else node,
            code,
            f"{name} is not supported",
            reason=reason,
            hint=advice or "use the Spark form",
        )


def _unknown_part(context: Context, node: exp.Expr, part: str) -> tuple[str, str, str, str]:
    shown = part.strip("_").upper().replace("_", " ")
    if isinstance(node, exp.Func):
        name = written_name(context.sql, node) or node.sql_name()
        return ("UNKNOWN-FUNCTION", f"{name} with {shown}", "this dialect gives it a different meaning", "")
    return ("UNSUPPORTED", shown, "it has no meaning for a view", "remove it")


def refuse_correlation(context: Context, predicate: Expression, condition: Subcondition) -> NoReturn:
    """A condition compares with the outer row other than by equality of one column each."""
    context.fail(
        context.places.get(predicate, condition.place),
        "CORRELATED-SUBQUERY",
        f"{condition.construct} with this comparison to the outer row is not supported",
        reason="matches are looked up by key: only equalities between one outer and one inner table are allowed",
        hint="join with the inner table and use SELECT DISTINCT, or compare inside the subquery only",
    )


def refuse_far_correlation(context: Context, predicate: Expression) -> NoReturn:
    """Reject a predicate that uses a query more than one level out, or a query outside its view."""
    context.fail(
        context.places.get(predicate),
        "CORRELATED-SUBQUERY",
        "this comparison uses a query more than one level out",
        reason="a subquery is joined by key with the query directly around it",
        hint="join with the outer table again inside the subquery in between",
    )
