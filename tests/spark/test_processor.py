"""The stateful operator on a state store made of dictionaries: commits, failed attempts, dead hosts, rewritten state.

No Spark runs here, so that many more faults fit into a second than with it; the engine host is the real one.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from crown.errors import StateError
from crown.spark.flow import processor
from crown.spark.flow.chunks import read_blob, write_blob
from crown.spark.flow.processor import CellProcessor, Operator
from crown.spark.flow.topology import lay_out
from crown.spark.host import client, launch
from tests.spark.streams import GRAPH, GRAPH_QUERIES, random_changes
from tests.support.judge import Change, Judge


class Value:
    def __init__(self, store: dict[str, Any], name: str) -> None:
        self.store, self.name = store, name

    def get(self) -> Any:
        return self.store.get(self.name)

    def update(self, value: tuple[Any, ...]) -> None:
        self.store[self.name] = value


class Map:
    def __init__(self, store: dict[str, Any], name: str) -> None:
        self.store = store.setdefault(name, {})

    def getValue(self, key: tuple[int]) -> Any:
        return self.store.get(key)

    def updateValue(self, key: tuple[int], value: tuple[Any, ...]) -> None:
        self.store[key] = value

    def removeKey(self, key: tuple[int]) -> None:
        del self.store[key]


class Store:
    """A state store with commits: an attempt works on a copy."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.committed: dict[str, Any] = {}

    def attempt(self, changes: list[Change], judge: Judge, *, commit: bool) -> list[pa.Table]:
        """Run one batch; its deltas count only if it is committed."""
        state = copy.deepcopy(self.committed)
        running = CellProcessor(self.operator)
        handle: Any = SimpleNamespace(
            getValueState=lambda name, schema: Value(state, name),
            getMapState=lambda name, key, schema: Map(state, name),
        )
        running.init(handle)
        table = judge.as_arrow(changes)["g"].combine_chunks()
        blob = write_blob(table.to_batches(), table.schema)
        rows = [Row("table", "deletes", "source", "sequence", "blob")("g", False, 0, 0, blob)]
        found = [row.blob for row in running.handleInputRows((self.operator.keys[0],), iter(rows), None)]
        if commit:
            self.committed = state
        return [read_blob(blob).read_all() for blob in found if blob is not None]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host of this process, and state that is rewritten early."""
    context = SimpleNamespace(getLocalProperty=lambda name: "query" if "Id" in name and "query" in name else "0")
    monkeypatch.setattr(processor, "TaskContext", SimpleNamespace(get=lambda: context))
    monkeypatch.setattr(processor, "_FEW_ROWS", 100)
    monkeypatch.setattr(processor, "_FEW_CHUNKS", 5)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client._drop()
    yield
    client._drop()
    for process in launch._started:
        process.kill()
        process.wait()
    launch._started.clear()


def operator_of(sql: str) -> Operator:
    topology = lay_out(sql, {"g": {"columns": {"src": "bigint", "dst": "bigint"}}}, 1)
    return topology.operator("cells", topology.cell, 1, "raise", None)


@pytest.mark.parametrize("sql", GRAPH_QUERIES[:3])
@pytest.mark.usefixtures("quick")
def test_faults_never_show(sql: str, rng: random.Random) -> None:
    judge = Judge(sql, GRAPH)
    store = Store(operator_of(sql))
    rewrites = 0
    for number in range(40):
        changes = random_changes(rng, judge.tables, rng.randrange(1, 15))
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            store.attempt(changes, judge, commit=False)
            if rng.random() < 0.2:
                launch._started[-1].kill()
        deltas = store.attempt(changes, judge, commit=True)
        judge.apply(changes)
        judge.check_delta(
            pa.concat_tables(deltas, promote_options="permissive") if deltas else EMPTY, where=str(number)
        )
        chunks = sorted(index for (index,) in store.committed["chunks"])
        assert chunks == list(range(chunks[0], chunks[-1] + 1))
        rewrites += store.committed["chunks"][(chunks[0],)][1]
    assert rewrites, "the state was never rewritten"


EMPTY = pa.table({"_change_type": pa.array([], pa.string())})


@pytest.mark.usefixtures("quick")
def test_damage_and_foreign_state_are_refused(rng: random.Random) -> None:
    judge = Judge(GRAPH_QUERIES[0], GRAPH)
    store = Store(operator_of(GRAPH_QUERIES[0]))
    for _ in range(2):
        changes = random_changes(rng, judge.tables, 5)
        store.attempt(changes, judge, commit=True)
        judge.apply(changes)
    again = [Change("g", (1, 1))]
    # The same query in other words is the same query.
    store.operator = operator_of(GRAPH_QUERIES[0].replace("SELECT ", "select  "))
    store.attempt(again, judge, commit=False)
    store.operator = operator_of(GRAPH_QUERIES[1])
    with pytest.raises(StateError, match="CROWN-STATE-OTHER-PLAN"):
        store.attempt(again, judge, commit=False)
    store.operator = operator_of(GRAPH_QUERIES[0])
    launch._started[-1].kill()
    chunk = store.committed["chunks"][(1,)]
    store.committed["chunks"][(1,)] = (*chunk[:3], chunk[3][:-1] + b"!")
    with pytest.raises(StateError, match=r"cell 0 \(cells\).*chunk 1 is corrupt"):
        store.attempt(again, judge, commit=False)
    del store.committed["chunks"][(1,)]
    with pytest.raises(StateError, match="chunk 1 is missing"):
        store.attempt(again, judge, commit=False)
