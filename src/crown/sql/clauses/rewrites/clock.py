"""`now()`, CURRENT_TIMESTAMP and CURRENT_DATE: the one row of a table that changes like any other.

A comparison with the time is then one with a scalar subquery: rows are inserted and deleted as that row changes.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from crown.ir.tables import CLOCK, TableColumn
from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind
from crown.sql.schema.tables import TableSchema
from crown.types import INT32, TIMESTAMP

_TABLE = TableSchema(CLOCK, (TableColumn("id", INT32, False), TableColumn("now", TIMESTAMP, False)), ("id",))
_DATES = (exp.CurrentDate,)
_TIMES = (exp.CurrentTimestamp, exp.CurrentTimestampLTZ, exp.CurrentDatetime, exp.Localtimestamp)
_NAMES = ("now", "current_timestamp", "localtimestamp", "curdate", "current_date", "getdate", "sysdate", "systimestamp")


def write_out_clock(context: Context, query: exp.Expr) -> None:
    """Replace the current time by a look-up, and add the table to the schema."""
    found = [node for node in nodes_of_kind(query, *_DATES, *_TIMES, exp.Anonymous) if is_clock(node)]
    for node in found:
        if node.this is not None and not isinstance(node, exp.Anonymous):
            context.fail(
                node,
                "UNKNOWN-FUNCTION",
                "the current time with a precision or time zone is not supported",
                reason="times are in UTC, to the microsecond",
                hint="write now() or CURRENT_DATE, and cast it",
            )
        moment: exp.Expr = exp.Subquery(
            this=exp.select(exp.column("now", CLOCK))
            .from_(exp.to_table(CLOCK))
            .where(exp.EQ(this=exp.column("id", CLOCK), expression=exp.Literal.number(0)))
        )
        node.replace(exp.cast(moment, "date") if is_current_date(node) else moment)
    if found and CLOCK not in context.schema.tables:
        context.schema = replace(context.schema, tables={**context.schema.tables, CLOCK: _TABLE})


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def is_clock(node: exp.Expr) -> bool:
    """Whether the node is the current time or date."""
    return isinstance(node, (*_DATES, *_TIMES)) or (_name(node) in _NAMES and not node.expressions)


def is_current_date(node: exp.Expr) -> bool:
    return isinstance(node, _DATES) or _name(node) in ("curdate", "current_date")
