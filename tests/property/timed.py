"""Constructs of `compose` with time: windows of time, ASOF joins, durations, and comparisons with the current time.

All of them fall back to plain rows where nothing that they read has a time. Only streams that tell the view the time
can run queries with `now()`: see `CLOCK` in `compose`.
"""

from __future__ import annotations

from dataclasses import replace

from tests.property.composer import Composer, Query, Source, Term
from tests.property.queries import LITERALS


def _times(source: Source) -> list[str]:
    return [text for text, domain in source.columns if domain == "time"]


def _windowed(composer: Composer, depth: int, window: str) -> Query:
    """Groups by a window of time, and perhaps by a column."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.pick([1, 1, 2]))
    times = _times(source)
    if not times:
        return composer.select(composer.terms(source.columns), source.text)
    call = window.format(composer.pick(times))
    by: list[Term] = [(call, "time")]
    by += [composer.pick(source.columns)] if composer.chance(40) else []
    query = composer.select([*by, *composer.aggregates(source.columns)], source.text)
    return replace(query, text=f"{query.text} GROUP BY {', '.join(text for text, _ in by)}")


def tumble(composer: Composer, depth: int) -> Query:
    return _windowed(composer, depth, f"TUMBLE({{0}}, INTERVAL '{composer.pick([1, 2, 5, 60])}' MINUTE)")


def hop(composer: Composer, depth: int) -> Query:
    slide = composer.pick([1, 2, 10])
    size = slide * composer.pick([2, 3])
    return _windowed(composer, depth, f"HOP({{0}}, INTERVAL '{slide}' MINUTE, INTERVAL '{size}' MINUTE)")


def session(composer: Composer, depth: int) -> Query:
    """Groups by session. FROM is one query, which is the only form that is supported."""
    source = composer.source(depth)
    times = _times(source)
    if not times:
        return composer.select(composer.terms(source.columns), source.text)
    call = f"SESSION({composer.pick(times)}, INTERVAL '{composer.pick([1, 2, 60])}' MINUTE)"
    by: list[Term] = [composer.pick(source.columns)] if composer.chance(60) else []
    where = [composer.predicate(source.columns)] if composer.chance(25) else []
    shown = [*by, (call.replace("SESSION(", "SESSION_START(", 1), "time"), *composer.aggregates(source.columns)]
    shown += [(call.replace("SESSION(", "SESSION_END(", 1), "time")] if composer.chance(50) else []
    query = composer.select(shown, source.text, where=where)
    return replace(query, text=f"{query.text} GROUP BY {', '.join([*(text for text, _ in by), call])}")


def duration(composer: Composer, depth: int) -> Query:
    """The time between two moments: shown, compared or aggregated (DuckDB has no sum of intervals)."""
    source = composer.joined(depth, ["JOIN", "LEFT JOIN"], composer.pick([1, 2]))
    times = _times(source)
    if not times:
        return composer.select(composer.terms(source.columns), source.text)
    between = f"({composer.pick(times)} - {composer.pick([*times, *LITERALS['time']])})"
    where = [f"{between} >= INTERVAL '1' MINUTE"] if composer.chance(30) else []
    if composer.chance(50):
        return composer.select([(between, "span"), *composer.terms(source.columns)], source.text, where=where)
    by = composer.pick(source.columns)
    query = composer.select([by, (f"MIN({between})", "span"), (f"MAX({between})", "span")], source.text, where=where)
    return replace(query, text=f"{query.text} GROUP BY {by[0]}")


def asof(composer: Composer, depth: int) -> Query:
    """Each row beside the nearest one of another query, which has one row for each value so that there are no ties."""
    source, other = composer.source(depth), composer.source(depth)
    ordered = [(a, b) for a, one in source.columns for b, two in other.columns if one == two in ("int", "time", "date")]
    if not ordered:
        return composer.select(composer.terms(source.columns), source.text)
    composer.aliases += 1
    alias = f"n{composer.aliases}"
    outside, inside = composer.pick(ordered)
    value, _ = composer.pick(other.columns)
    keys = composer.pairs(source.columns, other.columns) if composer.chance(60) else []
    shown, groups, on = [f"{inside} AS w", f"COUNT({value}) AS n"], [inside], []
    if keys:
        one, key = composer.pick(keys)
        shown, groups, on = [f"{key} AS k", *shown], [key, inside], [f"{one} = {alias}.k"]
    on.append(f"{outside} {composer.pick(['>=', '>', '<=', '<'])} {alias}.w")
    nearest = f"(SELECT {', '.join(shown)} FROM {other.text} GROUP BY {', '.join(groups)}) AS {alias}"
    kind = composer.pick(["ASOF JOIN", "ASOF LEFT JOIN"])
    columns = [*source.columns, (f"{alias}.n", "int"), (f"{alias}.w", dict(source.columns)[outside])]
    return composer.select(composer.terms(columns), f"{source.text} {kind} {nearest} ON {' AND '.join(on)}")


def current_time(composer: Composer, depth: int) -> Query:
    """Comparisons with now() and CURRENT_DATE wherever a condition can stand."""
    source = composer.source(depth)
    times, dates = _times(source), [text for text, domain in source.columns if domain == "date"]
    back = f"now() - INTERVAL {composer.pick([1, 3, 30])} MINUTE"
    tests = [
        test
        for text in times
        for test in (f"{text} > {back}", f"now() >= {text}", f"{text} BETWEEN {back} AND now()", f"{text} < now()")
    ]
    tests += [f"{text} {operator} CURRENT_DATE" for text in dates for operator in ("<", ">=")]
    tests += [f"{text} <= CURRENT_DATE() - INTERVAL 30 DAY" for text in dates]
    if not tests:
        return composer.select(composer.terms(source.columns), source.text)
    test, shown = composer.pick(tests), composer.terms(source.columns)
    place = composer.pick(["WHERE", "WHERE", "two", "OR", "SELECT", "FILTER", "EXISTS"])
    if place == "SELECT":
        return composer.select([*shown, (test, "boolean")], source.text)
    if place == "FILTER":
        by = composer.pick(source.columns)
        query = composer.select([by, (f"COUNT(*) FILTER (WHERE {test})", "int")], source.text)
        return replace(query, text=f"{query.text} GROUP BY {by[0]}")
    if place == "EXISTS":
        outer = composer.source(0)
        rows = f"SELECT 1 FROM {source.text} WHERE {composer.equality(outer.columns, source.columns)} AND {test}"
        exists = f"{composer.pick(['', 'NOT '])}EXISTS ({rows})"
        return composer.select(composer.terms(outer.columns), outer.text, where=[exists])
    where = [f"({test} OR {composer.predicate(source.columns)})"] if place == "OR" else [test]
    where += [composer.pick(tests)] if place == "two" else []
    return composer.select(shown, source.text, where=where)
