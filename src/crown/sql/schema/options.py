"""Crown's own table options, `WINDOW (...)` and `PROFILE word`, extracted from SQL text before sqlglot parses it.

They may follow a table in CREATE TABLE or in FROM. The text is blanked, not cut, so that every position
in what sqlglot reads is a position in what the user wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crown.ir.tables import Profile, Window
from crown.sql.diagnose import Span, fail
from crown.types import DATE, DataType

PROFILES: dict[str, Profile] = {
    "static": "static",
    "insert_only": "insert_only",
    "fifo": "fifo",
    "arbitrary": "arbitrary",
}
MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}

# Literals and comments are matched first, so that no option is found inside them.
_TOKEN = re.compile(
    r"""(?P<skip>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/)
      | (?P<window>\bWINDOW\s*\((?P<body>[^()]*)\))
      | (?P<profile>\bPROFILE\s+(?P<word>[A-Za-z_]+)\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_BEFORE_FUNCTION = re.compile(r"(?:[,(=<>+*/-]|\b(?:SELECT|DISTINCT|BY|AND|OR|WHEN|THEN|ELSE))\s*\Z", re.IGNORECASE)
_ROWS = re.compile(r"\s*ROWS\s+([0-9]{1,100})\s*", re.IGNORECASE)
_RANGE = re.compile(
    r"\s*RANGE\s+(?:INTERVAL\s+)?'?\s*([0-9]{1,100})\s*'?\s*([A-Za-z]+)?\s*'?\s+ON\s+`?(\w+)`?\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Option:
    """One option as written. A time window's unit is not yet in the unit of its column: see `window_for`."""

    position: Span
    profile: Profile | None = None
    rows: int | None = None
    amount: int | None = None
    unit: str | None = None
    column: str | None = None


def take_options(sql: str) -> tuple[str, list[Option]]:
    """Return the text with its options blanked, and the options.

    >>> text, options = take_options("SELECT 1 FROM g WINDOW (ROWS 10)")
    >>> text, options[0].rows
    ('SELECT 1 FROM g                 ', 10)
    """
    options: list[Option] = []
    pieces: list[str] = []
    done = 0
    for match in _TOKEN.finditer(sql):
        if match["skip"] is not None:
            continue
        if match["window"] is not None and _BEFORE_FUNCTION.search(sql, 0, match.start()):
            continue  # GROUP BY window(ts, '1 hour')
        option = _profile(sql, match) if match["profile"] is not None else _window(sql, match)
        if option is None:
            continue
        options.append(option)
        pieces += [sql[done : match.start()], re.sub(r"[^\n]", " ", match[0])]
        done = match.end()
    return "".join(pieces) + sql[done:], options


def _profile(sql: str, match: re.Match[str]) -> Option | None:
    profile = PROFILES.get(match["word"].lower())
    return Option(match.span(), profile=profile) if profile else None  # else an alias called `profile`


def _window(sql: str, match: re.Match[str]) -> Option | None:
    if rows := _ROWS.fullmatch(match["body"]):
        return Option(match.span(), rows=int(rows[1]))
    if found := _RANGE.fullmatch(match["body"]):
        return Option(match.span(), amount=int(found[1]), unit=(found[2] or "").lower().rstrip("s"), column=found[3])
    fail(
        sql,
        match.span(),
        "WINDOW",
        "this window is not understood",
        reason="a window is a number of rows, or a range of a column of the table",
        hint="write WINDOW (ROWS 1000) or WINDOW (RANGE INTERVAL 1 DAY ON ts) after the table",
    )


def _sized(size: int, option: Option, sql: str) -> int:
    if not 0 < size < 2**63:
        fail(
            sql,
            option.position,
            "WINDOW",
            "a window must have a size of at least one, and below 2^63",
            hint="write WINDOW (ROWS 1000) or WINDOW (RANGE INTERVAL 1 DAY ON ts)",
        )
    return size


def window_for(option: Option, column_type: DataType | None, sql: str) -> Window:
    """Return the window in the unit of its column. `column_type` is None for a row window or an unknown column."""
    if option.rows is not None:
        return Window(rows=_sized(option.rows, option, sql))
    amount, unit = option.amount or 0, option.unit or ""
    if column_type is not None and column_type.is_timestamp and unit in MICROSECONDS:
        return Window(interval=_sized(amount * MICROSECONDS[unit], option, sql), column=option.column)
    if column_type == DATE and unit in ("day", "week"):
        return Window(interval=_sized(amount * (7 if unit == "week" else 1), option, sql), column=option.column)
    if column_type is not None and column_type.is_integer and not unit:
        return Window(interval=_sized(amount, option, sql), column=option.column)
    fail(
        sql,
        option.position,
        "WINDOW",
        f"a range of {amount} {unit or 'units'} does not fit column {option.column} ({column_type or 'not found'})",
        reason="a range is seconds to weeks for a timestamp, days or weeks for a date, a number for an integer",
        hint="write WINDOW (RANGE INTERVAL 1 DAY ON ts), for example",
    )
