"""Spark's functions of dates and timestamps whose meaning depends on their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.context import Context
from crown.sql.scalar import intervals
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.coerce import cast
from crown.sql.scalar.patterns import DEFAULT_TIME, read_time, time_pattern, written_time
from crown.sql.schema.options import MICROSECONDS
from crown.types import DATE, INT32, INT64, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

_EPOCH = Literal(0, TIMESTAMP)


def _count(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], name: str, *wanted: int) -> None:
    if len(parts) not in wanted:
        counts = " or ".join(map(str, wanted))
        binder.context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {counts} argument{'s' if wanted != (1,) else ''}")


def _moment(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], default: str | None) -> Expression:
    """Return a string read by a pattern; anything else, and a string without one, is cast to a timestamp."""
    subject = binder.bind(parts[0])
    if subject.type != STRING or (len(parts) == 1 and default is None):
        return cast(binder.context, node, subject, TIMESTAMP)
    pattern = time_pattern(binder, parts[1]) if len(parts) == 2 else Literal(default, STRING)
    return read_time(binder, node, subject, pattern)


def _to_timestamp(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "to_timestamp", 1, 2)
    return _moment(binder, node, parts, None)


def _to_date(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "to_date", 1, 2)
    if len(parts) == 1:
        return cast(binder.context, node, binder.bind(parts[0]), DATE)
    return cast(binder.context, node, _moment(binder, node, parts, None), DATE)


def _unix_timestamp(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "unix_timestamp", 1, 2)
    micros = binder.call("unix_micros", [_moment(binder, node, parts, DEFAULT_TIME)], INT64, node)
    # The fraction is cut, also before 1970; `unix_seconds` rounds down.
    return binder.call("div", [micros, Literal(MICROSECONDS["second"], INT64)], INT64, node)


def _from_unixtime(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "from_unixtime", 1, 2)
    seconds = cast(binder.context, node, binder.bind(parts[0]), INT64)
    micros = binder.call("multiply", [seconds, Literal(MICROSECONDS["second"], INT64)], INT64, node)
    moment = intervals.shifted_by(binder.context, node, "add_microseconds", _EPOCH, micros)
    pattern = time_pattern(binder, parts[1]) if len(parts) == 2 else Literal(DEFAULT_TIME, STRING)
    return written_time(binder, node, moment, pattern)


def _unit(binder: ScalarBinder, node: exp.Expr) -> str:
    name = node.name.lower()
    if name in MICROSECONDS or name in intervals.MONTHS:
        return name
    return binder.context.fail(
        node, "INTERVAL", f"{name or 'this'} is not a unit", hint="use microsecond, second, ..., day, month or year"
    )


def add_units(binder: ScalarBinder, node: exp.Expr, unit: exp.Expr, amount: exp.Expr, subject: exp.Expr) -> Expression:
    """`timestampadd`: a timestamp and a number of units after it."""
    name = _unit(binder, unit)
    moment = binder.bind(subject)
    if not moment.type.is_timestamp:
        moment = cast(binder.context, node, moment, TIMESTAMP)
    if name in intervals.MONTHS:
        count = cast(binder.context, node, binder.bind(amount), INT32)
        months = binder.call("multiply", [count, Literal(intervals.MONTHS[name], INT32)], INT32, node)
        return intervals.shifted_by(binder.context, node, "add_months", moment, months)
    count = cast(binder.context, node, binder.bind(amount), INT64)
    micros = binder.call("multiply", [count, Literal(MICROSECONDS[name], INT64)], INT64, node)
    return intervals.shifted_by(binder.context, node, "add_microseconds", moment, micros)


def _timestampadd(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "timestampadd", 3)
    return add_units(binder, node, *parts)


def units_between(binder: ScalarBinder, node: exp.Expr, unit: exp.Expr, start: exp.Expr, end: exp.Expr) -> Expression:
    """`timestampdiff`: how many whole units lie between two timestamps."""
    name = _unit(binder, unit)
    early, late = (cast(binder.context, node, binder.bind(part), TIMESTAMP) for part in (start, end))
    if name in intervals.MONTHS:
        months = binder.call("complete_months", [early, late], INT64, node)
        return binder.call("div", [months, Literal(intervals.MONTHS[name], INT64)], INT64, node)
    micros = [binder.call("unix_micros", [moment], INT64, node) for moment in (late, early)]
    between = binder.call("subtract", micros, INT64, node)
    return binder.call("div", [between, Literal(MICROSECONDS[name], INT64)], INT64, node)


def _timestampdiff(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "timestampdiff", 3)
    return units_between(binder, node, *parts)


def _datediff(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """Days between two dates, or with a unit in front as `timestampdiff`."""
    _count(binder, node, parts, "datediff", 2, 3)
    if len(parts) == 3:
        return units_between(binder, node, *parts)
    days = [cast(binder.context, node, binder.bind(part), DATE) for part in parts]
    return binder.call("date_diff", days, INT32, node)


def _dateadd(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """Days after a date, or with a unit in front as `timestampadd`."""
    _count(binder, node, parts, "dateadd", 2, 3)
    if len(parts) == 3:
        return add_units(binder, node, *parts)
    return _days_later(binder, node, parts, backwards=False)


def _date_sub(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    _count(binder, node, parts, "date_sub", 2)
    return _days_later(binder, node, parts, backwards=True)


def _days_later(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr], *, backwards: bool) -> Expression:
    start = cast(binder.context, node, binder.bind(parts[0]), DATE)
    days = cast(binder.context, node, binder.bind(parts[1]), INT32)
    if backwards:
        days = binder.call("negate", [days], INT32, node)
    return intervals.add_days(binder.context, node, start, days)


def _make_timestamp(function: str, type_: DataType) -> Special:
    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        """A timestamp of its parts; the seconds have six digits after the point."""
        context = binder.context
        if len(parts) != 6 or not context.is_spark:
            context.fail(
                node,
                "UNKNOWN-FUNCTION",
                "a timestamp is made of six numbers, in Spark's dialect",
                reason="time zones other than UTC, and other dialects' rules, are not supported",
                hint="write make_timestamp(year, month, day, hour, minute, second)",
            )
        numbers = [cast(context, part, binder.bind(part), INT32) for part in parts[:5]]
        exact = cast(context, parts[5], binder.bind(parts[5]), types.decimal(16, 6))
        million = Literal(str(MICROSECONDS["second"]), types.decimal(7, 0))
        micros = binder.call("multiply", [exact, million], types.decimal(23, 6), node)
        return binder.call(function, [*numbers, cast(context, node, micros, INT64)], type_, node)

    return bind


def interval_micros(context: Context, node: exp.Expr) -> int:
    """Return a literal interval, INTERVAL '10' MINUTE or '10 minutes', in microseconds."""
    if isinstance(node, exp.Literal) and node.is_string:
        amount, _, unit = node.name.strip().removeprefix("interval ").partition(" ")
        node = exp.Interval(this=exp.Literal.string(amount), unit=exp.Var(this=unit.strip()))
    if isinstance(node, exp.Interval):
        found = intervals.literal(context, node)
        if not found.type.is_months:
            return int(found.value or 0)
    context.fail(
        node,
        "INTERVAL",
        "the length of a window is not understood",
        reason="time windows have equal lengths, so it is a whole number of weeks or a shorter unit",
        hint="write INTERVAL '10' MINUTE, for example",
    )


def _window_start(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """The start of the window that contains a time: the time minus what has passed since then."""
    moment = binder.bind(parts[0])
    if not moment.type.is_timestamp:
        if moment.type != DATE:
            binder.context.fail(
                parts[0],
                "TYPE-CLASH",
                f"a time window needs a TIMESTAMP or DATE, not {moment.type.sql_name}",
                hint="cast it, or use timestamp_seconds(...) for seconds since 1970",
            )
        moment = cast(binder.context, node, moment, TIMESTAMP)
    size, offset = (Literal(int(part.name), INT64) for part in parts[1:])
    micros = binder.call("unix_micros", [cast(binder.context, node, moment, TIMESTAMP)], INT64, node)
    if offset.value:
        micros = binder.call("subtract", [micros, offset], INT64, node)
    passed = binder.call("negate", [binder.call("pmod", [micros, size], INT64, node)], INT64, node)
    return intervals.shifted_by(binder.context, node, "add_microseconds", moment, passed)


SPECIAL: dict[str, Special] = {
    "crown_window_start": _window_start,  # written by `crown.sql.clauses.rewrites.time_windows`
    "to_timestamp": _to_timestamp,
    **{
        f"{prefix}make_timestamp{suffix}": _make_timestamp(f"{prefix}make_timestamp", type_)
        for prefix in ("", "try_")
        for suffix, type_ in {"": TIMESTAMP, "_ltz": TIMESTAMP, "_ntz": TIMESTAMP_NTZ}.items()
    },
    "to_date": _to_date,
    "unix_timestamp": _unix_timestamp,
    "to_unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
    "timestampadd": _timestampadd,
    "timestampdiff": _timestampdiff,
    "datediff": _datediff,
    "date_diff": _datediff,
    "dateadd": _dateadd,
    "date_sub": _date_sub,
}
