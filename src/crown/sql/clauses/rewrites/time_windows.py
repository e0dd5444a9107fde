"""Rewrite time windows over rows as plain SQL: TUMBLE is a computed column, HOP a join with numbers.

`TUMBLE(ts, size)`, `HOP(ts, slide, size)` and Spark's `window(ts, size, slide)` in GROUP BY, and Flink's table
functions `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), size))`, HOP and CUMULATE, are rewritten in the syntax tree before it
is bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind
from crown.sql.scalar.date_functions import interval_micros

WINDOW_START = "crown_window_start"  # of a time, the slide and the offset
MOST_WINDOWS = 10_000  # of one row
_STARTS = {"tumble", "hop", "window", "tumble_start", "hop_start"}
_ENDS = {"tumble_end", "hop_end"}
_LAST = {"tumble_rowtime", "hop_rowtime"}
_FUNCTIONS = _STARTS | _ENDS | _LAST
_TABLES = {"tumble", "hop", "cumulate"}


@dataclass(frozen=True)
class _Window:
    """Windows of `size` that begin every `slide` microseconds, from `offset` on."""

    moment: exp.Expr
    size: int
    slide: int
    offset: int = 0

    @property
    def count(self) -> int:
        """The number of windows that a row may belong to."""
        return -(-self.size // self.slide)


def write_out_windows(context: Context, query: exp.Expr) -> None:
    """Replace all time windows of the query, and reject those that can't be replaced."""
    for call in nodes_of_kind(query, exp.Anonymous):
        if _name(call) in ("proctime", "current_watermark", "watermark"):
            _refuse_processing_time(context, call)
    for table in nodes_of_kind(query, exp.Table):
        if _name(table.this) in _TABLES:
            table.replace(_table_function(context, table))
    for select in nodes_of_kind(query, exp.Select):
        _select(context, select)


def _name(node: exp.Expr | None) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _select(context: Context, select: exp.Select) -> None:
    calls = [
        c
        for c in nodes_of_kind(select, exp.Anonymous)
        if _name(c) in _FUNCTIONS and c.find_ancestor(exp.Select) is select
    ]
    if not calls:
        return
    windows = {_window(context, call): None for call in calls}
    hopping = [w for w in windows if w.count > 1]
    if len(hopping) > 1 or (hopping and len(windows) > 1):
        context.fail(
            calls[-1],
            "TIME-WINDOW",
            "a query with two different hopping windows is not supported",
            reason="each row would be in every combination of them",
            hint="use one window, or compute one of them in a subquery in FROM",
        )
    number = _numbers(context, select, hopping[0]) if hopping else None
    names = _names(select, calls)
    for column in nodes_of_kind(select, exp.Column):
        named = names.get(column.text("table").lower())
        if named is not None and column.name.lower() in ("start", "end"):
            column.replace(_bound(_window(context, named), number, column.name.lower()))
    for dot in nodes_of_kind(select, exp.Dot):
        if _name(dot.this) in _STARTS and dot.expression.name.lower() in ("start", "end"):
            dot.replace(_bound(_window(context, dot.this), number, dot.expression.name.lower()))
    for call in _calls(select):
        _check_place(context, call)
        end = "end" if _name(call) in _ENDS else "last" if _name(call) in _LAST else "start"
        call.replace(_bound(_window(context, call), number, end))
    if select.args.get("group") is not None:
        for window in windows:
            select.where(_is_there(window.moment), copy=False)
    if hopping and hopping[0].size % hopping[0].slide:
        inside = exp.GT(this=_bound(hopping[0], number, "end"), expression=hopping[0].moment.copy())
        select.where(inside, copy=False)


def _calls(select: exp.Select) -> list[exp.Anonymous]:
    """The window functions of the SELECT itself, not of subqueries in it."""
    found = [call for call in nodes_of_kind(select, exp.Anonymous) if _name(call) in _FUNCTIONS]
    return [call for call in found if call.find_ancestor(exp.Select) is select]


def _is_there(moment: exp.Expr) -> exp.Expr:
    """A row without a time is in no window."""
    return exp.not_(exp.Is(this=moment.copy(), expression=exp.Null()))


def _names(select: exp.Select, calls: list[exp.Anonymous]) -> dict[str, exp.Anonymous]:
    """The qualifiers that `window.start` may have: the alias of a window, or the function's own name."""
    found = {}
    for call in calls:
        if _name(call) in ("window", "tumble", "hop"):
            found[_name(call)] = call
            if isinstance(call.parent, exp.Alias):
                found[call.parent.alias.lower()] = call
    tables = {table.alias_or_name.lower() for table in nodes_of_kind(select, exp.Table)}
    return {name: call for name, call in found.items() if name not in tables}


def _check_place(context: Context, call: exp.Anonymous) -> None:
    """`window(...)` itself, which has a start and an end, can only be grouped by."""
    if _name(call) == "window" and call.find_ancestor(exp.Group) is None:
        context.fail(
            call,
            "TIME-WINDOW",
            "a window can't be shown",
            reason="it is a pair of times",
            hint="show window.start and window.end",
        )


def _window(context: Context, call: exp.Anonymous) -> _Window:
    """Return the window that a call in GROUP BY or SELECT specifies."""
    name, (moment, *lengths) = _name(call), call.expressions or [None]
    hopping = name.startswith("hop")
    most = 3 if name == "window" else 2
    least = 2 if hopping else 1
    if moment is None or not least <= len(lengths) <= most:
        context.fail(
            call,
            "TIME-WINDOW",
            f"{name.upper()} takes a time and {'two intervals' if hopping else 'an interval'}",
            hint="write HOP(ts, INTERVAL 5 MINUTE, INTERVAL 1 HOUR)"
            if hopping
            else "write TUMBLE(ts, INTERVAL 1 HOUR)",
        )
    micros = [interval_micros(context, length) for length in lengths]
    if hopping:
        return _sized(context, call, _Window(moment, micros[1], micros[0]))
    if name == "window":
        slide = micros[1] if len(micros) > 1 else micros[0]
        return _sized(context, call, _Window(moment, micros[0], slide, micros[2] if len(micros) > 2 else 0))
    return _sized(context, call, _Window(moment, micros[0], micros[0], micros[1] if len(micros) > 1 else 0))


def _sized(context: Context, node: exp.Expr, window: _Window) -> _Window:
    if window.slide <= 0 or window.size < window.slide or window.count > MOST_WINDOWS:
        context.fail(
            node,
            "TIME-WINDOW",
            "the lengths of this window do not fit each other",
            reason=f"windows follow each other without gaps, and a row may be in up to {MOST_WINDOWS:,} of them",
            hint="make the slide positive and at most as long as the window",
        )
    return window


def _numbers(context: Context, select: exp.Select, window: _Window) -> exp.Expr:
    """Join the numbers of the windows that a row may belong to; return the column."""
    taken = {t.alias_or_name.lower() for t in nodes_of_kind(select, exp.Table, exp.Subquery)}
    alias = next(name for i in range(len(taken) + 1) if (name := f"hop{i or ''}") not in taken)
    rows = [exp.Tuple(expressions=[exp.cast(exp.Literal.number(i), "bigint")]) for i in range(window.count)]
    values = exp.Values(
        expressions=rows,
        alias=exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier("number")]),
    )
    select.append("joins", exp.Join(this=values, kind="CROSS"))
    return exp.column("number", table=alias)


def _bound(window: _Window, number: exp.Expr | None, end: str) -> exp.Expr:
    """The start of the window, its end, or the last moment before that (to milliseconds, as Flink has it)."""
    parts = [window.moment.copy(), exp.Literal.number(window.slide), exp.Literal.number(window.offset)]
    start: exp.Expr = exp.Anonymous(this=WINDOW_START, expressions=parts)
    if window.count > 1:
        assert number is not None
        back = exp.Mul(this=number.copy(), expression=exp.Literal.number(-window.slide))
        start = _later(start, back)
    if end == "start":
        return start
    return _later(start, exp.Literal.number(window.size - (1000 if end == "last" else 0)))


def _later(moment: exp.Expr, micros: exp.Expr) -> exp.Expr:
    unit = exp.Var(this="MICROSECOND")
    return exp.Anonymous(this="timestampadd", expressions=[unit, micros, moment])


def _table_function(context: Context, table: exp.Table) -> exp.Expr:
    """Return a subquery that shows the rows of the table with `window_start`, `window_end` and `window_time`."""
    call, name = table.this, _name(table.this)
    arguments, wanted = _arguments(call), 1 if name == "tumble" else 2
    if len(arguments) != 2 + wanted or not isinstance(arguments[0], exp.Column | exp.Subquery):
        context.fail(
            table,
            "TIME-WINDOW",
            f"{name.upper()} takes a table, a time column and {'an interval' if wanted == 1 else 'two intervals'}",
            hint=f"write TABLE({name.upper()}(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE"
            + (", INTERVAL '1' HOUR))" if wanted == 2 else "))"),
        )
    source, moment, *lengths = arguments
    micros = [interval_micros(context, length) for length in lengths]
    read: exp.Expr = source.copy()
    if isinstance(source, exp.Column):
        read = exp.Table(this=source.this.copy(), db=source.args.get("table"))
    inner = exp.Select(expressions=[exp.Star()]).from_(read)
    inside: exp.Expr | None
    if name == "cumulate":
        start, end, inside = _cumulated(context, table, inner, moment, *micros)
    else:
        window = _sized(context, table, _Window(moment, micros[-1], micros[0]))
        number = _numbers(context, inner, window) if window.count > 1 else None
        start, end = (_bound(window, number, part) for part in ("start", "end"))
        inside = exp.GT(this=end.copy(), expression=moment.copy()) if window.size % window.slide else None
    if inner.args.get("joins"):
        alias = read.alias_or_name
        if not alias:
            alias = "rows"
            read = exp.alias_(read, alias, table=True)
            inner.from_(read, copy=False)
        inner.set("expressions", [exp.Column(this=exp.Star(), table=exp.to_identifier(alias))])
    last = _later(end.copy(), exp.Literal.number(-1000))
    for value, column in ((start, "window_start"), (end, "window_end"), (last, "window_time")):
        inner.select(exp.alias_(value, column), copy=False)
    inner.where(_is_there(moment), *([inside] if inside is not None else []), copy=False)
    own = table.args.get("alias")
    named = own.copy() if own is not None else exp.TableAlias(this=exp.to_identifier(source.alias_or_name or name))
    return exp.Subquery(this=inner, alias=named, joins=[j.copy() for j in table.args.get("joins") or ()])


def _cumulated(
    context: Context, node: exp.Expr, inner: exp.Select, moment: exp.Expr, step: int, size: int
) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """CUMULATE: windows that begin together and grow by `step` up to `size`."""
    if step <= 0 or size % step:
        context.fail(node, "TIME-WINDOW", "the length of a window of CUMULATE must be a multiple of its step")
    number = _numbers(context, inner, _sized(context, node, _Window(moment, size, step)))
    start = _bound(_Window(moment, size, size), None, "start")
    grown = exp.Mul(this=exp.paren(number + 1), expression=exp.Literal.number(step))
    end = _later(start, grown)
    return start, end, exp.GT(this=end.copy(), expression=moment.copy())


def _arguments(call: exp.Anonymous) -> list[exp.Expr]:
    """Return the arguments by position, without their names and DESCRIPTOR."""

    def bare(node: exp.Expr) -> exp.Expr:
        value: exp.Expr = node.expression if isinstance(node, exp.Kwarg | exp.PropertyEQ) else node
        if _name(value) == "descriptor" and len(value.expressions) == 1:
            value = value.expressions[0]
        return value

    return [bare(argument) for argument in call.expressions]


def _refuse_processing_time(context: Context, call: exp.Anonymous) -> NoReturn:
    context.fail(
        call,
        "TIME-WINDOW",
        f"{call.name or _name(call).upper()} is not supported",
        reason="the time at which a row is processed is not in the data, so the result would not be that of the tables",
        hint="store the time as a column, or compare a column with now()",
    )
