"""Spark's dialect for Crown: sqlglot's, without the rewrites that it does while parsing.

sqlglot turns some functions into others that mean nearly the same, which is enough to translate a text but not to
compute what Spark computes: it reads a time pattern as strftime's (`y`, `yyyy` and `YYYY` are one then), `log10(x)` as
`log(10, x)`, and casts timestamps of `datediff(unit, a, b)` to dates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from crown.sql.words import words

SPARK = ("spark", "spark2", "databricks", "hive")
_AS_WRITTEN = words(
    "log2 log10 unix_timestamp to_unix_timestamp from_unixtime date_format to_timestamp to_date datediff date_diff "
    "dateadd date_sub unix_date instr locate charindex position timestampdiff timestampadd"
)


def _call(name: str) -> Callable[[list[Any]], exp.Expr]:
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


def _array(arguments: list[Any]) -> exp.Expr:
    """COLLECT_LIST and ARRAY_AGG, with a second argument to be refused: sqlglot drops it."""
    first, *more = arguments or [None]
    return exp.ArrayAgg(this=first, nulls_excluded=more[0] if more else True)


def dialects() -> list[str]:
    """Return the names of all dialects."""
    return sorted(name for name in Dialect.classes if name)


def in_spark(node: exp.Expr) -> str:
    """Return the node in Spark's SQL, as far as Spark has it; empty for odd trees, which have no text."""
    try:
        return node.sql("spark", unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, AttributeError, TypeError, ValueError):
        return ""


@cache
def reader(dialect: str) -> str | type[Dialect]:
    """The dialect class or name to pass to sqlglot."""
    name = dialect.lower()
    if name not in SPARK:
        return dialect
    base = Dialect.get_or_raise(name).__class__
    as_written = {each.upper(): _call(each) for each in _AS_WRITTEN}
    functions = {**base.parser_class.FUNCTIONS, **as_written, "COLLECT_LIST": _array, "ARRAY_AGG": _array}
    parser = type("Parser", (base.parser_class,), {"FUNCTIONS": functions})
    # As in Spark 4, a quote is also written by doubling it; sqlglot would read two strings.
    tokenizer = type("Tokenizer", (base.tokenizer_class,), {"STRING_ESCAPES": ["\\", "'", '"']})
    return type(f"Crown{base.__name__}", (base,), {"Parser": parser, "Tokenizer": tokenizer})


def parse_text(sql: str, dialect: str) -> list[exp.Expr]:
    """sqlglot's parse, of a text that may also call `window(...)` and have Flink's `TABLE(f(TABLE t, ...))` in FROM."""
    return _parsed(sql, Dialect.get_or_raise(reader(dialect)))


def parse_to_translate(sql: str, dialect: str) -> list[exp.Expr]:
    """The same with sqlglot's own functions, which it can write in other dialects."""
    return _parsed(sql, Dialect.get_or_raise(dialect))


def _parsed(sql: str, own: Dialect) -> list[exp.Expr]:
    parser = own.parser()
    parser._warn_unsupported = lambda: None  # type: ignore[method-assign]  # (such statements are refused)
    statements = parser.parse(_with_functions(own.tokenize(sql)), sql)
    return [statement for statement in statements if statement is not None]


def _with_functions(tokens: Sequence[Token]) -> list[Token]:
    """Without the words that keep sqlglot from reading a call, or a column named `all`, as one."""
    types = [token.token_type for token in tokens]
    if not any(type_ in _WORDS for type_ in types):
        return list(tokens)
    found: list[Token] = []
    dropped: set[int] = set()
    for index, token in enumerate(tokens):
        before = types[index - 1] if index else None
        after = types[index + 1] if index + 1 < len(types) else None
        if index in dropped:
            continue
        if (token.token_type in _NAMES and after in (TokenType.L_PAREN, TokenType.DOT)) or (
            token.token_type == TokenType.ALL and before == TokenType.SELECT and after in _AFTER_COLUMN
        ):
            found.append(_as_name(token))
        elif token.token_type == TokenType.TABLE and after == TokenType.L_PAREN and before in _BEFORE_ITEM:
            dropped |= {index + 1, _closing(types, index + 1)}
        elif token.token_type == TokenType.TABLE and after == TokenType.VAR and before in _BEFORE_ARGUMENT:
            continue
        else:
            found.append(token)
    return found


_NAMES = (TokenType.WINDOW, TokenType.SESSION)
_WORDS = (*_NAMES, TokenType.TABLE, TokenType.ALL)
_AFTER_COLUMN = (TokenType.COMMA, TokenType.FROM)
_BEFORE_ITEM = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
_BEFORE_ARGUMENT = (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)


def _as_name(token: Token) -> Token:
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)


def _closing(types: Sequence[TokenType], opening: int) -> int:
    depth = 0
    for index in range(opening, len(types)):
        depth += (types[index] == TokenType.L_PAREN) - (types[index] == TokenType.R_PAREN)
        if depth == 0:
            return index
    return opening
