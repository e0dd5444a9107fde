"""A query laid out over cells, without Spark: dispatcher, engines, repacker and merge in this process.

Many more queries fit into a second than with Spark; what Spark itself adds is in `test_maintain`. As in Spark,
the rows of a batch come from several partitions, in no order among them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

from crown._kernel import Engine
from crown.changes import CHANGE_TYPE, DELETIONS
from crown.ir.plan import Plan
from crown.plan import plan, to_json
from crown.plan.cells.distribute import describe
from crown.spark.flow.cell_keys import cell_keys
from crown.spark.flow.chunks import read_blob, write_blob
from crown.spark.flow.dispatch import Dispatcher
from crown.spark.flow.netting import Netting
from crown.spark.flow.python import merge_dispatcher
from crown.spark.flow.topology import Topology, lay_out
from crown.spark.flow.unpack import Repacker
from crown.spark.schema import DELETED
from crown.sql import parse
from crown.sql.schema.schema import load_schema
from tests.property.queries import Schema, queries
from tests.property.streams import streams
from tests.spark.streams import GRAPH_QUERIES
from tests.support.judge import Change, Judge

CELLS = (1, 2, 3, 8)
PARTITIONS = 2


class Operator:
    """The engines of one stateful operator. A cell that gets nothing is not called."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.order = {table.name: number for number, table in enumerate(plan.tables)}
        self.engines: dict[int, Engine] = {}
        self.updates: Counter[int] = Counter()

    def apply(self, packed: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Rows with a `blob` column, as the operator gives them, of all cells that were called."""
        rows = [row for batch in packed for row in batch.to_pylist()]
        rows.sort(key=lambda row: (self.order[row["table"]], row["deletes"], row["source"], row["sequence"]))
        blobs = []
        for cell in sorted({row["cell"] for row in rows}):
            engine = self.engines.setdefault(cell, Engine(to_json(self.plan)))
            changes = [(row["table"], read_blob(row["blob"]).read_all()) for row in rows if row["cell"] == cell]
            self.updates[cell] += sum(table.num_rows for _, table in changes)
            delta = pa.table(engine.apply(changes))
            blobs += [bytes(write_blob(delta.to_batches(), delta.schema)), None]
        return [pa.RecordBatch.from_pydict({"blob": pa.array(blobs, pa.binary())})]


class Laid:
    """All operators of a query."""

    def __init__(self, topology: Topology, rng: random.Random) -> None:
        self.topology = topology
        self.rng = rng
        self.resolved = {name: Operator(plan) for name, (plan, _) in topology.resolved.items()}
        self.cells = Operator(topology.cell)
        self.merge = None if topology.merge is None else Operator(topology.merge)

    def apply(self, changes: dict[str, pa.Table]) -> pa.Table:
        packed: list[Any] = []
        read = {table.name: table for table in self.topology.cell.tables}
        for name, table in changes.items():
            if name not in read:
                continue
            rows = marked(table)
            if name in self.resolved:
                plan, cells = self.topology.resolved[name]
                key = plan.tables[0].primary_key if cells > 1 else ()
                own = Dispatcher(name, cell_keys(cells), None, None, "_cell" if key else None, ordered=True)
                keyed = rows
                if key:
                    values = zip(*(rows[column].to_pylist() for column in key), strict=True)
                    keyed = rows.append_column("_cell", pa.array([hash(row) % cells for row in values], pa.int32()))
                # Spark keeps the changes of a key in one partition only if the source does: here
                # there is one.
                deltas = self.resolved[name].apply(own(iter(keyed.combine_chunks().to_batches())))
                resolved = list(Repacker(cast(Dispatcher, iter))(deltas))
                if not resolved:
                    continue
                rows = pa.Table.from_batches(resolved)
            # Selections are left to the kernel, which does them again.
            packed += self.dispatched(name, rows)
        deltas = self.cells.apply(packed)
        if self.merge is not None and self.topology.merge is not None:
            deltas = self.merge.apply(Repacker(merge_dispatcher(self.topology.merge))(deltas))
        tables = [read_blob(blob).read_all() for batch in deltas for blob in batch["blob"].to_pylist() if blob]
        plain = [
            table.set_column(
                table.schema.get_field_index("_change_type"), "_change_type", table["_change_type"].cast(pa.string())
            )
            for table in tables
        ]
        return pa.concat_tables(plain, promote_options="permissive") if plain else EMPTY

    def dispatched(self, name: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        plan, cells = self.topology.cell, self.topology.cells
        table = self.topology.table(name)
        ordered = bool(table.primary_key or table.window)
        routed = to_json(plan) if cells > 1 else None
        netting = None if ordered else Netting()
        dispatcher = Dispatcher(name, cell_keys(cells), routed, None, None, ordered, netting=netting)
        parts = [rows] if ordered else scattered(rows, self.rng)
        for source, part in enumerate(parts):
            for batch in dispatcher(iter(part.combine_chunks().to_batches(max_chunksize=5))):
                yield batch.set_column(2, "source", pa.array([source], pa.int64()))


EMPTY = pa.table({"_change_type": pa.array([], pa.string())})


def marked(changes: pa.Table) -> pa.Table:
    deleted = pc.is_in(changes[CHANGE_TYPE], pa.array(DELETIONS))
    return changes.drop_columns([CHANGE_TYPE]).append_column(DELETED, deleted)


def scattered(rows: pa.Table, rng: random.Random) -> list[pa.Table]:
    partition = np.array([rng.randrange(PARTITIONS) for _ in range(rows.num_rows)], np.int64)
    return [rows.filter(pa.array(partition == number)) for number in range(PARTITIONS)]


def described(ddl: str) -> dict[str, Any]:
    return {
        table.name: {"columns": {c.name: c.type for c in table.columns}, "primary_key": table.primary_key}
        for table in load_schema(ddl).tables.values()
    }


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, str, list[list[Change]], int]:
    schema, sql = draw(queries())
    return schema, sql, draw(streams(schema)), draw(st.integers(0, 2**32 - 1))


def check(case: tuple[Schema, str, list[list[Change]], int]) -> None:
    schema, sql, batches, seed = case
    hypothesis.note(f"{schema.ddl}\n{sql}")
    judge = Judge(sql, schema.ddl)
    laid = {cells: Laid(lay_out(sql, described(schema.ddl), cells), random.Random(seed)) for cells in CELLS}
    for batch in batches:
        if not batch:
            continue
        changes = judge.as_arrow(batch)
        deltas = {cells: query.apply(changes) for cells, query in laid.items()}
        judge.apply(batch)
        for cells, delta in deltas.items():
            judge.check_delta(delta, where=f"{cells} cells")


@hypothesis.settings(max_examples=12)
@hypothesis.given(cases())
def test_random_queries_on_any_number_of_cells(case: tuple[Schema, str, list[list[Change]], int]) -> None:
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=2000)
@hypothesis.given(cases())
def test_many_random_queries_on_any_number_of_cells(case: tuple[Schema, str, list[list[Change]], int]) -> None:
    check(case)


@pytest.mark.parametrize("cells", [2, 3, 8, 12])
@pytest.mark.parametrize("sql", GRAPH_QUERIES[:3])
def test_load_and_replication_are_as_planned(sql: str, cells: int, rng: random.Random) -> None:
    """Each atom's rows go into as many cells as the plan says, and no cell gets much more than its share."""
    tables = {"g": {"columns": {"src": "bigint", "dst": "bigint"}}}
    topology = lay_out(sql, tables, cells)
    planned = describe(plan(parse(sql, tables)), cells).loads
    count = 6000
    rows = pa.table(
        {name: pa.array([rng.randrange(3000) for _ in range(count)], pa.int64()) for name in ("src", "dst")}
    )
    held = [Counter[int]() for _ in planned]  # by atom: the rows of each cell
    sent: Counter[int] = Counter()
    for batch in Dispatcher("g", cell_keys(cells), to_json(topology.cell))(iter(rows.to_batches())):
        cell = batch["cell"][0].as_py()
        masks = read_blob(batch["blob"][0].as_buffer()).read_all()["_atoms"].to_numpy()
        sent[cell] += len(masks)
        for atom, counts in enumerate(held):
            counts[cell] += int((masks >> atom & 1).sum())
    assert len(sent) == cells
    for load, counts in zip(planned, held, strict=True):
        assert counts.total() == load.copies * count
        assert max(counts.values()) < 1.3 * load.fraction * count
    # A row that several atoms want in one cell travels once.
    assert max(sent.values()) <= sum(max(counts.values()) for counts in held)


def test_groups_are_merged_by_all_their_columns() -> None:
    """Few values in the first column leave no cell of the merge idle."""
    sql = "SELECT a.src % 2 AS half, b.dst, COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src % 2, b.dst"
    topology = lay_out(sql, {"g": {"columns": {"src": "bigint", "dst": "bigint"}}}, 8)
    assert topology.merge is not None
    dispatcher = merge_dispatcher(topology.merge)
    assert len(dispatcher.keys) == 8
    columns = {
        column.name: pa.array([number % 2 for number in range(400)], pa.int64())
        for column in topology.merge.tables[0].columns
    }
    columns[list(columns)[1]] = pa.array(range(400), pa.int64())
    found = {batch["cell"][0].as_py() for batch in dispatcher(iter(pa.table(columns).to_batches()))}
    assert len(found) == 8
