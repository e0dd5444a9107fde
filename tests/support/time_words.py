"""Time in words that DuckDB knows: windows of time as buckets, the current time as the row of a table."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

CLOCK = "clock_now"
CLOCK_TABLE = f"CREATE TABLE {CLOCK} (t TIMESTAMP)"


def with_buckets(sql: str) -> str:
    """Return a query with TIME_BUCKET for TUMBLE and HOP.

    >>> with_buckets("SELECT 1 AS a")
    'SELECT 1 AS a'
    """
    if "TUMBLE(" not in sql and "HOP(" not in sql:
        return sql
    tree = sqlglot.parse_one(sql, read="spark")
    for number, select in enumerate(list(tree.find_all(exp.Select))):
        for call in list(select.find_all(exp.Anonymous)):
            if call.find_ancestor(exp.Select) is select and call.name.upper() in ("TUMBLE", "HOP"):
                _bucket(select, call, f"hops{number}")
    return tree.sql("spark")


def _bucket(select: exp.Select, call: exp.Anonymous, alias: str) -> None:
    moment, slide, *size = (part.copy() for part in call.expressions)
    start = f"TIME_BUCKET({slide.sql('spark')}, {moment.sql('spark')})"
    if size:
        count = int(size[0].this.name) // int(slide.this.name)
        if alias not in {join.this.alias for join in select.args.get("joins") or ()}:
            rows = [exp.Tuple(expressions=[exp.Literal.number(i)]) for i in range(count)]
            named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier("n")])
            select.append("joins", exp.Join(this=exp.Values(expressions=rows, alias=named), kind="CROSS"))
        start = f"{start} - {alias}.n * {slide.sql('spark')}"
    there = exp.not_(exp.Is(this=moment, expression=exp.Null()))
    if there not in list(select.find_all(exp.Not)):
        select.where(there, copy=False)
    call.replace(exp.paren(sqlglot.parse_one(start, read="spark")))


def with_clock(sql: str) -> str:
    """Return a query that reads the current time from the table `CLOCK`."""
    now = f"(SELECT MAX({CLOCK}.t) FROM {CLOCK})"
    for word in ("CURRENT_DATE()", "CURRENT_DATE"):
        sql = sql.replace(word, f"CAST({now} AS DATE)")
    return sql.replace("now()", now)
