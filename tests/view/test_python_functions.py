"""Python functions that a query calls: values, NULLs, failures, saved views, threads, and how often they are called."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import crown
from tests.support.judge import Change, Judge, follow

SCHEMA = """CREATE TABLE r (k INT, x DOUBLE, name STRING);
            CREATE TABLE s (k INT, y INT, at DATE)"""


@crown.function(returns="DOUBLE", arguments=["DOUBLE", "INT"], vectorised=True)
def score(x: pa.Array, y: pa.Array) -> pa.Array:
    return pc.multiply(x, pc.cast(y, pa.float64()))


def tag(number: int | None, text: str | None) -> str:
    return f"{number}/{text}"


@crown.function(nulls="skip")
def half(number: int) -> int | None:
    return number // 2 if number % 2 == 0 else None


@crown.function(arguments=["DATE"], returns=pa.date32())
def next_day(day: Any) -> Any:
    return day + datetime.timedelta(days=1)


FUNCTIONS: dict[str, Callable[..., Any]] = {"score": score, "tag": tag, "half": half, "tomorrow": next_day}
QUERIES = [
    "SELECT k, score(x, k) AS s, tag(k, name) AS t FROM r",
    "SELECT r.k, score(r.x, s.y) AS s, half(s.y + r.k) AS h FROM r JOIN s ON r.k = s.k",
    "SELECT r.name, s.y FROM r JOIN s ON half(r.k) = s.k",
    "SELECT r.k, tag(s.y, r.name) AS t, tomorrow(s.at) AS d FROM r LEFT JOIN s ON r.k = s.k AND half(s.y) > 0",
    "SELECT r.k, s.y FROM r, s WHERE score(r.x, s.y) > 3 AND r.k <> s.k",
    "SELECT half(k) AS h, COUNT(*) AS n, SUM(score(x, k)) AS total FROM r GROUP BY half(k)",
    "SELECT k, score(SUM(x), CAST(COUNT(*) AS INT)) AS s FROM r GROUP BY k HAVING tag(COUNT(*), 'a') <> '1/a'",
    "SELECT name, half(SUM(k)) AS h, tag(half(SUM(k)), name) AS t FROM r GROUP BY name",
    "SELECT DISTINCT tag(half(k), name) AS t FROM r",
    "SELECT k, name FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.y = half(r.k)) ORDER BY tag(k, name), k, x LIMIT 3",
    "SELECT CASE WHEN k > 1 THEN half(k) ELSE half(4) END AS c, score(2, 3) AS d FROM r",
    "SELECT k, SUM(half(k)) OVER (PARTITION BY name) AS w FROM r",
    "SELECT tag(k, name) AS t FROM r EXCEPT SELECT tag(y, 'a') FROM s",
]


def changes(seed: int) -> list[list[Change]]:
    source = random.Random(seed)
    alive: list[tuple[str, tuple[Any, ...]]] = []
    batches = []
    for _ in range(8):
        batch = []
        for _ in range(source.randint(1, 8)):
            if alive and source.random() < 0.4:
                table, row = alive.pop(source.randrange(len(alive)))
                batch.append(Change(table, row, -1))
                continue
            table = source.choice(["r", "s"])
            key = source.choice([None, 0, 1, 2, 3, 4])
            if table == "r":
                row = (key, source.choice([None, 0.5, 2.0, -1.0]), source.choice([None, "a", "b"]))
            else:
                row = (key, source.choice([None, 0, 1, 2, 4]), source.choice([None, datetime.date(2024, 2, 28)]))
            alive.append((table, row))
            batch.append(Change(table, row, 1))
        batches.append(batch)
    return batches


@pytest.mark.parametrize("sql", QUERIES)
def test_functions_return_what_duckdb_computes_with_them(sql: str, tmp_path: Path) -> None:
    for seed in range(3):
        views = {
            f"{threads} threads": crown.View(sql, SCHEMA, functions=FUNCTIONS, threads=threads) for threads in (1, 2)
        }
        judge = Judge(sql, SCHEMA, functions=FUNCTIONS)
        batches = changes(seed)
        follow(judge, views, batches[:5])
        for name, view in list(views.items()):
            view.save(tmp_path / "view")
            views[name] = crown.View.load(tmp_path / "view", functions=FUNCTIONS)
        follow(judge, views, batches[5:])


def test_a_function_is_called_once_for_equal_arguments_of_a_batch_and_with_all_rows_together() -> None:
    sizes = []

    @crown.function(returns="BIGINT", arguments=["BIGINT"], vectorised=True)
    def counted(x: pa.Array) -> pa.Array:
        sizes.append(len(x))
        return x

    view = crown.View("SELECT counted(k) AS c FROM r", "CREATE TABLE r (k BIGINT)", functions={"counted": counted})
    view.insert("r", [(number % 100,) for number in range(1000)])
    assert sizes == [100]
    view.insert("r", [(5,), (200,)])
    assert sizes == [100, 1]
    assert len(view.to_arrow()) == 1002
    assert sizes == [100, 1]


def test_an_exception_rejects_the_batch_and_names_the_function_and_its_arguments() -> None:
    def fragile(number: int, text: str) -> int:
        if number == 3:
            raise ValueError("three is too much")
        return number

    view = crown.View("SELECT fragile(k, name) AS f FROM r", SCHEMA, functions={"fragile": fragile})
    view.insert("r", [(1, 0.0, "a")])
    with pytest.raises(crown.InvalidChange, match=r"fragile\(3, \"b\"\): ValueError: three is too much") as raised:
        view.insert("r", [(2, 0.0, "a"), (3, 0.0, "b")])
    assert raised.value.code == "CROWN-FUNCTION-FAILED"
    assert isinstance(raised.value.__cause__, ValueError)
    assert list(view) == [(1,)]


def test_an_exception_after_a_join_rejects_the_batch() -> None:
    def fragile(x: float, y: int) -> float:
        return x / y

    for threads in (1, 2):
        sql = "SELECT r.k, fragile(r.x, s.y) AS f FROM r JOIN s ON r.k = s.k"
        view = crown.View(sql, SCHEMA, functions={"fragile": fragile}, threads=threads)
        view.insert("r", [(1, 3.0, "a")])
        view.insert("s", [(1, 2, None)])
        with pytest.raises(crown.CrownError, match=r"fragile\(3.0, 0\): ZeroDivisionError"):
            view.apply({"s": [(1, 5, None), (1, 0, None)]})
        assert list(view) == [(1, 1.5)]
        view.insert("s", [(1, 3, None)])
        assert sorted(view) == [(1, 1.0), (1, 1.5)]


def test_rows_that_a_condition_excludes_are_no_reason_for_an_error() -> None:
    def inverse(x: int) -> float:
        return 1 / x

    sql = "SELECT CASE WHEN k <> 0 THEN inverse(k) END AS i FROM r"
    view = crown.View(sql, SCHEMA, functions={"inverse": inverse})
    view.insert("r", [(0, None, None), (2, None, None)])
    assert sorted(view, key=str) == [(0.5,), (None,)]


def test_a_failing_row_can_be_quarantined() -> None:
    def fragile(number: int) -> int:
        return 1 // number

    view = crown.View("SELECT fragile(k) AS f FROM r", SCHEMA, functions={"fragile": fragile}, on_invalid="quarantine")
    view.insert("r", [(0, None, None), (1, None, None)])
    assert list(view) == [(1,)]
    assert "ZeroDivisionError" in view.rejected().to_pylist()[0]["reason"]


@pytest.mark.parametrize(
    ("returns", "value"),
    [("BIGINT", "a"), ("BIGINT", 1.5), ("TINYINT", 300), ("STRING", 1), ("DECIMAL(5,2)", decimal.Decimal("1.234"))],
)
def test_a_result_of_another_type_is_refused(returns: str, value: object) -> None:
    wrong = crown.function(lambda k: value, returns=returns, arguments=["INT"])
    view = crown.View("SELECT wrong(k) AS w FROM r", SCHEMA, functions={"wrong": wrong})
    with pytest.raises(crown.InvalidChange, match="is not a"):
        view.insert("r", [(1, None, None)])
    assert len(view) == 0


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (pa.array(["a"]), "array of string instead of int64"),
        (pa.array([1, 2]), "2 values for 1 row"),
        ([1], "list instead of a pyarrow.Array"),
        (pa.array([1.5]), "array of double instead of int64"),
    ],
)
def test_an_array_of_another_type_or_length_is_refused(returned: Any, why: str) -> None:
    wrong = crown.function(lambda k: returned, returns="BIGINT", arguments=["INT"], vectorised=True)
    view = crown.View("SELECT wrong(k) AS w FROM r", SCHEMA, functions={"wrong": wrong})
    with pytest.raises(crown.InvalidChange, match=why):
        view.insert("r", [(1, None, None)])


def test_every_type_arrives_as_python_has_it_and_comes_back() -> None:
    row = (
        True,
        -5,
        2**40,
        1.5,
        decimal.Decimal("12.50"),
        "é",
        b"\x00\xff",
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, 12, 30),
    )
    kinds = ["BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "STRING", "BINARY", "DATE", "TIMESTAMP"]
    kinds.append("TIMESTAMP_NTZ")
    seen = []

    def echo(value: Any) -> Any:
        seen.append(value)
        return value

    names = [f"c{position}" for position in range(len(row))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    functions = {f"echo{n}": crown.function(echo, returns=k, arguments=[k]) for n, k in zip(names, kinds, strict=True)}
    calls = ", ".join(f"echo{name}({name}) AS {name}" for name in names)
    view = crown.View(f"SELECT {calls} FROM t", f"CREATE TABLE t ({columns})", functions=functions)
    view.insert("t", [row])
    assert view.to_arrow().to_pylist() == [dict(zip(names, row, strict=True))]
    assert seen[: len(row)] == list(row)


def test_a_saved_view_needs_its_functions_and_has_no_code(tmp_path: Path) -> None:
    view = crown.View("SELECT half(k) AS h FROM r", SCHEMA, functions=FUNCTIONS)
    view.insert("r", [(4, None, None)])
    view.save(tmp_path / "view")
    assert b"number // 2" not in (tmp_path / "view").read_bytes()
    with pytest.raises(crown.StateError, match=r"calls the Python function half\(BIGINT\)") as raised:
        crown.View.load(tmp_path / "view")
    assert raised.value.code == "CROWN-FUNCTION-MISSING"
    other = crown.function(lambda x: x, returns="STRING", arguments=["BIGINT"])
    with pytest.raises(crown.StateError, match="declared differently"):
        crown.View.load(tmp_path / "view", functions={"half": other})
    assert list(crown.View.load(tmp_path / "view", functions=FUNCTIONS)) == [(2,)]
    with pytest.raises(crown.PlanError, match="which is not given"):
        crown.View.from_plan(view.plan)


def test_a_function_cannot_use_a_view() -> None:
    def size(k: int) -> int:
        return len(view)

    view = crown.View("SELECT size_of(k) AS n FROM r", SCHEMA, functions={"size_of": size})
    with pytest.raises(crown.CrownError, match="CROWN-FUNCTION-REENTRANT"):
        view.insert("r", [(1, None, None)])


def test_an_interrupt_in_a_function_stays_an_interrupt() -> None:
    def interrupted(k: int) -> int:
        raise KeyboardInterrupt

    view = crown.View("SELECT interrupted(k) AS n FROM r", SCHEMA, functions={"interrupted": interrupted})
    with pytest.raises(KeyboardInterrupt):
        view.insert("r", [(1, None, None)])
    assert len(view) == 0


def untyped(x):  # type: ignore[no-untyped-def]
    return x


def open_ended(*numbers: int) -> int:
    return sum(numbers)


@pytest.mark.parametrize(
    ("name", "function", "why"),
    [
        ("f", untyped, "x has no type"),
        ("f", open_ended, "any number of arguments"),
        ("f", 3, "is not a function"),
        ("abs", half, "can't be named abs"),
        ("sum", half, "can't be named sum"),
        ("a b", half, "can't be named"),
    ],
)
def test_functions_that_a_query_cannot_call_are_refused(name: str, function: Any, why: str) -> None:
    with pytest.raises(crown.CrownError, match=why) as raised:
        crown.View("SELECT k FROM r", SCHEMA, functions={name: function})
    assert raised.value.code == "CROWN-FUNCTION-DECLARED"


def test_a_call_with_other_arguments_is_an_error_in_the_query() -> None:
    with pytest.raises(crown.SqlError, match="half takes 1 argument, not 2"):
        crown.View("SELECT half(k, k) AS h FROM r", SCHEMA, functions=FUNCTIONS)
    with pytest.raises(crown.SqlError, match="can't be converted to DATE"):
        crown.View("SELECT tomorrow(x) AS h FROM r", SCHEMA, functions=FUNCTIONS)


def test_explain_names_the_functions() -> None:
    view = crown.View("SELECT half(k) AS h FROM r", SCHEMA, functions=FUNCTIONS)
    assert "half: called once for equal arguments" in str(view.explain())


def test_the_order_of_reading_may_call_a_function(tmp_path: Path) -> None:
    def negated(x: int) -> int:
        return -x

    view = crown.View(
        "SELECT x FROM t ORDER BY negated(x)", "CREATE TABLE t (x BIGINT)", functions={"negated": negated}
    )
    view.insert("t", [(1,), (3,), (2,)])
    assert list(view) == [(3,), (2,), (1,)]
    view.save(tmp_path / "view")
    assert list(crown.View.load(tmp_path / "view", functions={"negated": negated})) == [(3,), (2,), (1,)]


@pytest.mark.parametrize("query", ["SELECT f(k) AS v FROM r", "SELECT f(k) AS v, COUNT(*) AS n FROM r GROUP BY f(k)"])
@pytest.mark.parametrize("policy", ["raise", "quarantine"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_in_a_function_ends_the_batch(query: str, policy: Any, threads: int, at: int) -> None:
    """It is raised once, whichever call it meets, and no row is set aside for it."""
    calls = 0

    @crown.function(arguments=["INT"], returns="INT")
    def f(k: int) -> int:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return k

    view = crown.View(query, schema=SCHEMA, functions={"f": f}, on_invalid=policy, threads=threads)
    rows = [(1, 0.5, "a"), (2, 0.5, "b"), (3, 0.5, "c")]
    with pytest.raises(KeyboardInterrupt):
        view.insert("r", rows)
    assert list(view) == [] and view.rejected().num_rows == 0
    view.insert("r", rows)
    assert sorted(row[0] for row in view) == [1, 2, 3]
