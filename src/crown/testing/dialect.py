"""A query in DuckDB's words, with the meaning that it has in its own dialect."""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp


@functools.lru_cache(maxsize=1024)
def in_duckdb(sql: str, dialect: str = "spark") -> str:
    """Return a query in DuckDB's dialect.

    >>> in_duckdb("SELECT COUNT_IF(a) FROM `r`")
    'SELECT COUNT(CASE WHEN a THEN 1 END) FROM "r"'
    """
    return sqlglot.parse_one(sql, read=dialect).transform(_as_in_spark).sql("duckdb")


def _as_in_spark(node: exp.Expr) -> exp.Expr:
    """DuckDB's COUNT_IF is NULL where no row has a value; Spark's is 0."""
    if isinstance(node, exp.CountIf):
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    return node
