"""A view of several threads does what a view of one does: the same answers, refusals, rejects and undone batches."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crown

JOIN = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
SCHEMA = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c STRING)"
THREADS = [1, 2, 3, 4]
MOST = 2**63 - 1


def answer(view: crown.View) -> Counter[tuple[Any, ...]]:
    rows = view.to_arrow(multiplicity=True).to_pylist()
    return Counter({tuple(v for k, v in row.items() if k != "_multiplicity"): row["_multiplicity"] for row in rows})


def delta_of(view: crown.View, changes: Any, options: dict[str, Any]) -> pa.Table:
    delta = view.apply(changes, **options)
    return delta.read_all() if options.get("stream") else delta


@pytest.mark.parametrize("threads", THREADS)
def test_a_refused_advance_is_undone(threads: int) -> None:
    # Deleting the middle row takes the sum beyond 64 bits for a moment that the watermark makes
    # last.
    sql = "SELECT r.k, SUM(r.v) AS total FROM r JOIN s ON r.k = s.k GROUP BY r.k"
    view = crown.View(
        sql,
        "CREATE TABLE r (t BIGINT, k BIGINT, v BIGINT); CREATE TABLE s (k BIGINT)",
        windows={"r": {"interval": 10, "column": "t"}},
        threads=threads,
    )
    view.insert("s", [(k,) for k in range(8)])
    view.insert("r", [(100, k, k) for k in range(8)])
    view.insert("r", [(101, 3, -5), (105, 3, MOST), (105, 3, 2)])
    before = answer(view)
    for _ in range(2):
        with pytest.raises(crown.CrownError) as caught:
            view.advance("r", 112)  # 3 and -5 leave key 3; what stays is beyond the largest integer
        assert "OVERFLOW" in caught.value.code
        assert answer(view) == before
    view.delete("r", [(105, 3, 2)])
    view.advance("r", 112)
    assert answer(view) == Counter({(3, MOST): 1})


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("options", [{}, {"per_update": True}, {"stream": True}, {"stream": True, "per_update": True}])
def test_what_one_cell_refuses_no_cell_keeps(threads: int, options: dict[str, Any]) -> None:
    view = crown.View(
        "SELECT r.k, SUM(r.v) AS total FROM r JOIN s ON r.k = s.k GROUP BY r.k",
        "CREATE TABLE r (k BIGINT, v BIGINT); CREATE TABLE s (k BIGINT)",
        threads=threads,
    )
    view.insert("s", [(k,) for k in range(50)])
    view.insert("r", [(k, 1) for k in range(50)])
    before = answer(view)
    with pytest.raises(crown.CrownError):
        delta_of(view, {"r": [(k, 1) for k in range(50)] + [(7, MOST), (8, 5)]}, options)
    assert answer(view) == before
    view.delete("r", [(k, 1) for k in range(50)])
    assert len(view) == 0


@pytest.mark.parametrize("threads", THREADS)
def test_errors_name_the_row_as_the_caller_counts(threads: int) -> None:
    view = crown.View(JOIN, SCHEMA, threads=threads)
    view.insert("r", [(i, i) for i in range(100)])
    words = ["delete"] * 100
    rows = pa.table({"a": [i if i < 60 else 1000 + i for i in range(100)], "b": range(100), "_change_type": words})
    with pytest.raises(crown.InvalidChange, match="table 'r', row 60: ") as caught:
        view.apply([("s", [(1, "x")] * 9), ("r", rows)])
    assert caught.value.code == "CROWN-CHANGE-ABSENT" and '"a":1060' in str(caught.value)
    with pytest.raises(crown.InvalidChange, match="row 60:"):
        view.apply([("s", [(1, "x")] * 9), ("r", rows)], per_update=True)
    assert len(view) == 0


FAULTY: dict[str, list[tuple[str, dict[str, list[Any]]]]] = {
    "absent rows": [
        (
            "r",
            {
                "a": [1, 2, 9, 1, 1],
                "b": [1, 1, 1, 1, 1],
                "_change_type": ["insert", "insert", "delete", "delete", "delete"],
            },
        ),
        ("s", {"b": [5, 1], "c": ["x", "y"], "_change_type": ["delete", "insert"]}),
        ("r", {"a": [2, 2], "b": [1, 1], "_change_type": ["delete", "delete"]}),
    ],
    "values that do not fit": [("r", {"a": [1.5, 2.0, float("nan")], "b": [1, 1, 1]}), ("s", {"b": [1], "c": ["y"]})],
    "rows that a filter can't be asked about": [
        ("r", {"a": [10, 10, 0], "b": [0, 2, 1]}),
        ("s", {"b": [2, 0, 1], "c": ["x", "y", "z"]}),
        ("r", {"a": [10, 10], "b": [0, 2], "_change_type": ["delete", "delete"]}),
    ],
}
QUERIES = {
    "join": JOIN,
    "filter": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b WHERE 10 / r.b > 1",
    "sums": "SELECT s.c, SUM(r.a) AS total FROM r JOIN s ON r.b = s.b GROUP BY s.c",
    "distinct": "SELECT DISTINCT s.c FROM r JOIN s ON r.b = s.b WHERE 10 / r.b > 1",
}


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("options", [{}, {"per_update": True}, {"stream": True}, {"stream": True, "per_update": True}])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("faults", FAULTY)
def test_quarantine_sets_the_same_changes_aside(query: str, faults: str, options: dict[str, Any], keyed: bool) -> None:
    schema = SCHEMA.replace("a BIGINT", "a BIGINT PRIMARY KEY") if keyed else SCHEMA
    seen = []
    for threads in THREADS:
        view = crown.View(QUERIES[query], schema, threads=threads, on_invalid="quarantine")
        changes = [(table, pa.table(data)) for table, data in FAULTY[faults]]
        delta = delta_of(view, changes, options)
        rejected = view.rejected().to_pylist()
        rows = sorted(map(repr, delta.to_pylist()))
        seen.append((rejected, answer(view), rows, view.stats()["rejects"], view.rejected().num_rows))
    assert seen[1:] == seen[:-1]
    assert seen[0][4] == 0


@pytest.mark.parametrize("threads", THREADS)
def test_a_batch_that_is_refused_sets_nothing_aside(threads: int) -> None:
    view = crown.View(
        "SELECT s.c, SUM(r.a) AS total FROM r JOIN s ON r.b = s.b GROUP BY s.c",
        SCHEMA,
        threads=threads,
        on_invalid="quarantine",
    )
    view.insert("s", [(1, "x")])
    batch = pa.table({"a": [MOST, MOST, 5], "b": [1, 1, 1], "_change_type": ["insert", "insert", "delete"]})
    with pytest.raises(crown.CrownError):
        view.apply({"r": batch})
    assert view.rejected().num_rows == 0 and view.stats()["rejects"] == 0 and len(view) == 0


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    "sql",
    [
        JOIN,
        "SELECT DISTINCT s.c FROM r JOIN s ON r.b = s.b",
        "SELECT s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY s.c",
    ],
)
def test_samples_of_an_empty_view_are_empty(sql: str, threads: int) -> None:
    view = crown.View(sql, SCHEMA, threads=threads)
    for _ in range(2):
        drawn = view.sample(3, seed=-1)
        assert drawn.num_rows == 0 and drawn.schema.names == view.schema.names
        view.insert("r", [(1, 1)])  # no partner
    view.insert("s", [(1, "x")])
    assert view.sample(5).num_rows == 5 and view.sample(0).num_rows == 0


@pytest.mark.parametrize("windows", [{}, {"r": {"rows": 7}}, {"r": {"interval": 3, "column": "a"}}])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("sql", list(QUERIES.values()))
def test_every_number_of_threads_gives_the_same(
    sql: str, keyed: bool, windows: Any, rng: random.Random, tmp_path: Path
) -> None:
    schema = SCHEMA.replace("a BIGINT", "a BIGINT PRIMARY KEY") if keyed else SCHEMA
    views = [crown.View(sql, schema, windows=windows, threads=threads) for threads in THREADS]
    for step in range(12):
        options: dict[str, Any] = {"per_update": rng.random() < 0.5, "stream": rng.random() < 0.5}
        changes = []
        for _ in range(rng.randint(0, 3)):
            if rng.random() < 0.5:
                rows = [(rng.randint(0, 9), rng.randint(1, 3)) for _ in range(rng.randint(0, 5))]
                words = [rng.choice(["insert"] * 4 + ["delete"]) for _ in rows]
                columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows], "_change_type": words}
                changes.append(
                    (
                        "r",
                        pa.table(
                            columns, schema=pa.schema([("a", "int64"), ("b", "int64"), ("_change_type", "string")])
                        ),
                    )
                )
            else:
                changes.append(("s", [(rng.randint(1, 3), rng.choice("xyz")) for _ in range(rng.randint(0, 3))]))
        outcomes = []
        for view in views:
            try:
                delta = delta_of(view, changes, options)
                outcomes.append((sorted(map(repr, delta.to_pylist())), answer(view), len(view)))
            except crown.CrownError as error:
                outcomes.append(([str(error)], answer(view), len(view)))
        assert outcomes[1:] == outcomes[:-1], (step, changes, options)
        if rng.random() < 0.2:
            for number, view in enumerate(views):
                view.save(tmp_path / "view")
                views[number] = crown.View.load(tmp_path / "view")
