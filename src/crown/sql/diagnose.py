"""Errors that point at the SQL: from a sqlglot node to the characters it was read from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from crown.errors import SqlError
from crown.sql.codes import CODES
from crown.sql.dialect import reader

Span = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A range of one SQL text: the query's, or that of a view it reads."""

    span: Span
    sql: str


def span(node: exp.Expr | None) -> Span | None:
    """The half-open character range of `node`; of its nearest ancestor that has one, if it has none itself."""
    while node is not None:
        found = [n.meta for n in node.walk() if "start" in n.meta]
        if found:
            return min(m["start"] for m in found), max(m["end"] for m in found) + 1
        node = node.parent
    return None


def fail(
    sql: str,
    node: exp.Expr | Span | None,
    code: str,
    message: str,
    reason: str | None = None,
    hint: str | None = None,
) -> NoReturn:
    """Raise a `SqlError` with a caret under `node`."""
    position = node if isinstance(node, tuple) or node is None else span(node) or (0, 1)
    if position is not None and not 0 <= position[0] <= len(sql):
        position = None
    full = f"CROWN-SQL-{code}"
    assert full in CODES, full
    raise SqlError(message, code=full, sql=sql, position=position, reason=reason, hint=hint)


def nearest(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """A hint that names what the user may have meant.

    >>> nearest("pirce", ["price", "discount"])
    'did you mean price?'
    """
    by_lower = {c.lower(): c for c in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return f"did you mean {by_lower[close[0]]}?" if close else None


def parse_statements(sql: str, dialect: str) -> list[exp.Expr]:
    """sqlglot's parse, with its errors (and its accidents on malformed text) as `SqlError`."""
    try:
        return [s for s in sqlglot.parse(sql, dialect=reader(dialect)) if s is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        message = str(first.get("description") or error).split(" but got <Token")[0]
        fail(sql, _position_of(sql, first), "SYNTAX", f"syntax error: {message}", hint="check the text at the caret")
    except SqlglotError as error:
        fail(sql, (max(0, len(sql) - 1), len(sql)), "SYNTAX", f"syntax error: {_first_line(error)}")
    except RecursionError:
        fail(sql, (0, 1), "TOO-DEEP", "the SQL text is nested too deeply", hint="split it with WITH or views")
    except ValueError as error:
        if "dialect" in str(error).lower():
            fail(sql, None, "DIALECT", f"unknown SQL dialect {dialect!r}", hint="use one that sqlglot knows")
        fail(sql, (0, 1), "SYNTAX", f"syntax error: {_first_line(error)}")
    except (AttributeError, TypeError, IndexError, KeyError, AssertionError) as error:
        # The parser trips over some malformed texts; to the user that is a syntax error like any other.
        fail(sql, (0, 1), "SYNTAX", f"syntax error: the parser gave up ({_first_line(error)})")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _position_of(sql: str, error: dict[str, object]) -> Span | None:
    """sqlglot reports the line and the column where the offending token ends."""
    line, column, highlight = error.get("line"), error.get("col"), error.get("highlight")
    if not isinstance(line, int) or not isinstance(column, int) or not isinstance(highlight, str):
        return None
    lines = sql.split("\n")
    start_of_line = sum(len(text) + 1 for text in lines[: line - 1])
    start = max(start_of_line, start_of_line + column - len(highlight))
    found = sql.find(highlight, max(0, start - 1)) if highlight else -1
    start = found if 0 <= found <= start + 1 else min(start, max(0, len(sql) - 1))
    return start, start + max(1, len(highlight))
