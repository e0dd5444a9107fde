"""Imports between packages follow the table in docs/architecture.md, and no module imports itself through others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crown"
# The package itself only re-exports, and is imported by everyone as the parent of what they import.
EXEMPT = {"crown"}
# Modules that load what they re-export when it is first used.
FACADES = {"crown", "crown.spark"}
# Third-party packages that an installation may lack.
OPTIONAL = {"pandas", "psycopg", "py4j", "pyspark"}


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the package by its dotted name; a folder by the name of its `__init__`."""
    found = {}
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.glob("*.pyi")]:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """The package's modules that a file imports, at the top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        yield from (name for name in named(node) if name in modules())


@cache
def graph() -> Mapping[str, frozenset[str]]:
    return {name: frozenset(imported(path)) - {name} - EXEMPT for name, path in modules().items() if name not in EXEMPT}


def table() -> dict[str, set[str]]:
    """Which packages each package may import, from the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## Who may import whom", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([a-z_]+)` \|(.*)\|$", section, flags=re.MULTILINE)
    return {package: set(re.findall(r"`([a-z_]+)`", allowed)) for package, allowed in rows}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_imports_follow_the_table() -> None:
    rules = table()
    used: dict[str, set[str]] = {}
    for module, imports in graph().items():
        for other in imports:
            if package_of(other) != package_of(module):
                used.setdefault(package_of(module), set()).add(package_of(other))
    assert {package_of(module) for module in graph()} == set(rules), "every package has its row"
    forbidden = {package: others - rules[package] for package, others in used.items() if others - rules[package]}
    assert forbidden == {}, "imports that the table does not allow"
    needless = {package: others - used.get(package, set()) for package, others in rules.items()}
    assert {package: others for package, others in needless.items() if others} == {}, "rows that allow what nobody uses"


def test_no_package_imports_itself_through_others() -> None:
    assert cycle(table()) is None


def test_no_module_imports_itself_through_others() -> None:
    assert cycle(graph()) is None


def test_only_what_may_be_missing_is_imported_late() -> None:
    """A command of the CLI also loads late what it runs, so that `crown --help` stays quick."""
    late = {
        f"{module}: {name}"
        for module, path in modules().items()
        if module not in FACADES and package_of(module) != "cli"
        for name in late_imports(path)
        if name.split(".")[0] not in OPTIONAL and name not in needs_optional()
    }
    assert late == set(), "imports inside a function or under TYPE_CHECKING"


def late_imports(path: Path) -> Iterator[str]:
    """The modules that a file imports inside functions, or for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if for_types or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                yield from named(inner)


def named(node: ast.AST) -> Iterator[str]:
    """The modules that one import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if whole in modules() else node.module


@cache
def needs_optional() -> frozenset[str]:
    """The package's modules that can't be imported without some optional package."""
    early = {
        module: {name for statement in ast.parse(path.read_text(encoding="utf-8")).body for name in named(statement)}
        for module, path in modules().items()
    }
    found = {module for module, names in early.items() if {name.split(".")[0] for name in names} & OPTIONAL}
    while more := {module for module, names in early.items() if module not in found and names & found}:
        found |= more
    return frozenset(found)


def cycle(graph: Mapping[str, set[str]] | Mapping[str, frozenset[str]]) -> list[str] | None:
    """A path from a node back to itself, if there is one.

    >>> cycle({"a": {"b"}, "b": {"a"}})
    ['a', 'b', 'a']
    """
    done: set[str] = set()

    def walk(path: list[str]) -> list[str] | None:
        for other in sorted(graph.get(path[-1], ())):
            if other in path:
                return [*path[path.index(other) :], other]
            if other not in done and (found := walk([*path, other])):
                return found
        done.add(path[-1])
        return None

    return next((found for node in sorted(graph) if node not in done and (found := walk([node]))), None)
