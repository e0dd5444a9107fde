"""The exception hierarchy. Every error says what is wrong, where, why and what to do, under a stable code."""

from __future__ import annotations


class CrownError(Exception):
    """Root of all errors raised by Crown.

    `code` is stable across versions (``CROWN-...``). `position` is a half-open character range in `sql`;
    if both are known, the message shows the line with a caret under the place.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        sql: str | None = None,
        position: tuple[int, int] | None = None,
        reason: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.sql = sql
        self.position = position
        self.reason = reason
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        parts = [f"[{self.code}] {self.message}"]
        if self.sql is not None and self.position is not None:
            parts.append(_caret(self.sql, *self.position))
        if self.reason:
            parts.append(f"why: {self.reason}")
        if self.hint:
            parts.append(f"do:  {self.hint}")
        return "\n".join(parts)


class SqlError(CrownError):
    """The SQL text can't be parsed, bound to the schema, or is not a query Crown maintains."""


class SchemaError(CrownError):
    """The schema text or object is not understood."""


class PlanError(CrownError):
    """No plan exists for the query, or plan data is malformed."""


class InvalidChange(CrownError):
    """A change does not fit the view: wrong type, absent row deleted, unknown table. The view is unchanged."""


class StateError(CrownError):
    """A saved state is corrupt, or belongs to another plan."""


_LONGEST_LINE = 160


def _caret(sql: str, start: int, end: int) -> str:
    """Return the line of `sql` that holds `start`, with carets under the range."""
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    number = sql.count("\n", 0, start) + 1
    prefix = f"line {number}: "
    width = max(1, min(end, line_end) - start)
    # One character for each, so that the caret stays aligned.
    line = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in sql[line_start:line_end])
    column = start - line_start
    if len(line) > _LONGEST_LINE:
        line, column = _around(line, column, width)
        width = min(width, len(line) - column)
    return f"{prefix}{line}\n{' ' * (len(prefix) + column)}{'^' * width}"


def _around(line: str, column: int, width: int) -> tuple[str, int]:
    """Return the part of a long line around the place, with dots where it continues, and the position in it."""
    first = max(0, min(column - _LONGEST_LINE // 3, len(line) - _LONGEST_LINE))
    last = first + _LONGEST_LINE
    before, after = "... " if first else "", " ..." if last < len(line) else ""
    return f"{before}{line[first:last]}{after}", column - first + len(before)
