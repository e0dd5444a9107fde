"""Every error code is registered once, raised somewhere, raised by a test, and explained in docs/errors.md."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crown.codes import CODES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"
CODE = re.compile(r"CROWN-[A-Z0-9]+(?:-[A-Z0-9]+)*(?![A-Z0-9-])")
SHORT = re.compile(r"(?!CROWN-)[A-Z]+(?:-[A-Z]+)*")
# Functions that take a code without its prefix.
PREFIXES = {"fail": "CROWN-SQL-", "_error": "CROWN-SCHEMA-", "fault": "CROWN-PIPELINE-"}
SECTIONS = {
    "SQL": "Queries",
    "SCHEMA": "Schemas",
    "PLAN": "Plans",
    "CHANGE": "Changes",
    "STATE": "Saved views and checkpoints",
    "SPARK": "Spark",
    "SOURCE": "Stream sources",
    "SINK": "Stream targets",
    "JVM": "Engines in Spark's executors",
    "HOST": "The engine host",
    "PIPELINE": "Pipeline files",
    "": "Evaluation, and everything else",
}
UNTESTED = {
    "CROWN-JVM-JAR": "every classic session of Spark accepts a jar",
    "CROWN-JVM-LIBRARY": "needs an executor whose temporary directory is not writable",
    "CROWN-JVM-PLATFORM": "needs an executor on another platform",
    "CROWN-SPARK-TABLE": "the schema is that of the DataFrames, so SQL that reads another table is refused first",
    "CROWN-STATE-BROKEN": "a batch that was applied can always be undone, unless the kernel has a bug",
}


def python_codes() -> Iterator[str]:
    """Codes in the Python sources, other than in the table."""
    for path in (ROOT / "src" / "crown").rglob("*.py"):
        if path.name == "codes.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield from _short_codes(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from CODE.findall(node.value)


def _short_codes(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
        yield from (PREFIXES[name] + word for word in _words(given) if name in PREFIXES)
    elif isinstance(node, ast.FunctionDef) and node.name in PREFIXES:
        yield from (PREFIXES[node.name] + word for word in _words([d for d in node.args.kw_defaults if d is not None]))
    elif isinstance(node, ast.Tuple) and len(node.elts) == 4:
        # Constructs that are refused: code, name, reason, advice.
        yield from (PREFIXES["fail"] + word for word in _words(node.elts[:1]))


def _words(values: list[ast.expr]) -> Iterator[str]:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and SHORT.fullmatch(value.value):
            yield value.value


def java_codes() -> Iterator[str]:
    for path in (ROOT / "jvm").rglob("*.java"):
        yield from CODE.findall(path.read_text(encoding="utf-8"))


def rust_codes(*, tests: bool) -> Iterator[str]:
    """Codes in the Rust sources, either in tests or outside of them, where hints (`"CODE" => ...`) do not count."""
    for path in (ROOT / "crates").rglob("*.rs"):
        text = path.read_text(encoding="utf-8")
        code, _, inline = text.partition("#[cfg(test)]\nmod tests {")
        is_test = path.name == "tests.rs" or "tests" in path.parts
        if tests:
            yield from CODE.findall(text if is_test else inline)
        elif not is_test:
            yield from CODE.findall(re.sub(rf'"{CODE.pattern}"(?= =>| \|)', "", code))


def raised() -> set[str]:
    """Codes that some source raises."""
    return {*python_codes(), *rust_codes(tests=False), *java_codes()}


def codes_in_tests() -> set[str]:
    """Codes that tests expect."""
    found = set(rust_codes(tests=True))
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix in (".py", ".txt") and path != Path(__file__):
            found.update(CODE.findall(path.read_text(encoding="utf-8")))
    return found


def page() -> str:
    """The text of docs/errors.md."""
    lines = [
        "# Error codes",
        "",
        "Every error is a `CrownError` with a stable code. Its message says what is wrong, where, why and what to do.",
        "This page is generated from `src/crown/codes.py`.",
    ]
    for family, title in SECTIONS.items():
        lines += ["", f"## {title}", "", "| code | meaning | what to do |", "|---|---|---|"]
        lines += [
            f"| `{code}` | {entry.meaning} | {entry.remedy} |"
            for code, entry in CODES.items()
            if section(code) == family
        ]
    return "\n".join(lines) + "\n"


def section(code: str) -> str:
    """The section of the page that lists a code.

    >>> section("CROWN-SINK-KEY"), section("CROWN-CAST")
    ('SINK', '')
    """
    family = code.split("-")[1]
    return family if family in SECTIONS else ""


def test_every_code_that_is_raised_is_registered() -> None:
    assert sorted(raised() - CODES.keys()) == []


def test_every_registered_code_is_raised() -> None:
    assert sorted(CODES.keys() - raised()) == []


def test_every_code_is_registered_once() -> None:
    text = (ROOT / "src" / "crown" / "codes.py").read_text(encoding="utf-8")
    keys = re.findall(rf'^    "({CODE.pattern})":', text, flags=re.MULTILINE)
    assert sorted(keys) == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
def test_meaning_and_remedy_are_sentences(code: str) -> None:
    assert CODE.fullmatch(code)
    for text in CODES[code]:
        assert text[-1] in ".)" and "|" not in text


def test_every_code_is_raised_by_a_test() -> None:
    found = codes_in_tests()
    assert sorted(CODES.keys() - found - UNTESTED.keys()) == []
    assert sorted(found & UNTESTED.keys()) == [], "these are tested: remove them from UNTESTED"


def test_tests_expect_codes_that_exist() -> None:
    assert [code for code in codes_in_tests() if not any(known.startswith(code) for known in CODES)] == []


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("CROWN_UPDATE_FIXTURES"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
