"""Read the inputs of commands: SQL files, with the schema in a separate file or before the query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crown.errors import CrownError, SchemaError, SqlError

if TYPE_CHECKING:
    from sqlglot import Tokenizer


def read_text(path: Path) -> str:
    """Return a text file, or standard input for `-`."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SqlError(f"{path} can't be read", code="CROWN-FILE", reason=_reason(error), hint=_advice(path)) from error


def _advice(path: Path) -> str | None:
    return "write the query to a file, or give it as standard input: crown ... - < FILE" if " " in str(path) else None


def read_query(query: Path, schema: Path | None, dialect: str = "spark") -> tuple[str, str]:
    """Return the SQL text of the query, and the CREATE statements that describe its tables.

    Without a schema file these come first in the query's own file; the query is its last statement.
    """
    text = read_text(query)
    if schema is not None:
        return text, read_text(schema)
    created, rest = split_schema(text, dialect)
    if not created.strip():
        raise SchemaError(
            f"there is no schema for {query}",
            code="CROWN-SCHEMA-MISSING",
            hint="give --schema FILE with CREATE TABLE statements, or write them before the query",
        )
    return rest, created


def split_schema(text: str, dialect: str = "spark") -> tuple[str, str]:
    """Split SQL text after its leading CREATE statements.

    >>> split_schema("CREATE TABLE r (a INT); SELECT a FROM r")
    ('CREATE TABLE r (a INT);', ' SELECT a FROM r')
    """
    from sqlglot import TokenType
    from sqlglot.errors import SqlglotError

    try:
        tokens = _tokenizer(dialect).tokenize(text)
    except SqlglotError:
        return "", text  # the parser says what is wrong, with the place
    cut, first = 0, True
    for token in tokens:
        if first and token.token_type != TokenType.CREATE:
            break
        first = token.token_type == TokenType.SEMICOLON
        if first:
            cut = token.end + 1
    return text[:cut], text[cut:]


def _tokenizer(dialect: str) -> Tokenizer:
    from sqlglot import Tokenizer

    try:
        return Tokenizer(dialect=dialect)
    except ValueError:
        return Tokenizer(dialect="spark")  # the parser says that there is no such dialect


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CrownError(f"{path} can't be written", code="CROWN-FILE", reason=_reason(error)) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
