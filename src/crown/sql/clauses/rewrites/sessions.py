"""Rewrite session windows as window functions: a session ends where no row of its group follows within the gap.

`GROUP BY user, SESSION(ts, gap)` groups by the start of each row's session. That is the latest time up to the row's
own that no other one precedes by the gap or less. So a row that joins two sessions, or a deletion that splits one,
only changes the start of the rows between that place and the end of the session.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind
from crown.sql.scalar.date_functions import interval_micros

SESSIONS = {"session", "session_start", "session_end", "session_rowtime", "session_window"}
_GROUPED = ("session", "session_window")
_BEFORE, _START = "crown_time_before", "crown_session_start"


def write_out_sessions(context: Context, query: exp.Expr) -> None:
    """Replace the session windows of the query."""
    for select in nodes_of_kind(query, exp.Select):
        calls = [call for call in _calls(select) if call.find_ancestor(exp.Select) is select]
        if calls:
            _select(context, select, calls)
    for call in _calls(query):
        _refuse(context, call, "a session window must be in GROUP BY of its query")


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    return [call for call in nodes_of_kind(node, exp.Anonymous) if _name(call) in SESSIONS]


def _name(node: exp.Expr | None) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _select(context: Context, select: exp.Select, calls: list[exp.Anonymous]) -> None:
    group = select.args.get("group") or exp.Group()
    parts = list(group.expressions)
    grouped = [part for part in parts if _name(part) in _GROUPED]
    if not grouped:
        _refuse(context, calls[0], "a session window must be in GROUP BY of its query")
    if len(grouped) > 1 or any(call.expressions != grouped[0].expressions for call in calls):
        _refuse(context, calls[-1], "a query with two different session windows is not supported")
    if any(value for name, value in group.args.items() if name != "expressions"):
        _refuse(context, grouped[0], "a session window can't be combined with grouping sets")
    if len(grouped[0].expressions) != 2:
        _refuse(context, grouped[0], "a session window takes a time and a gap")
    moment, length = grouped[0].expressions
    gap = interval_micros(context, length)
    if gap <= 0:
        _refuse(context, grouped[0], "the gap between sessions must be positive")
    keys = [_written_out(context, select, part) for part in parts if part is not grouped[0]]
    alias = _nest(context, select, grouped[0], keys, moment, gap)
    _replace(context, select, calls, moment, gap, alias)


def _written_out(context: Context, select: exp.Select, key: exp.Expr) -> exp.Expr:
    """Replace the name of an output in GROUP BY by its expression: the sessions are found before there are outputs."""
    source = select.args["from_"].this if select.args.get("from_") is not None else None
    table = context.schema.tables.get(source.name.lower()) if isinstance(source, exp.Table) else None
    if table is None or not isinstance(key, exp.Column) or key.text("table") or table.column(key.name) is not None:
        return key
    for output in select.expressions:
        if isinstance(output, exp.Alias) and output.alias.lower() == key.name.lower():
            written: exp.Expr = output.this.copy()
            key.replace(written)
            return written
    return key


def _nest(
    context: Context, select: exp.Select, call: exp.Expr, keys: list[exp.Expr], moment: exp.Expr, gap: int
) -> str:
    """Put subqueries into FROM that compute the start of each row's session; return their alias."""
    source = select.args["from_"].this if select.args.get("from_") is not None else exp.Null()
    plain = isinstance(source, exp.Table | exp.Subquery) and not source.args.get("joins")
    if not plain or any(select.args.get(part) for part in ("joins", "laterals")):
        _refuse(context, call, "a session window over a join is not supported")
    if any(isinstance(key, exp.Literal) for key in keys):
        _refuse(context, call, "positions in GROUP BY are not supported beside a session window")
    alias = source.alias_or_name or "sessions"
    if not source.alias_or_name:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))

    def over(function: exp.Expr) -> exp.Window:
        order = exp.Order(expressions=[exp.Ordered(this=moment.copy())])
        return exp.Window(this=function, partition_by=[key.copy() for key in keys], order=order)

    every = exp.Column(this=exp.Star(), table=exp.to_identifier(alias))
    before = exp.alias_(over(exp.Lag(this=moment.copy())), _BEFORE)
    rows = exp.Select(expressions=[every, before], from_=select.args["from_"].copy(), where=select.args.get("where"))
    rows.where(exp.not_(exp.Is(this=moment.copy(), expression=exp.Null())), copy=False)
    continued = exp.GTE(this=_later(exp.column(_BEFORE, table=alias), gap), expression=moment.copy())
    first = exp.Case(ifs=[exp.If(this=continued, true=exp.Null())], default=moment.copy())
    starts = exp.Select(expressions=[every.copy(), exp.alias_(over(exp.Max(this=first)), _START)])
    starts.from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias))), copy=False)
    select.set("where", None)
    select.from_(exp.Subquery(this=starts, alias=exp.TableAlias(this=exp.to_identifier(alias))), copy=False)
    return alias


def _replace(
    context: Context, select: exp.Select, calls: list[exp.Anonymous], moment: exp.Expr, gap: int, alias: str
) -> None:
    def bound(name: str) -> exp.Expr:
        if name in ("start", "session", "session_start", "session_window"):
            return exp.column(_START, table=alias)
        last = _later(exp.Max(this=moment.copy()), gap)
        return _later(last, -1000) if name == "session_rowtime" else last

    qualifiers = {"session_window", *(c.parent.alias.lower() for c in calls if isinstance(c.parent, exp.Alias))}
    for column in nodes_of_kind(select, exp.Column):
        own = column.find_ancestor(exp.Select) is select and column.text("table").lower() in qualifiers - {
            alias.lower()
        }
        if own and column.name.lower() in ("start", "end"):
            column.replace(bound(column.name.lower()))
    for dot in nodes_of_kind(select, exp.Dot):
        if _name(dot.this) == "session_window" and dot.expression.name.lower() in ("start", "end"):
            dot.replace(bound(dot.expression.name.lower()))
    for call in _calls(select):
        if call.find_ancestor(exp.Select) is not select:
            continue
        if _name(call) == "session_window" and call.find_ancestor(exp.Group) is None:
            _refuse(context, call, "a session window can't be shown, because it is a pair of times",
                    "show session_window.start and session_window.end")  # fmt: skip
        call.replace(bound(_name(call)))


def _later(moment: exp.Expr, micros: int) -> exp.Expr:
    unit = exp.Var(this="MICROSECOND")
    return exp.Anonymous(this="timestampadd", expressions=[unit, exp.Literal.number(micros), moment])


def _refuse(
    context: Context,
    call: exp.Expr,
    message: str,
    hint: str = "write SELECT ... FROM (SELECT ...) AS t GROUP BY user, SESSION(ts, INTERVAL 10 MINUTE)",
) -> NoReturn:
    context.fail(call, "TIME-WINDOW", message, hint=hint)
