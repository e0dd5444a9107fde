"""The package as a user meets it: `import crown`, and what tab completion shows."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import pytest

import crown
from crown import errors, testing, workload
from crown.functions import Function
from crown.view import DatabaseView
from crown.view.delta_reader import DeltaReader
from crown.view.interface import DatabaseStats, Row, ViewStats


def run(program: str) -> str:
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_spark_is_an_attribute_that_loads_no_pyspark() -> None:
    program = "import sys, crown; print(crown.spark.__name__, 'maintain' in dir(crown.spark), 'pyspark' in sys.modules)"
    assert run(program).split() == ["crown.spark", "True", "False"]


def test_importing_crown_loads_neither_kernel_nor_arrow() -> None:
    program = "import sys, crown; dir(crown); print({*sys.modules} & {'pyarrow', 'crown._kernel', 'pyspark'})"
    assert run(program).strip() == "set()"


def test_dir_shows_every_public_name_and_each_is_there() -> None:
    assert {"View", "spark", "CrownError", "__version__"} <= set(dir(crown))
    assert set(crown.__all__) <= set(dir(crown))
    assert not {"Any", "TYPE_CHECKING", "annotations", "import_module"} & set(dir(crown))
    for name in crown.__all__:
        assert getattr(crown, name) is not None
    for name in crown.spark.__all__:
        assert name in dir(crown.spark)
        assert getattr(crown.spark, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(crown, "sparkk")
    assert not hasattr(crown.spark, "maintian")


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for owner in (crown.View, crown.Database, DatabaseView, DeltaReader, testing.Judge, testing.Change):
        for name, member in inspect.getmembers(
            owner, lambda found: inspect.isfunction(found) or inspect.ismethod(found)
        ):
            if not name.startswith("_") or name in ("__init__", "__iter__", "__len__", "__contains__"):
                yield f"{owner.__name__}.{name}", member
    yield "check", testing.check


def declared() -> Iterator[tuple[str, object]]:
    """Every name that `__all__` lists, and the methods of the classes among them."""
    for module in (crown, crown.spark, testing, workload):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                for part, member in inspect.getmembers(found):
                    method = member.fget if isinstance(member, property) else member
                    is_public = not part.startswith("_") or part in ("__init__", "__call__", "__getitem__", "__iter__")
                    if is_public and (inspect.isfunction(method) or inspect.ismethod(method)):
                        yield f"{name}.{part}", method
            elif not inspect.ismodule(found) and not isinstance(found, str):
                yield name, found
    yield from ((f"Function.{name}", getattr(Function, name)) for name in ("__init__", "__call__", "evaluate"))


def mentions_any(hint: object) -> bool:
    """Rows of a result are the only exception: their types depend on the query."""
    parts = hint if isinstance(hint, list) else get_args(hint)
    return hint is Any or (hint != Row and any(map(mentions_any, parts)))


def hints_of(found: object) -> dict[str, object]:
    if not callable(found) or get_args(found):
        return {"": found}
    try:
        return get_type_hints(found)
    except NameError:  # of a package that is only imported for type checkers
        return {}


def test_no_type_of_the_public_interface_is_any() -> None:
    loose = [
        f"{name}({part}: {hint})"
        for name, found in declared()
        for part, hint in hints_of(found).items()
        if mentions_any(hint) and name != "DeltaReader.read_pandas"
    ]
    assert loose == []


# pandas reads options in its own way.
DYNAMIC = {"DeltaReader.read_pandas"}


@pytest.mark.parametrize("name, function", [pytest.param(*found, id=found[0]) for found in public_functions()])
def test_the_public_interface_is_typed(name: str, function: Callable[..., object]) -> None:
    """No parameter takes Any, and only rows of a result return it."""
    if name in DYNAMIC:
        return
    written = inspect.get_annotations(function)
    for parameter, text in written.items():
        assert "Any" not in str(text).replace("[", " ").replace("]", " ").split(), f"{name}({parameter}: {text})"
    parameters = {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}
    assert parameters <= written.keys(), name
    assert "return" in written, name


def test_only_rows_are_any() -> None:
    assert Any in get_args(Row)
    hints = get_type_hints(crown.View.__iter__)
    assert get_args(hints["return"]) == (Row,)


def test_help_says_what_each_thing_is() -> None:
    """Each public name has a docstring, and `help(crown)` shows the package's own."""
    assert "keeps the answer" in pydoc.render_doc(crown) or "keeps the result" in pydoc.render_doc(crown)
    for name, function in public_functions():
        documented = inspect.getdoc(function)
        assert documented or name.endswith("__"), name
    for name in crown.__all__:
        assert inspect.getdoc(getattr(crown, name)), name
    for error in (found for found in vars(errors).values() if inspect.isclass(found)):
        assert inspect.getdoc(error)


def test_stats_are_what_their_type_says() -> None:
    schema = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)"
    for threads in (1, 2):
        view = crown.View("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b", schema, threads=threads)
        view.insert("r", [(1, 2)])
        found = view.stats()
        names = {"bytes", "batches", "changes", "updates", "counter_changes", "counter_changes_per_update"}
        assert found.keys() - {"interner", "engines"} == names | {"rejects", "result_rows", "stages", "tables"}
        assert set(found["tables"][0]) == {"name", "bytes", "late", "stored_rows"}
        tree = next(stage for stage in found["stages"] if stage["kind"] == "tree")
        assert set(tree["nodes"][0]) == {
            *("name", "rows", "keys", "bytes", "semi_join_rows", "updates", "moves", "counter_changes")
        }
        assert {"id", "kind", "rows", "bytes"} <= set(tree)


def test_stats_of_a_database_are_what_their_type_says() -> None:
    for threads in (1, 2):
        database = crown.Database(
            "CREATE TABLE r (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM r", threads=threads
        )
        found = database.stats()
        assert set(found) == set(DatabaseStats.__annotations__)
        assert set(found["views"]["v"]) == set(ViewStats.__annotations__)
        assert all(
            stage["shared_by"] == ["v"] for stage in found["stages"] if stage["id"] in found["views"]["v"]["stages"]
        )
