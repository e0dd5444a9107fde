"""Views whose value over empty tables fails: they exist, take changes, and tell the error to whoever reads them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError, InvalidChange
from crown.view.reading import Reading

SCHEMA = "CREATE TABLE a (x INT); CREATE TABLE b (y INT)"
QUOTIENT = "COUNT(x) / COUNT(*)"
# With a row in `b` and one in `a` each of them has a value.
UNDEFINED = {
    "output": f"SELECT {QUOTIENT} AS r FROM a",
    "two outputs": "SELECT COUNT(x) % COUNT(*) AS m, COUNT(*) AS n FROM a",
    "folded": "SELECT COUNT(x) / COUNT(DISTINCT x) AS r, MAX(x) AS m FROM a",
    "having": "SELECT COUNT(*) AS n FROM a HAVING 1 / COUNT(*) > 0",
    "derived table": f"SELECT r + 1 AS s FROM (SELECT {QUOTIENT} AS r FROM a) AS q",
    "counted": f"SELECT COUNT(*) AS n FROM (SELECT {QUOTIENT} AS r FROM a) AS q",
    "aggregated": f"SELECT MAX(r) AS m, SUM(r) AS s FROM (SELECT {QUOTIENT} AS r FROM a) AS q",
    "scalar subquery": f"SELECT y FROM b WHERE y > (SELECT {QUOTIENT} - 1 FROM a)",
    "beside a scalar subquery": "SELECT y FROM b WHERE y >= 1 / (SELECT COUNT(*) FROM a)",
    "joined": f"SELECT b.y, q.r FROM b JOIN (SELECT CAST({QUOTIENT} AS INT) AS r FROM a) AS q ON b.y = q.r",
    "outer joined": f"SELECT b.y, q.r FROM b LEFT JOIN (SELECT CAST({QUOTIENT} AS INT) AS r FROM a) AS q ON b.y = q.r",
    "not exists": f"""SELECT y FROM b
        WHERE NOT EXISTS (SELECT 1 FROM (SELECT {QUOTIENT} AS r FROM a) AS q WHERE q.r > b.y)""",
    "united": f"SELECT y / 1 AS r FROM b UNION SELECT {QUOTIENT} FROM a",
    "subtracted": f"SELECT y / 1 AS r FROM b EXCEPT ALL SELECT 2 * {QUOTIENT} FROM a",
    "top": "SELECT n FROM (SELECT COUNT(*) AS n FROM a) AS q ORDER BY 1 / n LIMIT 1",
    "distinct": f"SELECT DISTINCT {QUOTIENT} AS r FROM a",
    "two that fail": f"""SELECT p.r, q.s
        FROM (SELECT {QUOTIENT} AS r FROM a) AS p CROSS JOIN (SELECT 1 / COUNT(*) AS s FROM a) AS q""",
    # The outputs of several cells are merged:
    "added": "SELECT (SELECT 1 / COUNT(*) FROM a) + y AS v FROM b",
    "summed": "SELECT SUM((SELECT 1 / COUNT(*) FROM a) + y) AS v FROM b",
    "without duplicates": "SELECT DISTINCT (SELECT 1 / COUNT(*) FROM a) + y AS v FROM b",
    "chosen": "SELECT CASE WHEN y > 0 THEN y + (SELECT 1 / COUNT(*) FROM a) END AS v FROM b",
    "ordered": "SELECT y FROM b ORDER BY y + (SELECT 1 / COUNT(*) FROM a) LIMIT 2",
    "numbered": "SELECT y, ROW_NUMBER() OVER (ORDER BY y + (SELECT 1 / COUNT(*) FROM a)) AS n FROM b",
    "marked": "SELECT y IN (SELECT 1 / COUNT(*) FROM a) AS v FROM b",
    "compared": """SELECT p.m
        FROM (SELECT COUNT(*) AS m FROM a) AS p JOIN (SELECT COUNT(*) AS n FROM b) AS q ON 1 / p.m <= q.n""",
}


# With these, one cell has a value and another none: a row of `b` fails against the count of `a`
# alone. The rows show where they are, so that the outputs of cells are disjoint.
PARTLY = {
    "cross join": """SELECT b.y, p.m FROM b CROSS JOIN (SELECT COUNT(*) AS m FROM a) AS p
        WHERE 6 / p.m > 0 AND 6 / (b.y - p.m) < 100""",
    "self-join": """SELECT b.y, p.m FROM b JOIN b AS c ON b.y = c.y JOIN (SELECT COUNT(*) AS m FROM a) AS p
        ON CAST(c.y AS DOUBLE) >= 6 / p.m - 6 AND 6 / p.m = 6 AND 6 / (b.y - p.m) < 100""",
    "grouped": """SELECT b.y, COUNT(*) AS m FROM b JOIN b AS c ON b.y = c.y JOIN (SELECT COUNT(*) AS m FROM a) AS p
        ON 6 / p.m = 6 AND 6 / (b.y - p.m) < 100 GROUP BY b.y""",
}

# The same with outputs that are merged.
MERGED = {
    "partly summed": """SELECT SUM(b.y) AS s, COUNT(*) AS n FROM b CROSS JOIN (SELECT COUNT(*) AS m FROM a) AS p
        WHERE 6 / p.m > 0 AND 6 / (b.y - p.m) < 100""",
    "partly distinct": """SELECT DISTINCT p.m FROM b CROSS JOIN (SELECT COUNT(*) AS m FROM a) AS p
        WHERE 6 / p.m > 0 AND 6 / (b.y - p.m) < 100""",
    "partly ordered": """SELECT b.y, p.m FROM b CROSS JOIN (SELECT COUNT(*) AS m FROM a) AS p
        WHERE 6 / p.m > 0 AND 6 / (b.y - p.m) < 100 ORDER BY b.y, p.m LIMIT 2""",
}
EVERY = {**UNDEFINED, **PARTLY, **MERGED}


def reads(view: Reading) -> list[Callable[[], Any]]:
    row = tuple(None for _ in view.schema)
    return [
        lambda: list(view),
        lambda: len(view),
        lambda: view.to_arrow(),
        lambda: view.to_arrow(multiplicity=True),
        lambda: view.sample(2, seed=1),
        lambda: view.multiplicity(row),
        lambda: next(iter(view)),
        lambda: view.page(0, 1),
        lambda: view[0],
        lambda: view.lookup(**{view.schema.names[0]: None}),
    ]


def check_undefined(view: Reading) -> None:
    for read in reads(view):
        with pytest.raises(InvalidChange) as raised:
            read()
        assert raised.value.code == "CROWN-DIVIDE-BY-ZERO"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", UNDEFINED)
def test_it_exists_and_its_first_delta_shows_everything(case: str, threads: int, tmp_path: Path) -> None:
    view = crown.View(UNDEFINED[case], schema=SCHEMA, threads=threads)
    check_undefined(view)
    assert not view.insert("b", [(1,), (7,)]).num_rows
    assert not view.apply({}).num_rows
    check_undefined(view)
    view.save(tmp_path / "view")
    loaded = crown.View.load(tmp_path / "view")
    check_undefined(loaded)
    for one in (view, loaded):
        delta = one.insert("a", [(1,)])
        shown = [tuple(row[name] for name in view.schema.names) for row in delta.to_pylist()]
        assert sorted(shown, key=repr) == sorted(one, key=repr) and len(one) == len(shown) > 0
        assert set(delta["_change_type"].to_pylist()) == {"insert"}
        one.insert("a", [(2,), (1,)])
        one.delete("b", [(7,)])
        one.save(tmp_path / "again")
        assert sorted(crown.View.load(tmp_path / "again"), key=repr) == sorted(one, key=repr)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("case", PARTLY)
def test_nothing_is_shown_while_a_single_cell_has_no_value(
    case: str, threads: int, single: bool, tmp_path: Path
) -> None:
    view = crown.View(PARTLY[case], schema=SCHEMA, threads=threads)

    def shown(changes: Any) -> list[tuple[Any, ...]]:
        delta = view.apply(changes, per_update=single)
        assert set(delta["_change_type"].to_pylist()) <= {"insert"}
        return sorted(zip(*(delta[name].to_pylist() for name in view.schema.names), strict=True))

    assert shown({"b": [(1,), (2,), (3,), (4,)]}) == []
    assert shown({"a": [(1,)]}) == []  # 6 / (1 - 1)
    check_undefined(view)
    view.save(tmp_path / "view")
    view = crown.View.load(tmp_path / "view")
    check_undefined(view)
    assert shown({"b": [(5,)]}) == []
    assert shown([("b", [{"y": 1, "_change_type": "delete"}])]) == [(2, 1), (3, 1), (4, 1), (5, 1)]
    assert sorted(view) == [(2, 1), (3, 1), (4, 1), (5, 1)]
    assert shown({"b": [(6,)]}) == [(6, 1)]
    with pytest.raises(InvalidChange, match="division by zero"):
        view.insert("b", [(1,)])
    assert len(view) == 5


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("case", ["cross join", *MERGED])
def test_another_cell_may_lose_its_value_meanwhile(case: str, threads: int, single: bool) -> None:
    """The count of `a` passes 1, 2 and 3: a row of `b` fails each time, in one cell after the other."""
    view = crown.View(EVERY[case], schema=SCHEMA, threads=threads)
    view.apply({"b": [(1,), (2,), (3,)]})
    for value in (7, 8, 9):
        assert view.apply({"a": [(value,)]}, per_update=single).num_rows == 0
        check_undefined(view)
    delta = view.apply([("b", [{"y": 3, "_change_type": "delete"}])], per_update=single)
    whole = crown.View(EVERY[case], schema=SCHEMA)
    whole.apply({"b": [(1,), (2,)], "a": [(7,), (8,), (9,)]})
    assert sorted(view) == sorted(whole) and len(view) == len(whole)
    assert delta.num_rows == len(whole) and set(delta["_change_type"].to_pylist()) == {"insert"}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("case", ["cross join", *MERGED])
def test_single_updates_that_give_a_value_and_take_it_are_refused_together(case: str, threads: int) -> None:
    """The first update gives the view its value, so the second may not take it: both are undone."""
    view = crown.View(EVERY[case], schema=SCHEMA, threads=threads)
    view.apply({"b": [(2,), (1,)], "a": [(7,), (8,)]})  # 6 / (2 - 2)
    check_undefined(view)
    for _ in range(2):
        with pytest.raises(InvalidChange) as raised:
            view.apply([("b", [{"y": 2, "_change_type": "delete"}]), *_delete(8)], per_update=True)
        assert raised.value.code == "CROWN-DIVIDE-BY-ZERO"
        check_undefined(view)
    view.delete("b", [(2,)])
    whole = crown.View(EVERY[case], schema=SCHEMA)
    whole.apply({"b": [(1,)], "a": [(7,), (8,)]})
    assert sorted(view) == sorted(whole)


def test_a_database_shows_nothing_while_a_single_cell_has_no_value() -> None:
    database = crown.Database(SCHEMA, threads=3)
    for name, sql in (("partly", PARTLY["cross join"]), ("rows", "SELECT y FROM b")):
        database.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    database.apply({"b": [(1,), (2,), (3,)]})
    deltas = database.apply({"a": [(1,)]})
    assert (deltas["partly"].num_rows, sorted(database["rows"])) == (0, [(1,), (2,), (3,)])
    check_undefined(database["partly"])
    deltas = database.apply([("b", [{"y": 1, "_change_type": "delete"}])])
    assert (deltas["partly"].num_rows, deltas["rows"].num_rows) == (2, 1)
    assert sorted(database["partly"]) == [(2, 1), (3, 1)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", ["output", "derived table", "scalar subquery", "having", "compared", "added"])
def test_a_batch_that_leads_there_is_refused(case: str, threads: int) -> None:
    view = crown.View(UNDEFINED[case], schema=SCHEMA, threads=threads)
    view.insert("b", [(1,), (7,)])
    view.insert("a", [(1,)])
    before = sorted(view)
    with pytest.raises(InvalidChange) as raised:
        view.apply([("b", [(9,)]), *_delete(1)])
    assert raised.value.code == "CROWN-DIVIDE-BY-ZERO"
    assert sorted(view) == before
    view.apply([*_delete(1), ("a", [(1,)])])
    assert sorted(view) == before


def _delete(value: int) -> list[tuple[str, Any]]:
    return [("a", pa.table({"x": pa.array([value], pa.int32()), "_change_type": ["delete"]}))]


def outcome(work: Callable[[], Any]) -> Any:
    """What a call returns, or the code of its error."""
    try:
        found = work()
        return sorted(map(repr, found.to_pylist() if isinstance(found, pa.Table) else found))
    except CrownError as error:
        return error.code


@pytest.mark.parametrize("case", EVERY)
def test_threads_make_no_difference(case: str, rng: random.Random) -> None:
    views = [crown.View(EVERY[case], schema=SCHEMA, threads=threads) for threads in (1, 2, 3)]
    rows: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(12):
        left, batch = {table: list(values) for table, values in rows.items()}, []
        for _ in range(rng.randint(1, 3)):
            table = rng.choice("ab")
            column = "x" if table == "a" else "y"
            if left[table] and rng.random() < 0.6:
                value, word = left[table].pop(rng.randrange(len(left[table]))), "delete"
            else:
                value, word = rng.randint(0, 2), "insert"
                left[table].append(value)
            batch.append((table, [{column: value, "_change_type": word}]))
        single = rng.random() < 0.3
        deltas = [outcome(partial(view.apply, batch, per_update=single)) for view in views]
        assert deltas[0] == deltas[1] == deltas[2]
        if isinstance(deltas[0], list):
            rows = left
        assert outcome(lambda: views[0]) == outcome(lambda: views[1]) == outcome(lambda: views[2])


def test_a_view_made_while_another_has_no_value(tmp_path: Path) -> None:
    database = crown.Database(SCHEMA, threads=2, keep="all")
    database.execute(f"CREATE MATERIALIZED VIEW added AS {UNDEFINED['added']}")
    database.apply({"b": [(1,), (2,)]})
    database.execute(f"CREATE MATERIALIZED VIEW summed AS {UNDEFINED['summed']}")
    database.execute("CREATE MATERIALIZED VIEW total AS SELECT SUM(y) AS s FROM b")
    for name in ("added", "summed"):
        with pytest.raises(InvalidChange, match="division by zero"):
            list(database[name])
    assert list(database["total"]) == [(3,)]
    deltas = database.apply({"a": [(1,)]})
    assert (deltas["added"].num_rows, deltas["summed"].num_rows) == (2, 1)
    assert (sorted(database["added"]), list(database["summed"])) == ([(2.0,), (3.0,)], [(5.0,)])


def test_single_updates_pass_through_it() -> None:
    view = crown.View(UNDEFINED["output"], schema=SCHEMA)
    delta = view.apply([("b", [(1,)]), ("a", [(None,), (1,)])], per_update=True)
    assert [(row["r"], row["_change_type"]) for row in delta.to_pylist()] == [
        (0.0, "insert"),
        (0.0, "delete"),
        (0.5, "insert"),
    ]


def test_a_refused_batch_leaves_it_undefined() -> None:
    view = crown.View(UNDEFINED["scalar subquery"], schema=SCHEMA)
    with pytest.raises(CrownError, match="not in the table"):
        view.apply([("a", [(1,)]), *_delete(3)])
    check_undefined(view)
    view.insert("b", [(7,)])
    view.insert("a", [(1,)])
    assert list(view) == [(7,)]


def test_a_view_without_deltas() -> None:
    view = crown.View(UNDEFINED["output"], schema=SCHEMA, deltas=False)
    check_undefined(view)
    view.insert("a", [(1,), (None,)])
    assert list(view) == [(0.5,)]


def test_the_error_shows_the_place_and_the_way_out() -> None:
    with pytest.raises(CrownError) as raised:
        list(crown.View(UNDEFINED["scalar subquery"], schema=SCHEMA))
    sql = UNDEFINED["scalar subquery"]
    assert raised.value.position is not None
    start, end = raised.value.position
    assert sql[start:end] == QUOTIENT
    assert "NULLIF" in str(raised.value) and "^^^" in str(raised.value)
    assert list(crown.View("SELECT COUNT(x) / NULLIF(COUNT(*), 0) AS r FROM a", schema=SCHEMA)) == [(None,)]


def test_the_place_of_a_batch_that_fails() -> None:
    view = crown.View("SELECT 10 / x AS q, x % 3 AS m FROM a", schema=SCHEMA)
    with pytest.raises(CrownError) as raised:
        view.insert("a", [(0,)])
    assert raised.value.position == (7, 13)
    view.insert("a", [(5,)])
    assert list(view) == [(2.0, 2)]


def test_a_literal_of_the_first_row_outlives_a_read() -> None:
    view = crown.View("SELECT COUNT(*) AS n, CONCAT('ab', 'c') AS s FROM a", schema=SCHEMA)
    assert list(view) == [(0, "abc")]
    view.to_arrow()
    assert view.insert("a", [(1,)]).select(["n", "s"]).to_pylist() == [{"n": 1, "s": "abc"}]
