"""What runs a plan: one kernel engine, or one per HyperCube cell behind a router. Both have the same methods."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from crown import _kernel
from crown.arrow import arrow_type
from crown.errors import StateError
from crown.ir.plan import Plan
from crown.ir.serial import to_json
from crown.ir.tables import resolved
from crown.view.identity import identity

OnInvalid: TypeAlias = Literal["raise", "quarantine"]
Inputs: TypeAlias = Sequence[tuple[str, Any]]
State: TypeAlias = Mapping[str, list[bytes]]


class Engines(Protocol):
    def apply(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.Table: ...
    def apply_rows(
        self, table: str, rows: Sequence[tuple[Any, ...]], *, delete: bool, on_invalid: OnInvalid
    ) -> pa.Table: ...
    def stream(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.RecordBatchReader: ...
    def advance(self, table: str, watermark: int) -> pa.Table: ...
    def rows(self, *, multiplicity: bool) -> pa.Table: ...
    def iterate(self) -> Iterator[tuple[Any, ...]]: ...
    def multiplicity(self, row: tuple[Any, ...]) -> int: ...
    def count(self) -> int: ...
    def sample(self, rows: int, seed: int) -> pa.Table: ...
    def rejected(self) -> pa.Table: ...
    def stats(self) -> dict[str, Any]: ...
    def save(self) -> State: ...


def read_all(stream: Any) -> pa.Table:
    """What the kernel gives, as a table. (`pyarrow.table` would import pandas first, which takes a second.)"""
    return pa.RecordBatchReader.from_stream(stream).read_all()


class OneEngine:
    """The whole view in one engine."""

    def __init__(self, plan: Plan, *, deltas: bool, state: State | None = None) -> None:
        text = to_json(plan)
        if state is None:
            self._engine = _kernel.Engine(text, deltas=deltas)
        else:
            self._engine = _kernel.Engine.load(text, _part(state, "engine"), deltas=deltas)

    def apply(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.Table:
        return read_all(self._engine.apply(changes, per_update=per_update, on_invalid=on_invalid))

    def apply_rows(
        self, table: str, rows: Sequence[tuple[Any, ...]], *, delete: bool, on_invalid: OnInvalid
    ) -> pa.Table:
        return read_all(self._engine.apply_rows(table, rows, delete=delete, on_invalid=on_invalid))

    def stream(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.RecordBatchReader:
        stream = self._engine.stream(changes, per_update=per_update, on_invalid=on_invalid)
        return pa.RecordBatchReader.from_stream(stream)

    def advance(self, table: str, watermark: int) -> pa.Table:
        return read_all(self._engine.advance(table, watermark))

    def rows(self, *, multiplicity: bool) -> pa.Table:
        return read_all(self._engine.rows(multiplicity=multiplicity))

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        return self._engine.iterate()

    def multiplicity(self, row: tuple[Any, ...]) -> int:
        return self._engine.multiplicity(row)

    def count(self) -> int:
        return self._engine.count()

    def sample(self, rows: int, seed: int) -> pa.Table:
        return read_all(self._engine.sample(rows, seed))

    def rejected(self) -> pa.Table:
        return read_all(self._engine.rejected())

    def stats(self) -> dict[str, Any]:
        return self._engine.stats()

    def save(self) -> State:
        return {"engine": self._engine.save()}


class ManyEngines:
    """One engine per cell on a pool of threads; where cells' outputs are not disjoint, one more merges them.

    A table with a PRIMARY KEY or a window is resolved before routing, by an engine of its own: only there are all its
    rows known. So it is with every table when faulty changes are set aside, for they must be found once and in order.
    When a cell refuses a batch, all others take it back.
    """

    def __init__(
        self, plan: Plan, threads: int, *, deltas: bool, on_invalid: OnInvalid, state: State | None = None
    ) -> None:
        from crown.plan.cells.distribute import CELLS, distribute

        spread = distribute(plan, threads)
        stateful = {t.name: t for t in plan.tables if t.primary_key or t.window or on_invalid == "quarantine"}
        plain = tuple(resolved(t) if t.name in stateful else t for t in spread.cell.tables)
        cell = replace(spread.cell, tables=plain)
        self._plan = plan
        self._merge_table = CELLS
        self._router = _kernel.Router(to_json(cell))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="crown")
        self._parts: dict[str, tuple[str, bool]] = {
            f"table-{n}": (to_json(identity(t)), True) for n, t in stateful.items()
        }
        # Cells whose outputs are merged must give them, whether or not the view shows its deltas.
        inner_deltas = deltas or spread.merge is not None
        self._parts |= {f"cell-{i}": (to_json(cell), inner_deltas) for i in range(threads)}
        if spread.merge is not None:
            self._parts["merge"] = (to_json(spread.merge), deltas)
        self._start(state)

    def _start(self, state: State | None) -> None:
        """All engines, empty or from a saved state."""
        self._engines: dict[str, _kernel.Engine] = {}
        for name, (plan, deltas) in self._parts.items():
            if state is None:
                self._engines[name] = _kernel.Engine(plan, deltas=deltas, undoable=True)
            else:
                self._engines[name] = _kernel.Engine.load(plan, _part(state, name), deltas=deltas, undoable=True)
        self._cells = [engine for name, engine in self._engines.items() if name.startswith("cell-")]
        self._merge = self._engines.get("merge")
        self._started = state is not None
        self._pending: list[_kernel.Engine] = []

    def apply(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.Table:
        if per_update:
            return self._one_by_one(changes, on_invalid)
        self._pending = []
        try:
            delta = self._apply(changes, on_invalid)
        except BaseException:
            for engine in self._pending:
                engine.undo()
            raise
        self._started = True
        return delta

    def _apply(self, changes: Inputs, on_invalid: OnInvalid) -> pa.Table:
        resolved: list[tuple[str, Any]] = []
        for table, parts in itertools.groupby(sorted(changes, key=itemgetter(0)), key=itemgetter(0)):
            if front := self._engines.get(f"table-{table}"):
                resolved.append((table, read_all(self._run(front, list(parts), on_invalid))))
            else:
                resolved += parts
        return self._route(resolved)

    def _route(self, changes: Inputs) -> pa.Table:
        shares: list[list[tuple[str, Any]]] = [[] for _ in self._cells]
        for table, data in changes:
            for cell, part in self._router.route(table, data):
                shares[cell].append((table, part))
        busy = [i for i, share in enumerate(shares) if share or not self._started]
        runs = [self._pool.submit(self._run, self._cells[i], shares[i], "raise") for i in busy]
        failures = [error for run in runs if (error := run.exception()) is not None]
        if failures:
            raise failures[0]
        deltas = [read_all(run.result()) for run in runs]
        if self._merge is None:
            return pa.concat_tables(deltas) if deltas else self._nothing()
        merged = pa.concat_tables(deltas) if deltas else None
        inputs = [] if merged is None else [(self._merge_table, merged)]
        return read_all(self._run(self._merge, inputs, "raise"))

    def _run(self, engine: _kernel.Engine, changes: Inputs, on_invalid: OnInvalid) -> _kernel.ArrowStream:
        delta = engine.apply(changes, on_invalid=on_invalid)
        self._pending.append(engine)
        return delta

    def _nothing(self) -> pa.Table:
        return read_all(self._cells[0].apply([]))

    def _one_by_one(self, changes: Inputs, on_invalid: OnInvalid) -> pa.Table:
        """Each change as a batch of its own. If one is refused, all engines go back to where they were."""
        tables = [(table, data if isinstance(data, pa.Table) else pa.table(data)) for table, data in changes]
        saved = self.save()
        deltas = []
        position = itertools.count()
        try:
            for table, data in tables:
                for row in range(data.num_rows):
                    delta = self.apply([(table, data.slice(row, 1))], per_update=False, on_invalid=on_invalid)
                    update = pa.array([next(position)] * delta.num_rows, pa.int64())
                    deltas.append(delta.append_column(pa.field("_update", pa.int64(), nullable=False), update))
        except BaseException:
            self._start(saved)
            raise
        if deltas:
            return pa.concat_tables(deltas)
        nothing = self.apply([], per_update=False, on_invalid=on_invalid)
        return nothing.append_column("_update", pa.array([0] * nothing.num_rows, pa.int64()))

    def apply_rows(
        self, table: str, rows: Sequence[tuple[Any, ...]], *, delete: bool, on_invalid: OnInvalid
    ) -> pa.Table:
        columns = next(t for t in self._plan.tables if t.name == table).columns
        arrays = [pa.array([row[i] for row in rows], arrow_type(column.type)) for i, column in enumerate(columns)]
        words = pa.array(["delete" if delete else "insert"] * len(rows))
        data = pa.table([*arrays, words], names=[*(column.name for column in columns), "_change_type"])
        return self.apply([(table, data)], per_update=False, on_invalid=on_invalid)

    def stream(self, changes: Inputs, *, per_update: bool, on_invalid: OnInvalid) -> pa.RecordBatchReader:
        return self.apply(changes, per_update=per_update, on_invalid=on_invalid).to_reader()

    def advance(self, table: str, watermark: int) -> pa.Table:
        self._pending = []
        delta = read_all(self._engines[f"table-{table}"].advance(table, watermark))
        return self._route([(table, delta)])

    def rows(self, *, multiplicity: bool) -> pa.Table:
        return pa.concat_tables([read_all(e.rows(multiplicity=multiplicity)) for e in self._ends])

    @property
    def _ends(self) -> list[_kernel.Engine]:
        """The engines that together hold the result."""
        return self._cells if self._merge is None else [self._merge]

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        return itertools.chain.from_iterable(engine.iterate() for engine in self._ends)

    def multiplicity(self, row: tuple[Any, ...]) -> int:
        return sum(engine.multiplicity(row) for engine in self._ends)

    def count(self) -> int:
        return sum(engine.count() for engine in self._ends)

    def sample(self, rows: int, seed: int) -> pa.Table:
        rng = random.Random(seed)
        counts = [engine.count() for engine in self._ends]
        chosen = rng.choices(range(len(counts)), weights=counts, k=rows) if any(counts) else []
        parts = [read_all(e.sample(chosen.count(i), rng.getrandbits(63))) for i, e in enumerate(self._ends)]
        order = list(range(len(chosen)))
        rng.shuffle(order)
        return pa.concat_tables(parts).take(pa.array(order, pa.int64()))

    def rejected(self) -> pa.Table:
        return pa.concat_tables([read_all(engine.rejected()) for engine in self._engines.values()])

    def stats(self) -> dict[str, Any]:
        parts = {name: engine.stats() for name, engine in self._engines.items()}
        keys = ("changes", "rejects", "updates", "counter_changes", "bytes")
        total: dict[str, Any] = {key: sum(part[key] for part in parts.values()) for key in keys}
        total["counter_changes_per_update"] = total["counter_changes"] / total["updates"] if total["updates"] else 0.0
        total["batches"] = max(part["batches"] for part in parts.values())
        total["stages"] = [stage for engine in self._cells for stage in engine.stats()["stages"]]
        return total | {"engines": parts}

    def save(self) -> State:
        return {name: engine.save() for name, engine in self._engines.items()}


def _part(state: State, name: str) -> list[bytes]:
    if name not in state:
        raise StateError(f"the saved view lacks its part {name!r}", code="CROWN-STATE-CORRUPT")
    return state[name]
