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
FACADES = {"crown", "crown.spark", "crown.console"}
# Third-party packages that an installation may lack.
OPTIONAL = {"duckdb", "pandas", "polars", "psycopg", "py4j", "pyspark"}


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


def test_a_class_has_one_meaning_in_the_whole_package() -> None:
    """Two classes or types of one name in two modules would be two meanings of one word."""
    homes: dict[str, list[str]] = {}
    for module, path in modules().items():
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            match statement:
                case ast.ClassDef(name=name):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                    pass
                case _:
                    continue
            if not name.startswith("_") and path.suffix == ".py":
                homes.setdefault(name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


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


# Modules that a query's text enters by, which hand it to `crown.sql` and nothing else.
DOORS = {
    "crown.view.view",
    "crown.view.database.catalog",
    "crown.view.database.database",
    "crown.spark.checkpoint.meaning",
    "crown.spark.flow.plan_views",
    "crown.spark.pipeline.checking",
}
# What shows the text to people; nothing depends on it.
SHOWS = {("crown.plan.explain.page", "_highlight"), ("crown.view.reading", "__repr__")}
# Where text of Crown's own goes to another database.
OWN_SQL = ("crown.spark.sources", "crown.spark.sinks")
BEYOND_SQL = ("crown.plan", "crown.view", "crown.spark")
READS_TEXT = {"parse", "parse_one", "load_schema", "sqlglot", "tokenize"}


def beyond_sql() -> Iterator[tuple[str, ast.Module]]:
    for name, path in modules().items():
        if name.startswith(BEYOND_SQL):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def test_only_the_sql_layer_parses_text() -> None:
    for name, module in beyond_sql():
        for node in ast.walk(module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                found = [source, *(alias.name for alias in node.names)]
                assert not any(part.split(".")[0] == "sqlglot" for part in found), f"{name}: {found}"
                if source.startswith("crown.sql") and READS_TEXT & set(found):
                    assert name in DOORS, f"{name} imports {found}"


def test_no_other_layer_reads_the_text_of_a_query() -> None:
    """A query's text (`sql`, or an attribute of that name) is handed on and shown, never searched or taken apart."""
    for name, module in beyond_sql():
        if name.startswith(OWN_SQL):
            continue
        for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
            if (name, function.name) not in SHOWS:
                places = [
                    node.lineno for node in ast.walk(function) if isinstance(node, ast.expr) and looks_inside(node)
                ]
                assert not places, f"{name}, {function.name}, line {places}"


def looks_inside(node: ast.AST) -> bool:
    """Whether an expression depends on what is in a query's text.

    >>> inside = ("plan.sql.lower()", "'left(' in plan.sql", "WORD.search(context.sql)", "sql[3:]")
    >>> [looks_inside(ast.parse(text, mode="eval").body) for text in inside]
    [True, True, True, True]
    >>> [looks_inside(ast.parse(text, mode="eval").body) for text in ("Report(sql)", "f(sql=a.sql)", "a.sql == b.sql")]
    [False, False, False]
    """
    match node:
        case ast.Call(func=ast.Attribute(value=value)) if is_text(value):
            return True
        case ast.Call(func=ast.Attribute(attr=method), args=arguments):
            return method in {"search", "match", "fullmatch", "finditer", "findall", "split", "sub"} and any(
                map(is_text, arguments)
            )
        case ast.Compare(left=left, ops=operators, comparators=others):
            compared = not all(isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) for operator in operators)
            return compared and any(map(is_text, (left, *others)))
        case ast.Subscript(value=value):
            return is_text(value)
    return False


def is_text(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "sql") or (isinstance(node, ast.Name) and node.id == "sql")


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
