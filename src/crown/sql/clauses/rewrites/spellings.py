"""Expand shorthands of some dialects: COUNT(), x IN table, RATIO_TO_REPORT, GROUPING__ID."""

from __future__ import annotations

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind

_COUNT_OF_ROWS = frozenset({"sqlite", "duckdb"})


def write_out_spellings(context: Context, query: exp.Expr) -> None:
    """Replace them in the whole query."""
    dialect = context.dialect.lower()
    if context.is_spark:
        for select in nodes_of_kind(query, exp.Select):
            _write_out_grouping_id(select)
    for node in nodes_of_kind(query, exp.Count, exp.In, exp.Window, exp.Not):
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


def _write_out_grouping_id(select: exp.Select) -> None:
    """Replace Hive's column GROUPING__ID by the function, which has no arguments then."""
    group = select.args.get("group")
    if group is None or group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is None:
        return
    clauses = [*select.expressions, *(select.args[p] for p in ("having", "order") if select.args.get(p))]
    for clause in clauses:
        for column in nodes_of_kind(clause, exp.Column):
            if column.name.lower() != "grouping__id" or column.text("table"):
                continue
            number: exp.Expr = exp.GroupingId(expressions=[])
            number.meta.update(column.meta)
            column.replace(exp.alias_(number, column.name) if column is clause else number)


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
