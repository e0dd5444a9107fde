"""Mutated SQL gives a query or a `CrownError`, never a traceback."""

from __future__ import annotations

import random

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from crown.errors import CrownError
from crown.sql import load_schema, parse
from crown.sql.codes import CODES
from tests.sql.generate import SCHEMA, random_query
from tests.sql.test_oracle import WRITTEN

_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "AND",
    "OR",
    "NOT",
    "IN",
    "EXISTS",
    "AS",
    "WITH",
    "UNION",
    "ALL",
    "DISTINCT",
    "NULL",
    "(",
    ")",
    ",",
    ".",
    "*",
    "+",
    "-",
    "/",
    "%",
    "=",
    "<>",
    "<",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "count",
    "sum",
    "max",
    "r",
    "s",
    "t",
    "x",
    "a",
    "b",
    "k",
    "1",
    "2.5",
    "'z'",
    "INTERVAL",
    "DATE",
    "WINDOW",
    "OVER",
    "CAST",
    "LATERAL",
    "VALUES",
    "BETWEEN",
    "LIKE",
    "IS",
    "TRUE",
    "::",
    "[",
    "]",
    ";",
    "--",
    "/*",
    "`",
    '"',
    "'",
    "@",
    "?",
    "{",
    "}",
    "ROWS",
    "PROFILE",
    "fifo",
    "RECURSIVE",
]


def _tokens(sql: str) -> list[str]:
    return sql.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")


def mutated(sql: str, rng: random.Random) -> str:
    """Some tokens deleted, swapped, repeated or replaced, or some characters changed."""
    tokens = _tokens(sql)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        if not tokens:
            break
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                del tokens[i]
            case 1:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 2:
                tokens.insert(j, tokens[i])
            case 3:
                tokens[i] = rng.choice(_WORDS)
            case 4:
                tokens.insert(i, rng.choice(_WORDS))
            case 5:
                text = list(tokens[i])
                text.insert(
                    rng.randrange(len(text) + 1), chr(rng.choice([rng.randrange(1, 128), rng.randrange(0x2FFF)]))
                )
                tokens[i] = "".join(text)
    return " ".join(tokens)


def regrown(sql: str, rng: random.Random) -> str:
    """Parts of the parsed query exchanged for other parts, its own or another query's: valid text of odd meaning."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    other = sqlglot.parse_one(rng.choice(WRITTEN), dialect="spark")
    for _ in range(rng.choice([1, 1, 2, 4])):
        nodes = [n for n in tree.walk() if n.parent is not None and not isinstance(n, exp.Identifier)]
        donors = [n for n in rng.choice([tree, other]).walk() if not isinstance(n, exp.Identifier)]
        target = rng.choice(nodes)
        alike = [n for n in donors if type(n) is type(target)] if rng.random() < 0.5 else donors
        target.replace(rng.choice(alike or donors).copy())
    return tree.sql("spark")


def _bind(sql: str) -> None:
    try:
        parse(sql, _SCHEMA)
    except CrownError as error:
        _check_message(error, "CROWN-")


def _check_message(error: CrownError, prefix: str) -> None:
    assert error.code in CODES
    assert error.code.startswith(prefix)
    assert error.message in str(error)
    if error.position is not None:
        assert 0 <= error.position[0] <= len(error.sql or "")


_SCHEMA = load_schema(SCHEMA)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutated_queries_never_trace_back(rng: random.Random, count: int) -> None:
    for _ in range(count):
        _check(mutated(rng.choice([rng.choice(WRITTEN), random_query(rng)]), rng))


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_regrown_queries_never_trace_back(rng: random.Random, count: int) -> None:
    for _ in range(count):
        try:
            changed = regrown(rng.choice([rng.choice(WRITTEN), random_query(rng)]), rng)
        except Exception:
            continue  # sqlglot has no text for some odd trees
        _check(changed)


def _check(sql: str) -> None:
    try:
        _bind(sql)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} {error} for {sql!r}") from error


@given(st.text(max_size=60))
def test_any_text_never_traces_back(sql: str) -> None:
    _bind(sql)


@given(st.lists(st.sampled_from(_WORDS), max_size=25))
def test_any_words_never_trace_back(words: list[str]) -> None:
    _bind("SELECT " + " ".join(words))


@given(
    st.text(max_size=60),
    st.lists(st.sampled_from([*_WORDS, "CREATE TABLE", "VIEW", "INT", "PRIMARY KEY"]), max_size=15),
)
def test_any_schema_text_never_traces_back(text: str, words: list[str]) -> None:
    for schema in (text, " ".join(words), "CREATE TABLE x (" + " ".join(words) + ")"):
        try:
            load_schema(schema)
        except CrownError as error:
            _check_message(error, "CROWN-SCHEMA-")
