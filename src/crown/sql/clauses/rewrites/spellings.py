"""Expand shorthands of some dialects: COUNT(), x IN table, RATIO_TO_REPORT."""

from __future__ import annotations

from sqlglot import exp

from crown.sql.context import Context

_COUNT_OF_ROWS = frozenset({"sqlite", "duckdb"})


def write_out_spellings(context: Context, query: exp.Expr) -> None:
    """Replace them in the whole query."""
    dialect = context.dialect.lower()
    for node in list(query.find_all(exp.Count, exp.In, exp.Window, exp.Not)):
        if isinstance(node, exp.Not):
            _check_like(context, node)
        elif isinstance(node, exp.Count) and dialect in _COUNT_OF_ROWS and not node.this and not node.expressions:
            node.set("this", exp.Star())
        elif isinstance(node, exp.In) and dialect == "sqlite" and isinstance(node.args.get("field"), exp.Column):
            table = exp.Table(this=node.args["field"].this.copy())
            table.this.meta.update(node.args["field"].meta)
            node.set("field", None)
            node.set("query", exp.Subquery(this=exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))))
        elif isinstance(node, exp.Window) and _is_share(node.this):
            (value,) = node.this.expressions
            whole = node.copy()
            whole.set("this", exp.Sum(this=value.copy()))
            total = exp.Nullif(this=whole, expression=exp.Literal.number(0))
            node.replace(exp.Paren(this=exp.Div(this=value.copy(), expression=total)))


def _check_like(context: Context, node: exp.Not) -> None:
    """Reject forms that most dialects of sqlglot parse alike: `x NOT LIKE ANY (...)` and `NOT x LIKE ANY (...)`."""
    like = isinstance(node.this, exp.Like | exp.ILike) and isinstance(node.this.expression, exp.Any | exp.All)
    if like and not context.is_spark:
        context.fail(
            node,
            "UNKNOWN-FUNCTION",
            "NOT LIKE ANY and NOT LIKE ALL are not supported in this dialect",
            reason="they can't be distinguished from NOT of the whole",
            hint="write NOT (x LIKE ANY (...)), or x NOT LIKE ... AND x NOT LIKE ...",
        )


def _is_share(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and str(node.this).lower() == "ratio_to_report"
    return named and len(node.expressions) == 1
