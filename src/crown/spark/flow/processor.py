"""The stateful operator: one call per cell and batch, with Spark's commit as the only commit point.

The state is (version, token) and the chunks that lead to it. A batch requests the engine with exactly that mark,
streams its deltas out, adds its changes to the chunks and writes the mark (version + 1, new random token). If anything
fails before Spark commits, the state still names the old mark, and the engine, left under a token that is never
requested, is rebuilt from the chunks.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from crown.errors import StateError
from crown.spark.checkpoint.identity import Before, Identity, compare
from crown.spark.flow.chunks import Chunk, log_chunks, snapshot_chunks
from crown.spark.flow.rejects import Rejects
from crown.spark.host.client import CellEngine

# One row per blob in an operator's input. Blobs of one cell are applied in the order of (table,
# deletes, source, sequence).
PACKED = StructType(
    [
        StructField("cell", IntegerType(), False),
        StructField("deletes", BooleanType(), False),
        StructField("source", LongType(), False),
        StructField("sequence", LongType(), False),
        StructField("table", StringType(), False),
        StructField("blob", BinaryType(), False),
    ]
)

# One row per blob of deltas, and one without a blob that reports on the batch.
DELTAS = StructType(
    [
        StructField("cell", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("blob", BinaryType(), True),
        StructField("updates", LongType(), True),
        StructField("deltas", LongType(), True),
        StructField("rejected", LongType(), True),
        StructField("rows", LongType(), True),
        StructField("bytes", LongType(), True),
        StructField("counter_changes_per_update", DoubleType(), True),
        StructField("seconds", DoubleType(), True),
        StructField("figures", StringType(), True),
    ]
)

META = StructType(
    [
        StructField("version", LongType()),
        StructField("token", StringType()),
        StructField("first_chunk", LongType()),
        StructField("next_chunk", LongType()),
        StructField("first_log_chunk", LongType()),
        StructField("rows", LongType()),
        StructField("fingerprint", StringType()),
        StructField("lenient", BooleanType()),
        # Metadata for a snapshot, which does not know the query.
        StructField("batch", LongType()),
        StructField("stage", StringType()),
        StructField("identity", StringType()),
        StructField("inputs", StringType()),
        StructField("plan", StringType()),
        StructField("names", StringType()),
    ]
)
CHUNK_KEY = StructType([StructField("index", LongType())])
CHUNK = StructType(
    [
        StructField("version", LongType()),
        StructField("snapshot", BooleanType()),
        StructField("checksum", LongType()),
        StructField("data", BinaryType()),
    ]
)

# Below this many rows or chunks a rewrite is not worthwhile.
_FEW_ROWS = 65536
_FEW_CHUNKS = 256


@dataclass(frozen=True)
class Operator:
    """One stateful operator of a query: which plan its cells run, and how. Plain data that is sent to the executors."""

    name: str
    plan: str  # JSON
    fingerprint: str
    identity: Identity  # of the whole view: one query may hold several
    sql: str
    names: tuple[str, ...]  # the author's, of the output columns
    table_order: tuple[str, ...]
    keys: tuple[int, ...]  # the grouping key of each cell
    on_invalid: str = "raise"
    rejects: Rejects | None = None
    inputs: tuple[str, ...] = ()  # the views whose deltas the view reads


@dataclass(frozen=True)
class Meta:
    """What is committed. Chunks [first_chunk, first_log_chunk) are the snapshot, up to next_chunk the log after it.

    `rows` counts the changes and snapshot rows in all of them, to compare with the rows that are alive. `lenient` says
    that the log may contain rejected changes, and so must be replayed as it was applied.
    """

    version: int = 0
    token: str = ""
    first_chunk: int = 0
    next_chunk: int = 0
    first_log_chunk: int = 0
    rows: int = 0
    fingerprint: str = ""
    lenient: bool = False

    @property
    def mark(self) -> tuple[int, str]:
        return self.version, self.token

    def after(self, token: str, rows: int, chunks: int) -> Meta:
        """With one more batch of changes in the log."""
        return replace(
            self, version=self.version + 1, token=token, next_chunk=self.next_chunk + chunks, rows=self.rows + rows
        )

    def wasteful(self, stored: int) -> bool:
        """Whether more than half of the chunks' rows are dead, or the log has too many small chunks."""
        snapshot = self.first_log_chunk - self.first_chunk
        log = self.next_chunk - self.first_log_chunk
        return self.rows > max(2 * stored, _FEW_ROWS) or log > _FEW_CHUNKS + 4 * (snapshot + self.rows // _FEW_ROWS)


class CellProcessor(StatefulProcessor):
    """Maintains one cell per grouping key."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._meta = handle.getValueState("meta", META)
        self._chunks = handle.getMapState("chunks", CHUNK_KEY, CHUNK)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        operator = self._operator
        cell = operator.keys.index(key[0])
        meta = self._read_meta(cell)
        order = {table: position for position, table in enumerate(operator.table_order)}
        arrived = sorted(rows, key=lambda row: (order[row.table], row.deletes, row.source, row.sequence))
        blobs = [(row.table, bytes(row.blob)) for row in arrived]
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        replayed = "quarantine" if meta.lenient else "raise"
        engine = CellEngine(
            query, operator.name, cell, operator.plan, operator.on_invalid, operator.identity.view, replayed
        )
        following = secrets.token_hex(8)
        sequence = 0
        for delta in engine.apply(meta.mark, following, blobs, lambda: self._read_chunks(cell, meta)):
            yield _delta_row(cell, sequence, blob=delta)
            sequence += 1
        result = engine.result
        log = list(log_chunks(meta.version + 1, blobs))
        committed = meta.after(following, result["updates"], len(log))
        committed = replace(committed, lenient=meta.lenient or operator.on_invalid == "quarantine")
        if result["rejected"] and operator.rejects is not None:
            operator.rejects.write(batch, f"{operator.name}-{cell}", engine.rejected(committed.mark))
        stored = stored_rows(result["stats"])
        if committed.wasteful(stored):
            committed = self._rewrite(meta, committed, engine.save(committed.mark), stored)
        else:
            self._append(meta.next_chunk, log)
        about = (operator.identity.to_json(), operator.inputs, operator.names)
        identity, inputs, names = map(json.dumps, about)
        self._meta.update((*astuple(committed), batch, operator.name, identity, inputs, operator.plan, names))
        yield _delta_row(
            cell,
            sequence,
            updates=result["updates"],
            deltas=result["deltas"],
            rejected=result["rejected"],
            rows=stored,
            bytes=engine_bytes(result["stats"]),
            counter_changes_per_update=float(result["stats"]["counter_changes_per_update"]),
            seconds=result["seconds"],
        )

    def close(self) -> None:
        pass

    def _read_meta(self, cell: int) -> Meta:
        operator = self._operator
        found = self._meta.get()
        if found is None:
            return Meta(fingerprint=operator.fingerprint)
        meta = Meta(*found[: len(fields(Meta))])
        if meta.fingerprint != operator.fingerprint:
            self._check(cell, dict(zip(META.fieldNames(), found, strict=True)))
        return replace(meta, fingerprint=operator.fingerprint)

    def _check(self, cell: int, found: dict[str, Any]) -> None:
        """Check state of another version or another text: its description must be equivalent."""
        operator = self._operator
        try:
            compare(
                Before(json.loads(found["identity"]), found["stage"], found["plan"]),
                operator.identity,
                {operator.name: operator.plan},
            )
        except StateError as error:
            raise StateError(
                f"cell {cell} ({operator.name}): {error.message}", code=error.code, reason=error.reason, hint=error.hint
            ) from None

    def _read_chunks(self, cell: int, meta: Meta) -> Iterator[Chunk]:
        for index in range(meta.first_chunk, meta.next_chunk):
            found = self._chunks.getValue((index,))
            if found is None:
                raise StateError(
                    f"cell {cell} ({self._operator.name}): state chunk {index} is missing",
                    code="CROWN-STATE-CORRUPT",
                    hint="restore the checkpoint from a copy, or start over with a new one",
                )
            yield Chunk(found[0], found[1], found[2], bytes(found[3]))

    def _rewrite(self, meta: Meta, committed: Meta, parts: list[bytes], stored: int) -> Meta:
        """Replace all chunks by a snapshot, which already includes the log of this batch."""
        for index in range(meta.first_chunk, meta.next_chunk):
            self._chunks.removeKey((index,))
        chunks = list(snapshot_chunks(committed.version, parts))
        self._append(meta.next_chunk, chunks)
        after = meta.next_chunk + len(chunks)
        return replace(
            committed, first_chunk=meta.next_chunk, next_chunk=after, first_log_chunk=after, rows=stored, lenient=False
        )

    def _append(self, index: int, chunks: list[Chunk]) -> None:
        for place, chunk in enumerate(chunks, index):
            self._chunks.updateValue((place,), (chunk.version, chunk.snapshot, chunk.checksum, chunk.data))


def stored_rows(stats: dict[str, Any]) -> int:
    """Return rows that are alive in the engine: at least what a snapshot would hold."""
    return sum(int(part.get("rows", 0)) for part in stats["stages"]) + sum(
        int(part.get("stored_rows", 0)) for part in stats["tables"]
    )


def engine_bytes(stats: dict[str, Any]) -> int:
    return int(stats["bytes"])


def _delta_row(cell: int, sequence: int, **values: Any) -> Row:
    return Row(*DELTAS.fieldNames())(
        *({"cell": cell, "sequence": sequence, **values}.get(name) for name in DELTAS.fieldNames())
    )
