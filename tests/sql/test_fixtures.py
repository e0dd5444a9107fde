"""SQL in, the bound query (or the whole error message) out, as text files to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crown.errors import CrownError, SqlError
from crown.sql import load_schema, parse
from crown.sql.describe import describe
from tests.sql import fixtures
from tests.sql.fixtures import Fixture

SCHEMA = load_schema((fixtures.FOLDER / "schema.sql").read_text())
QUERIES = Path(__file__).parents[1] / "queries"
REFUSED: set[str] = set()


def bound(sql: str) -> str:
    return describe(parse(sql, SCHEMA))


def refused(sql: str) -> str:
    try:
        parse(sql, SCHEMA)
    except SqlError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize("fixture", fixtures.read("bound.txt"), ids=lambda f: f.title)
def test_bound(fixture: Fixture) -> None:
    assert bound(fixture.sql) == fixture.expected


@pytest.mark.parametrize("fixture", fixtures.read("errors.txt"), ids=lambda f: f.title)
def test_errors(fixture: Fixture) -> None:
    assert refused(fixture.sql) == fixture.expected


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(QUERIES.glob("*/*.sql")) if p.stem != "schema"],
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_query_suites(path: Path) -> None:
    """Every query of the suites binds, or is refused with a reason and advice."""
    name = f"{path.parent.name}/{path.stem}"
    schema = load_schema(path.parent / "schema.sql")
    if name not in REFUSED:
        parse(path.read_text(), schema)
        return
    with pytest.raises(SqlError) as caught:
        parse(path.read_text(), schema)
    assert caught.value.reason
    assert caught.value.hint
    assert caught.value.position


def test_write_fixtures() -> None:
    if not fixtures.WRITE:
        pytest.skip("only on request")
    for name, render in (("bound.txt", bound), ("errors.txt", refused)):
        fixtures.write(name, [replace(f, expected=render(f.sql)) for f in fixtures.read(name)])


def test_errors_are_crown_errors() -> None:
    with pytest.raises(CrownError):
        parse("SELECT", SCHEMA)
