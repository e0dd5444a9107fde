"""Errors that point at the SQL: map a sqlglot node to the characters it was parsed from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from crown.codes import CODES
from crown.errors import SqlError
from crown.sql.dialect import parse_text, reader
from crown.sql.misspelt import misspelt_beginning, misspelt_keyword, nearest_type, unknown_type
from crown.sql.nodes import nodes_of

Span = tuple[int, int]
_SPAN = "crown_span"
_NO_TEXT = re.compile("[\\x00\\ud800-\\udfff]")  # no database takes these, and no terminal shows them
_CONNECTIVE = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_OPENED = re.compile(r"([A-Za-z_]\w*)\s*\(\s*(?:DISTINCT\s+|ALL\s+)?\Z", re.IGNORECASE)
MOST_CONNECTIVES = 4000
MOST_COMMAS = 30_000
_UNEXPECTED = "Invalid expression / Unexpected token"
_EXPECTING = re.compile(r"^Expecting (\S+)$")
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")


@dataclass(frozen=True)
class Place:
    """A range of one SQL text: the query's, or that of a view it reads."""

    span: Span
    sql: str


def span(node: exp.Expr | None) -> Span | None:
    """Return the half-open character range of `node`; of its nearest ancestor that has one, if it has none itself."""
    while node is not None:
        if _SPAN in node.meta:
            return node.meta[_SPAN]  # type: ignore[no-any-return]
        found = [n.meta for n in nodes_of(node) if "start" in n.meta]
        if found:
            return min(m["start"] for m in found), max(m["end"] for m in found) + 1
        node = node.parent
    return None


def note_spans(root: exp.Expr) -> None:
    """Note the range of every node of a statement, so that none has to be searched for its first and last token."""
    for node in reversed(nodes_of(root)):  # children before their parents
        meta = node.meta
        if "start" in meta:
            _widen(meta, (meta["start"], meta["end"] + 1))
        if _SPAN in meta and node.parent is not None and node is not root:
            _widen(node.parent.meta, meta[_SPAN])


def _widen(meta: dict[str, Any], own: Span) -> None:
    known = meta.get(_SPAN, own)
    meta[_SPAN] = (min(known[0], own[0]), max(known[1], own[1]))


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


def written_name(sql: str, node: exp.Expr) -> str | None:
    """Return the name of a function as the text has it; None for an operator.

    >>> statement = parse_statements("SELECT PERCENTILE_APPROX(a, 0.5) FROM t", "spark")[0]
    >>> written_name("SELECT PERCENTILE_APPROX(a, 0.5) FROM t", statement.expressions[0])
    'PERCENTILE_APPROX'
    """
    place = span(node)
    if place is None or not isinstance(node, exp.Func):
        return None
    names = {str(node.this).upper()} if isinstance(node, exp.Anonymous) else {name.upper() for name in node.sql_names()}
    own, around = _CALL.match(sql, place[0]), _OPENED.search(sql, 0, place[0])
    if own is not None and (own[1].upper() in names or around is None):
        return own[1]
    return around[1] if around is not None else None


def refuse_depth(sql: str) -> NoReturn:
    """The text is nested more deeply than it can be read; points at its innermost parenthesis."""
    depth, deepest, place = 0, 0, 0
    for position, character in enumerate(sql):
        depth += (character == "(") - (character == ")")
        if depth > deepest:
            deepest, place = depth, position
    fail(
        sql,
        (place, place + 1),
        "TOO-DEEP",
        "the query is nested too deeply",
        reason="parentheses, functions and subqueries may nest a few dozen levels, chains of + a few hundred",
        hint="split it with WITH or views; chains of AND, OR and || may be much longer",
    )


def refuse_command(sql: str, statement: Sequence[Token], dialect: str) -> None:
    """Point at the part of a CREATE statement that can't be parsed, if it can be found."""
    if (found := misspelt_beginning(statement)) is not None:
        word, hint = found
        fail(sql, _span_of(word), "SYNTAX", f"syntax error: {word.text} is not a keyword", hint=hint)
    query = next((token.end + 1 for token in statement if token.token_type == TokenType.ALIAS), None)
    if query is not None:
        alone = re.sub(r"[^\n]", " ", sql[:query]) + sql[query : statement[-1].end + 1]  # at the same positions
        try:
            parse_statements(alone, dialect)
        except SqlError as error:
            fail(sql, error.position, error.code.removeprefix("CROWN-SQL-"), error.message, error.reason, error.hint)


def parse_statements(sql: str, dialect: str) -> list[exp.Expr]:
    """Parse with sqlglot; raise its errors (and its crashes on malformed text) as `SqlError`."""
    if odd := _NO_TEXT.search(sql):
        shown = f"U+{ord(odd[0]):04X}"
        fail(sql, odd.span(), "SYNTAX", f"syntax error: the character {shown} is not allowed", hint="remove it")
    _refuse_length(sql, dialect)
    _refuse_pipes(sql, dialect)
    try:
        statements = parse_text(sql, dialect)
        for statement in statements:
            note_spans(statement)
        return statements
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        message = str(first.get("description") or error).split(" but got <Token")[0]
        _refuse_syntax(sql, dialect, _position_of(sql, first), message)
    except SqlglotError:
        end = (max(0, len(sql) - 1), len(sql))
        message = "a quote or comment is not closed, or a character is not allowed"
        fail(sql, end, "SYNTAX", f"syntax error: {message}", hint="close every quote and comment")
    except RecursionError:
        refuse_depth(sql)
    except ValueError as error:
        if "dialect" in str(error).lower():
            fail(
                sql,
                None,
                "DIALECT",
                f"unknown SQL dialect {dialect!r}",
                hint="use a dialect of sqlglot, such as 'spark' or 'postgres'",
            )
        fail(sql, (0, 1), "SYNTAX", f"syntax error: {_first_line(error)}")
    except (AttributeError, TypeError, IndexError, KeyError, AssertionError) as error:
        # The parser crashes on some malformed texts; to the user that is a syntax error like any
        # other.
        fail(sql, (0, 1), "SYNTAX", f"syntax error: the parser failed ({_first_line(error)})")


def _refuse_syntax(sql: str, dialect: str, position: Span | None, message: str) -> NoReturn:
    """Report the parser's message, unless a word near the position is probably misspelt."""
    if position is not None:
        statements = statement_tokens(sql, dialect)
        tokens = next((tokens for tokens in reversed(statements) if tokens[0].start <= position[0]), [])
        if (type_ := unknown_type(tokens, position[0])) is not None:
            fail(sql, _span_of(type_), "UNKNOWN-TYPE", f"{type_.text} is not a type", hint=nearest_type(type_.text))
        if (found := misspelt_keyword(tokens, position[0])) is not None:
            word, hint = found
            fail(sql, _span_of(word), "SYNTAX", f"syntax error: {word.text} is not a keyword", hint=hint)
        if message == _UNEXPECTED:
            message = f"{sql[slice(*position)]} is not expected here"
    message = _MISSING.sub("an expression or name is missing", message)
    message = _EXPECTING.sub(r"\1 is expected here", message)
    fail(sql, position, "SYNTAX", f"syntax error: {message}", hint="check the text at the caret")


def statement_tokens(sql: str, dialect: str) -> list[list[Token]]:
    """Return the tokens of each statement."""
    found: list[list[Token]] = [[]]
    for token in sqlglot.tokenize(sql, read=reader(dialect)):
        if token.token_type == TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [tokens for tokens in found if tokens]


def _span_of(token: Token) -> Span:
    return token.start, token.end + 1


def _refuse_pipes(sql: str, dialect: str) -> None:
    """Reject `|>`: the parser rewrites the query, and gets some of its operators wrong."""
    if "|>" not in sql:
        return
    with suppress(SqlglotError, ValueError):  # which the parser reports
        for token in sqlglot.tokenize(sql, read=reader(dialect)):
            if token.token_type == TokenType.PIPE_GT:
                fail(sql, _span_of(token), "SYNTAX", "|> is not supported", hint="write SELECT ... FROM (...)")


def _refuse_length(sql: str, dialect: str) -> None:
    """Reject a text whose planning would take seconds, before it is parsed."""
    if len(_CONNECTIVE.findall(sql)) <= MOST_CONNECTIVES and sql.count(",") <= MOST_COMMAS:
        return
    with suppress(SqlglotError, ValueError):  # which the parser reports
        for tokens in statement_tokens(sql, dialect):
            connectives = [t for t in tokens if t.token_type in (TokenType.AND, TokenType.OR)]
            hint = "write a long list of values as IN (...), or as a table to join with"
            _refuse_many(sql, connectives, "ANDs and ORs", MOST_CONNECTIVES, hint)
            commas = [t for t in tokens if t.token_type == TokenType.COMMA]
            _refuse_many(sql, commas, "commas", MOST_COMMAS, "write a long list of values as a table to join with")


def _refuse_many(sql: str, tokens: Sequence[Token], what: str, most: int, hint: str) -> None:
    if len(tokens) > most:
        message = f"the query has {len(tokens):,} {what}, more than {most:,}"
        fail(sql, _span_of(tokens[most]), "TOO-LONG", message, "planning takes time for each", hint)


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
