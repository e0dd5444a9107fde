"""An engine for tests of the host: a multiset that echoes its net changes, and breaks on demand."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa


class Echo:
    """The view is the first table. A row with a = -1 aborts the process, with a = -2 runs out of memory."""

    def __init__(self, plan: str, *, deltas: bool = True) -> None:
        self.names = [column["name"] for column in json.loads(plan)["tables"][0]["columns"]]
        self.state: Counter[tuple[Any, ...]] = Counter()

    def apply(self, changes: Sequence[tuple[str, Any]], *, on_invalid: str = "raise") -> pa.Table:
        net: Counter[tuple[Any, ...]] = Counter()
        for _, data in changes:
            table = pa.table(data)
            words = table["_change_type"].to_pylist() if "_change_type" in table.column_names else None
            for number, row in enumerate(zip(*(table[name].to_pylist() for name in self.names), strict=True)):
                if row[0] == -1:
                    os.abort()
                if row[0] == -2:
                    raise MemoryError("the test asked for it")
                net[row] += -1 if words and words[number] == "delete" else 1
        self.state.update(net)
        rows = [(row, weight) for row, weight in net.items() if weight]
        columns = {name: pa.array([row[i] for row, _ in rows], pa.int64()) for i, name in enumerate(self.names)}
        columns["_change_type"] = pa.array(["insert" if weight > 0 else "delete" for _, weight in rows], pa.string())
        columns["_multiplicity"] = pa.array([abs(weight) for _, weight in rows], pa.int64())
        return pa.table(columns)

    stream = apply

    def save(self) -> list[bytes]:
        return [json.dumps([[list(row), weight] for row, weight in self.state.items() if weight]).encode()]

    @staticmethod
    def load(plan: str, chunks: Sequence[bytes], *, deltas: bool = True) -> Echo:
        engine = Echo(plan)
        engine.state = Counter({tuple(row): weight for row, weight in json.loads(chunks[0])})
        return engine

    @staticmethod
    def rebuild(plan: str, chunks: Sequence[bytes], batches: Iterable[Any], **options: Any) -> Echo:
        engine = Echo.load(plan, chunks) if chunks else Echo(plan)
        for changes in batches:
            engine.apply(changes)
        return engine

    def rejected(self) -> pa.Table:
        return pa.table({"table": pa.array([], pa.string())})

    def stats(self) -> dict[str, Any]:
        return {
            "stages": [{"rows": sum(self.state.values())}],
            "tables": [],
            "bytes": 0,
            "counter_changes_per_update": 1.0,
        }
