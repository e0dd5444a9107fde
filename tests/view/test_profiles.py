"""A declared profile is a promise: changes that break it follow `on_invalid`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import crown
from crown import _kernel
from crown.ir.serial import to_json
from crown.spark.flow.topology import lay_out

PLAIN = "CREATE TABLE t (k BIGINT, x BIGINT) PROFILE insert_only; CREATE TABLE u (k BIGINT, y BIGINT)"
KEYED = "CREATE TABLE t (k BIGINT PRIMARY KEY, x BIGINT) PROFILE insert_only; CREATE TABLE u (k BIGINT, y BIGINT)"
WINDOWED = (
    "CREATE TABLE t (k BIGINT, x BIGINT) WINDOW (ROWS 2) PROFILE insert_only; CREATE TABLE u (k BIGINT, y BIGINT)"
)
JOIN = "SELECT t.x, u.y FROM t JOIN u ON t.k = u.k"


def opened(schema: str, threads: int, on_invalid: Any = "raise") -> crown.View:
    view = crown.View(JOIN, schema, threads=threads, on_invalid=on_invalid)
    view.insert("u", [(1, 10), (2, 20), (3, 30)])
    view.insert("t", [(1, 1), (2, 2)])
    return view


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("schema", [PLAIN, KEYED, WINDOWED], ids=["plain", "keyed", "windowed"])
def test_deletions_are_refused_with_their_batch(schema: str, threads: int) -> None:
    view = opened(schema, threads)
    changes = pa.table({"k": [3, 1], "x": [3, 1], "_change_type": ["insert", "delete"]})
    offers: list[Callable[[], Any]] = [
        lambda: view.delete("t", [(1, 1)]),
        lambda: view.delete("t", pa.table({"k": [1], "x": [1]})),
        lambda: view.apply({"t": changes}),
        lambda: view.apply({"t": changes}, per_update=True),
        lambda: view.apply({"t": changes}, stream=True).read_all(),
    ]
    for offer in offers:
        with pytest.raises(crown.InvalidChange, match=r"table 't'.* declared insert_only.*deletions") as refusal:
            offer()
        assert refusal.value.code == "CROWN-CHANGE-PROFILE"
        assert sorted(view) == [(1, 10), (2, 20)]
    view.delete("u", [(2, 20)])
    assert list(view) == [(1, 10)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("schema", [PLAIN, KEYED], ids=["plain", "keyed"])
def test_deletions_are_set_aside(schema: str, threads: int) -> None:
    view = opened(schema, threads, "quarantine")
    view.apply({"t": pa.table({"k": [3, 1, 9], "x": [3, 1, 9], "_change_type": ["insert", "delete", "delete"]})})
    assert sorted(view) == [(1, 10), (2, 20), (3, 30)]
    rejected = view.rejected()
    assert rejected["position"].to_pylist() == [1, 2] and rejected["table"].to_pylist() == ["t", "t"]
    assert all("insert_only" in reason for reason in rejected["reason"].to_pylist())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_updates_by_key_are_refused(threads: int) -> None:
    view = opened(KEYED, threads)
    view.insert("t", [(1, 1)])  # as it is
    with pytest.raises(crown.InvalidChange, match="insert_only, so updates are not allowed"):
        view.insert("t", [(3, 3), (1, 7)])
    assert sorted(view) == [(1, 10), (2, 20)]
    aside = opened(KEYED, threads, "quarantine")
    aside.insert("t", [(3, 3), (1, 7)])
    assert sorted(aside) == [(1, 10), (2, 20), (3, 30)]
    assert aside.rejected()["position"].to_pylist() == [1]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("on_invalid", ["raise", "quarantine"])
def test_rows_still_leave_with_their_window(threads: int, on_invalid: Any) -> None:
    view = opened(WINDOWED, threads, on_invalid)
    view.insert("t", [(3, 3)])
    assert sorted(view) == [(2, 20), (3, 30)]
    assert view.rejected().num_rows == 0


def test_the_promise_outlives_a_saved_view(tmp_path: Any) -> None:
    opened(PLAIN, 1).save(tmp_path / "view.crown")
    with pytest.raises(crown.InvalidChange, match="insert_only"):
        crown.View.load(tmp_path / "view.crown").delete("t", [(1, 1)])


def test_on_spark_the_cells_keep_the_promise_of_tables_that_nobody_resolves_before() -> None:
    """A window's deletions reach the cells as changes; a plain table's reach nobody else."""
    topology = lay_out(
        "SELECT t.x, u.y, w.z FROM t JOIN u ON t.k = u.k JOIN w ON w.k = u.k",
        {
            "t": {"columns": {"k": "bigint", "x": "bigint"}, "profile": "insert_only"},
            "u": {"columns": {"k": "bigint", "y": "bigint"}},
            "w": {"columns": {"k": "bigint", "z": "bigint"}, "profile": "insert_only", "window": 2},
        },
        2,
    )
    cell = _kernel.Engine(to_json(topology.cell))
    goes = {"_change_type": ["insert", "delete"]}
    cell.apply([("w", pa.table({"k": [1, 1], "z": [1, 1], **goes}))])
    with pytest.raises(crown.InvalidChange, match="insert_only"):
        cell.apply([("t", pa.table({"k": [1, 1], "x": [1, 1], **goes}))])
    front = _kernel.Engine(to_json(topology.resolved["w"][0]))
    with pytest.raises(crown.InvalidChange, match="insert_only"):
        front.apply([("w", pa.table({"k": [1, 1], "z": [1, 1], **goes}))])
