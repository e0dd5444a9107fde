"""Mutated SQL gives a query or a `CrownError`, never a traceback."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crown.codes import CODES
from crown.errors import CrownError
from crown.sql import load_schema, parse
from tests.sql.generate import SCHEMA
from tests.sql.odd_texts import WORDS, odd_text


def _bind(sql: str, dialect: str = "spark") -> None:
    try:
        parse(sql, _SCHEMA, dialect=dialect)
    except CrownError as error:
        _check_message(error, "CROWN-")


def _check_message(error: CrownError, prefix: str) -> None:
    assert error.code in CODES
    assert error.code.startswith(prefix)
    assert error.message in str(error)
    assert "sqlglot" not in error.message and "<class" not in error.message
    str(error).encode()  # what a terminal shows
    assert "\0" not in str(error)
    if error.position is not None:
        assert 0 <= error.position[0] <= len(error.sql or "")


_SCHEMA = load_schema(SCHEMA)


@pytest.mark.parametrize("count", [700, pytest.param(60_000, marks=pytest.mark.slow)])
def test_odd_texts_never_trace_back(rng: random.Random, count: int) -> None:
    for _ in range(count):
        _check(*odd_text(rng))


def _check(sql: str, dialect: str) -> None:
    try:
        _bind(sql, dialect)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} {error} for {sql!r} in {dialect}") from error


@given(st.text(max_size=60))
def test_any_text_never_traces_back(sql: str) -> None:
    _bind(sql)


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_words_never_trace_back(words: list[str]) -> None:
    _bind("SELECT " + " ".join(words))


@given(
    st.text(max_size=60),
    st.lists(st.sampled_from([*WORDS, "CREATE TABLE", "VIEW", "INT", "PRIMARY KEY"]), max_size=15),
)
def test_any_schema_text_never_traces_back(text: str, words: list[str]) -> None:
    for schema in (text, " ".join(words), "CREATE TABLE x (" + " ".join(words) + ")"):
        try:
            load_schema(schema)
        except CrownError as error:
            _check_message(error, "CROWN-SCHEMA-")
