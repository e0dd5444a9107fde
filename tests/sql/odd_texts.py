"""Odd SQL texts: queries of suites and fixtures with tokens changed, parts exchanged, words of other dialects put in.

Most are refused. What matters is how: by a `CrownError`, whatever the text.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from tests.sql import fixtures
from tests.sql.generate import random_query

TESTS = Path(__file__).parents[1]
DIALECTS = sorted(filter(None, Dialect.classes))

WORDS = (fixtures.FOLDER / "words.txt").read_text().split()
FRAGMENTS = (fixtures.FOLDER / "fragments.txt").read_text().splitlines()


@functools.cache
def corpus() -> tuple[str, ...]:
    """Queries over the tables of `generate.SCHEMA` and of the suites."""
    from tests.sql.test_oracle import WRITTEN

    suites = [path.read_text() for path in sorted((TESTS / "queries").glob("*/*.sql")) if path.stem != "schema"]
    written = [f.sql for name in ("bound.txt", "errors.txt") for f in fixtures.read(name)]
    return (*WRITTEN, *written, *suites)


def odd_text(rng: random.Random) -> tuple[str, str]:
    """A text and the dialect to read it in."""
    dialect = "spark" if rng.random() < 0.6 else rng.choice(DIALECTS)
    base = random_query(rng) if rng.random() < 0.4 else rng.choice(corpus())
    match rng.randrange(10):
        case 0 | 1 | 2:
            return mutated(base, rng), dialect
        case 3 | 4:
            return regrown(base, rng), dialect
        case 5 | 6:
            return spliced(base, rng), dialect
        case 7:
            return _translated(base, rng, dialect), dialect
        case 8:
            return " ".join(["SELECT", *rng.choices(WORDS, k=rng.randrange(25))]), dialect
        case _:
            return rng.choice([_deep, _noise])(rng), dialect


def tokens(sql: str) -> list[str]:
    return sql.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")


def mutated(sql: str, rng: random.Random) -> str:
    """Some tokens deleted, swapped, repeated or replaced, or some characters changed."""
    found = tokens(sql)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        if not found:
            break
        i, j = rng.randrange(len(found)), rng.randrange(len(found))
        match rng.randrange(6):
            case 0:
                del found[i]
            case 1:
                found[i], found[j] = found[j], found[i]
            case 2:
                found.insert(j, found[i])
            case 3:
                found[i] = rng.choice(WORDS)
            case 4:
                found.insert(i, rng.choice(WORDS))
            case 5:
                text = list(found[i])
                text.insert(rng.randrange(len(text) + 1), _character(rng))
                found[i] = "".join(text)
    return " ".join(found)


def regrown(sql: str, rng: random.Random) -> str:
    """Parts of the parsed query exchanged for other parts, its own or another query's: valid text of odd meaning."""
    try:
        tree, other = (sqlglot.parse_one(text, dialect="spark") for text in (sql, rng.choice(corpus())))
        for _ in range(rng.choice([1, 1, 2, 4])):
            nodes = [n for n in tree.walk() if n.parent is not None and not isinstance(n, exp.Identifier)]
            donors = [n for n in rng.choice([tree, other]).walk() if not isinstance(n, exp.Identifier)]
            target = rng.choice(nodes)
            alike = [n for n in donors if type(n) is type(target)] if rng.random() < 0.5 else donors
            target.replace(rng.choice(alike or donors).copy())
        return tree.sql("spark")
    except Exception:  # sqlglot trips over some texts, and has no text for some odd trees
        return mutated(sql, rng)


def spliced(sql: str, rng: random.Random) -> str:
    """A clause put in between two tokens, most often at the end of one."""
    found = tokens(sql)
    for _ in range(rng.choice([1, 1, 2])):
        found.insert(rng.choice([len(found), rng.randrange(len(found) + 1)]), rng.choice(FRAGMENTS))
    return " ".join(found)


def _translated(sql: str, rng: random.Random, dialect: str) -> str:
    """The query as another dialect writes it, with a flag or part set that its parser might have set."""
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
        for _ in range(rng.choice([0, 1, 2])):
            node = rng.choice(list(tree.walk()))
            if node.arg_types:
                part = rng.choice(sorted(node.arg_types))
                node.set(part, rng.choice([True, exp.Literal.number(1), exp.column("a"), exp.var("WORD"), None]))
        return tree.sql(dialect)
    except (SqlglotError, AttributeError, TypeError, ValueError, KeyError, IndexError, AssertionError, RecursionError):
        return sql


def _deep(rng: random.Random) -> str:
    depth = rng.choice([5, 30, 60, 200, 1000])
    left, middle, right = rng.choice(
        [
            ("(", "a", ")"),
            ("a + ", "a", ""),
            ("NOT ", "a = 1", ""),
            ("- ", "a", ""),
            ("CASE WHEN a = 1 THEN 1 ELSE ", "0", " END"),
            ("abs(", "a", ")"),
            ("a AND ", "a", ""),
            ("a = 1 OR ", "b = 2", ""),
            ("c || ", "c", ""),
            ("(SELECT max(a) FROM r WHERE a = ", "1", ")"),
            ("a IN (", "1", ")"),
            ("[", "a", "]"),
            ("{", "a", "}"),
            ("a.", "a", ""),
            ("a, ", "a", ""),
        ]
    )
    text = left * depth + middle + right * rng.choice([depth, depth, depth - 1])
    return rng.choice([f"SELECT {text} FROM r", f"SELECT a FROM r WHERE {text}", f"SELECT a FROM r GROUP BY {text}"])


def _noise(rng: random.Random) -> str:
    return "".join(_character(rng) for _ in range(rng.randrange(80)))


def _character(rng: random.Random) -> str:
    return chr(
        rng.choice([rng.randrange(0, 128), rng.randrange(0x2FFF), rng.choice([0, 0xFEFF, 0x202E, 0x1F600, 0xDC80])])
    )
