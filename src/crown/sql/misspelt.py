"""Suggestions for misspelt words: names of tables, columns and functions, keywords near a syntax error, and types."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from crown.sql.words import words

_KEYWORDS = words(
    "SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET QUALIFY JOIN INNER OUTER UNION EXCEPT INTERSECT DISTINCT "
    "BETWEEN PARTITION PRIMARY CREATE TABLE VIEW MATERIALIZED"
)
_FIRST = words("SELECT WITH CREATE DROP")
_TYPES = words(
    "BOOLEAN TINYINT SMALLINT INT INTEGER BIGINT FLOAT REAL DOUBLE DECIMAL NUMERIC STRING VARCHAR CHAR TEXT BINARY "
    "DATE TIME TIMESTAMP TIMESTAMP_NTZ UUID ARRAY STRUCT MAP"
)
TYPES = (
    "use boolean, integers, float, double, decimal(p,s), string, binary, date, time, timestamp, uuid, array, struct "
    "or map"
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def nearest(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return a hint that names what the user may have meant.

    >>> nearest("pirce", ["price", "discount"])
    'did you mean price?'
    """
    by_lower = {c.lower(): c for c in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return f"did you mean {by_lower[close[0]]}?" if close else None


def nearest_type(word: str) -> str:
    """
    >>> nearest_type("INTT")
    'did you mean INT?'
    """
    return nearest(word, _TYPES, 0.7) or TYPES


def misspelt_keyword(tokens: Sequence[Token], position: int) -> tuple[Token, str] | None:
    """Return the word that caused a syntax error at `position`, and a hint.

    It is the first of the text, or where the error is, or one or two words before it: until then the parser takes it
    for a name.
    """
    if not tokens:
        return None
    at = next((i for i, token in enumerate(tokens) if token.end >= position), len(tokens))
    near = [(tokens[0], _FIRST), *((token, _KEYWORDS) for token in reversed(tokens[max(0, at - 2) : at + 1]))]
    for token, keywords in near:
        hint = _hint(token, keywords)
        if hint is not None:
            return token, hint
    return None


def misspelt_beginning(tokens: Sequence[Token]) -> tuple[Token, str] | None:
    """Return a word of `CREATE MATERIALIZED VIEW` that is not spelt like this, and a hint."""
    for token in tokens[:4]:
        if token.token_type == TokenType.ALIAS:
            break
        hint = _hint(token, (*_FIRST, "TABLE", "VIEW", "MATERIALIZED"))
        if hint is not None:
            return token, hint
    return None


def unknown_type(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the word after CAST's AS, `::`, or a column's name in CREATE TABLE, that is no type."""
    at = next((i for i, token in enumerate(tokens) if token.end >= position), None)
    if at is None or tokens[at].token_type not in _NAMES:
        return None
    before = [token.token_type for token in tokens[max(0, at - 2) : at]]
    if before[-1:] in ([TokenType.ALIAS], [TokenType.DCOLON]) and not _is_ddl(tokens):
        return tokens[at]
    if not _is_ddl(tokens):
        return None
    follows = [token.token_type for token in tokens[at + 1 : at + 3]]
    if before[-1:] == [TokenType.LT] and follows == [TokenType.COLON, TokenType.VAR]:
        return tokens[at + 2]  # a field of a struct
    column = len(before) == 2 and before[0] in (TokenType.L_PAREN, TokenType.COMMA) and before[1] in _NAMES
    part = before[-1:] == [TokenType.LT] or (before[-1:] == [TokenType.COMMA] and _opened(tokens[:at]) > 0)
    return tokens[at] if column or part else None


def _is_ddl(tokens: Sequence[Token]) -> bool:
    return tokens[0].token_type == TokenType.CREATE


def _opened(tokens: Sequence[Token]) -> int:
    """How many `<` are not closed."""
    types = [token.token_type for token in tokens]
    return types.count(TokenType.LT) - types.count(TokenType.GT)


def _hint(token: Token, keywords: Sequence[str]) -> str | None:
    word = token.text.upper()
    if token.token_type != TokenType.VAR or len(word) < 4 or any(keyword in word for keyword in keywords):
        return None  # (orders, created: a name)
    return nearest(word, keywords, 0.75)
