"""A query in DuckDB's words, with the meaning that it has in its own dialect."""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

_GROUPING_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@functools.lru_cache(maxsize=1024)
def in_duckdb(sql: str, dialect: str = "spark") -> str:
    """Return a query in DuckDB's dialect.

    >>> in_duckdb("SELECT COUNT_IF(a) FROM `r`")
    'SELECT COUNT(CASE WHEN a THEN 1 END) FROM "r"'
    """
    return sqlglot.parse_one(sql, read=dialect).transform(_as_in_spark).sql("duckdb")


def _as_in_spark(node: exp.Expr) -> exp.Expr:
    """The expression that means in DuckDB what this one means in Spark."""
    if isinstance(node, exp.CountIf):
        # DuckDB's is NULL where no row has a value; Spark's is 0.
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    if isinstance(node, exp.Quantile):
        return exp.PercentileCont(this=node.this, expression=node.args["quantile"])  # between values, not one of them
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1:
        return _count_of_several(node)
    if isinstance(node, exp.Select) and (group := node.args.get("group")) and group.find(*_GROUPING_SETS):
        # Over no rows DuckDB has a group for the empty grouping set; Spark has none.
        return node.having("COUNT(*) > 0", copy=False)  # (in place: the SELECTs in it are visited too)
    return node


def _count_of_several(node: exp.Count) -> exp.Expr:
    """DuckDB counts rows of distinct values as one value, NULLs included; Spark counts those without NULLs."""
    values = node.this.expressions
    present = exp.and_(*(exp.not_(exp.Is(this=value.copy(), expression=exp.Null())) for value in values))
    row = exp.Case(ifs=[exp.If(this=present, true=exp.Anonymous(this="ROW", expressions=values))])
    return exp.Count(this=exp.Distinct(expressions=[row]))
