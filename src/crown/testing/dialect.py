"""Translate a query to DuckDB's dialect without changing its meaning."""

from __future__ import annotations

import functools

from sqlglot import exp

from crown.sql.clauses.rewrites.clock import is_clock, is_current_date
from crown.sql.clauses.rewrites.sessions import write_out_sessions
from crown.sql.clauses.rewrites.time_windows import WINDOW_START, write_out_windows
from crown.sql.context import Context
from crown.sql.dialect import parse_to_translate
from crown.sql.schema.options import take_options
from crown.sql.schema.schema import Schema

NOW = "crown_now"  # the variable that has the time
_EPOCH = exp.cast(exp.Literal.string("1970-01-01"), "timestamp")
_GROUPING_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@functools.lru_cache(maxsize=1024)
def in_duckdb(sql: str, dialect: str = "spark") -> str:
    """Return a query in DuckDB's dialect.

    >>> in_duckdb("SELECT COUNT_IF(a) FROM `r`")
    'SELECT COUNT(CASE WHEN a THEN 1 END) FROM "r"'
    """
    query = parse_to_translate(take_options(sql)[0], dialect)[0]
    context = Context(sql, dialect, Schema({}, {}))
    write_out_sessions(context, query)
    write_out_windows(context, query)
    for node in reversed(list(query.walk())):  # children before their parents
        if (written := _time(node)) is not None:
            node.replace(written)
    return query.transform(_as_in_spark).sql("duckdb")


def _time(node: exp.Expr) -> exp.Expr | None:
    """What stands for a window of time, or for the current time."""
    if isinstance(node, exp.Anonymous) and str(node.this) == WINDOW_START:
        moment, slide, offset = node.expressions
        origin = exp.Add(this=_EPOCH.copy(), expression=_microseconds(offset))
        return exp.Anonymous(this="time_bucket", expressions=[_microseconds(slide), moment, origin])
    if isinstance(node, exp.Anonymous) and str(node.this) == "timestampadd":  # of windows: others are TimestampAdd
        _, amount, moment = node.expressions
        return exp.Paren(this=exp.Add(this=moment, expression=_microseconds(amount)))
    if is_clock(node):
        now = exp.cast(exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(NOW)]), "timestamptz")
        return exp.cast(now, "date") if is_current_date(node) else now
    return None


def _as_in_spark(node: exp.Expr) -> exp.Expr:
    """The expression that means in DuckDB what this one means in Spark."""
    if isinstance(node, exp.CountIf):
        # DuckDB's is NULL where no row has a value; Spark's is 0.
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    if isinstance(node, exp.DataType) and isinstance(node.this, exp.Interval):
        return exp.DataType(this=exp.DataType.Type.INTERVAL)  # DuckDB's has all fields
    if isinstance(node, exp.Quantile):
        return exp.PercentileCont(this=node.this, expression=node.args["quantile"])  # between values, not one of them
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1:
        return _count_of_several(node)
    if isinstance(node, exp.Select) and (group := node.args.get("group")) and group.find(*_GROUPING_SETS):
        # Over no rows DuckDB has a group for the empty grouping set; Spark has none.
        return node.having("COUNT(*) > 0", copy=False)  # (in place: the SELECTs in it are visited too)
    return node


def _microseconds(number: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="to_microseconds", expressions=[number])


def _count_of_several(node: exp.Count) -> exp.Expr:
    """DuckDB counts rows of distinct values as one value, NULLs included; Spark counts those without NULLs."""
    values = node.this.expressions
    present = exp.and_(*(exp.not_(exp.Is(this=value.copy(), expression=exp.Null())) for value in values))
    row = exp.Case(ifs=[exp.If(this=present, true=exp.Anonymous(this="ROW", expressions=values))])
    return exp.Count(this=exp.Distinct(expressions=[row]))
