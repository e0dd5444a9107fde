"""The functions of docs/sql.md: each is known, and each is compared with Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crown.ir.functions import FUNCTIONS
from crown.sql.scalar.catalogue import FAMILIES
from tests.support.function_cases import CASES, CASES_TO_ONE_UNIT, names

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
KERNEL = Path(__file__).parents[2] / "crates" / "crown-kernel" / "src"
EVALUATION = [
    *(path for path in (KERNEL / "expression").rglob("*.rs") if path.name != "tests.rs"),
    KERNEL / "stages" / "map.rs",
]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_lists_every_function(family: str) -> None:
    listed = ", ".join(f"`{name}`" for name in FAMILIES[family])
    assert f"| {family} | {listed} |" in PAGE.read_text(encoding="utf-8")


def test_every_function_of_the_page_is_compared_with_spark() -> None:
    documented = {name for family in FAMILIES.values() for name in family}
    compared = set().union(*map(names, (*CASES, *CASES_TO_ONE_UNIT)))
    assert documented - compared == set()


def test_the_kernel_has_every_function_of_an_expression() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in EVALUATION)
    assert {name for name in FUNCTIONS if f'"{name}"' not in source} == set()
    of_the_library = set(re.findall(r'entry\("(\w+)"', source))
    assert of_the_library - set(FUNCTIONS) == set()
