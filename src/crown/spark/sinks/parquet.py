"""A table of parquet files by version: each batch adds its deltas, a version is a list of parts, readers see whole
versions.

Version v of a stream is named by one small file, `_versions/STREAM/v.json`, which appears in one step after its parts
are complete, and `_versions/current.json` names the stream. A batch whose version is there changes nothing when it is
repeated; a stream that replaces another writes beside it and then takes over in one step. When the parts hold more than
twice the rows of the table, the next version starts from a part with the whole table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from crown.errors import StateError
from crown.spark.filesystem import names_in, read_file, remove, write_at_once, write_new
from crown.spark.flow.selection import quoted
from crown.spark.sinks.ownership import (
    FORMAT,
    Owner,
    Step,
    check_format,
    data_columns,
    next_batch,
    step,
    stream_id,
)
from crown.spark.sinks.weights import weight_of

_FEW_ROWS = 1 << 20
_MOST_PARTS = 64
_CURRENT = "current.json"
# Parts that no version names are left over from a batch that did not complete.
_PART = re.compile(r"(part|whole)-([0-9a-f]{8})-\d{12}")
_VERSION = re.compile(r"\d{12}\.json")


@dataclass(frozen=True)
class Version:
    """`rows` counts the rows of all parts; `live` is how many the table had when they were last counted."""

    parts: tuple[str, ...]
    rows: int
    live: int = 0


class ParquetTarget:
    """The sink: `apply` is for `foreachBatch`, `check` for before the stream starts."""

    def __init__(self, path: str, schema: StructType, checkpoint: str, *, overwrite: bool = False) -> None:
        self._path = path
        self._names = data_columns(schema)
        self._columns = [[name, schema[name].dataType.simpleString()] for name in self._names]
        self._checkpoint = checkpoint
        self._overwrite = overwrite

    def check(self, spark: SparkSession) -> None:
        self._step(stream_id(spark, self._checkpoint), next_batch(self._checkpoint))

    def apply(self, deltas: DataFrame, batch: int) -> None:
        spark = deltas.sparkSession
        stream = stream_id(spark, self._checkpoint) or ""
        todo = self._step(stream, batch)
        store = _Store(self._path, stream)
        if todo is Step.REPEAT:
            # The version may be being read. Spark only needs its operators to run.
            deltas.write.format("noop").mode("overwrite").save()
        else:
            self._add(deltas, batch, store, todo)
        if batch == 0:
            store.remove_others()

    def _add(self, deltas: DataFrame, batch: int, store: _Store, todo: Step) -> None:
        """Write the version of a batch."""
        stream = store.stream
        note = json.dumps({"format": FORMAT, "stream": stream, "columns": self._columns}).encode()
        try:
            version = self._write(deltas, batch, store)
        except Exception:
            self._step(stream, batch)  # a concurrent stream has removed the part: report that, not a missing file
            raise
        if todo is Step.FIRST and not write_new(store.root, _CURRENT, note):
            todo = self._step(stream, batch)  # a concurrent stream committed first
        store.write(batch, version)
        if todo is Step.REPLACE:
            write_at_once(store.root, _CURRENT, note)

    def _step(self, stream: str | None, batch: int) -> Step:
        current = _current(self._path)
        owner = None
        if current is not None:
            owner = Owner(current["stream"], max(_Store(self._path, current["stream"]).versions(), default=-1))
        elif any(_PART.fullmatch(name) is None for name in names_in(self._path)):
            owner = Owner(None, 0)
        todo = step(self._path, owner, stream, batch, overwrite=self._overwrite)
        if current is not None and todo in (Step.NEXT, Step.REPEAT) and current["columns"] != self._columns:
            raise StateError(
                f"the target {self._path} has different columns",
                code="CROWN-SINK-COLUMNS",
                reason=f"it has {_shown(current['columns'])}; the view has {_shown(self._columns)}",
                hint="rename the columns with AS, or use a new checkpoint and materialize(..., overwrite=True)",
            )
        return todo

    def _write(self, deltas: DataFrame, batch: int, store: _Store) -> Version:
        """Return the version that the batch leads to, with all its parts in place."""
        spark = deltas.sparkSession
        before = store.version_before(batch)
        part = f"part-{store.prefix}-{batch:012d}"
        signed = weight_of(deltas.columns)
        columns = [F.col(quoted(name)) for name in self._names]
        changes = deltas.select(*columns, signed.alias(_weight(self._names)))
        changes.write.mode("overwrite").parquet(f"{self._path}/{part}")
        added = spark.read.parquet(f"{self._path}/{part}").count()
        after = Version((*before.parts, part), before.rows + added, before.live)
        many = len(after.parts) > _MOST_PARTS
        if not many and (after.rows <= max(_FEW_ROWS, 2 * after.live) or len(after.parts) == 1):
            return after
        table = _net(spark, self._path, after.parts, self._names)
        live = table.count()
        if not many and 2 * live >= after.rows:
            return replace(after, live=live)
        whole = f"whole-{store.prefix}-{batch:012d}"
        table.write.mode("overwrite").parquet(f"{self._path}/{whole}")
        return Version((whole,), live, live)


def read_materialized(spark: SparkSession, path: str, *, version: int | None = None) -> DataFrame:
    """The table as of the last complete version, or of `version` (the number of a batch). Duplicates are repeated."""
    current = _current(path)
    store = _Store(path, "" if current is None else current["stream"])
    versions = [] if current is None else store.versions()
    if current is None or not versions:
        raise StateError(f"{path} has no version yet", code="CROWN-SINK-EMPTY")
    names = [name for name, _ in current["columns"]]
    weighted = _net(spark, path, store.read(versions[-1] if version is None else version).parts, names)
    weight = F.col(_weight(names))
    wrong = F.raise_error(F.lit(f"[CROWN-SINK-CORRUPT] {path} deletes more rows than it has")).cast("long")
    copies = F.explode(F.sequence(F.lit(1).cast("long"), F.when(weight > 0, weight).otherwise(wrong)))
    return weighted.withColumn(_weight(names), copies).drop(_weight(names))


def current_parts(path: str) -> tuple[list[str], str, tuple[str, ...], int] | None:
    """Return the columns, the weight column, the parts and their rows of the last complete version, if there is one."""
    current = _current(path)
    store = _Store(path, "" if current is None else current["stream"])
    versions = [] if current is None else store.versions()
    if current is None or not versions:
        return None
    names = [name for name, _ in current["columns"]]
    version = store.read(versions[-1])
    return names, _weight(names), version.parts, version.rows


def rows_before(path: str, batch: int) -> int | None:
    """Return how many rows the table had before a batch; None if it was never written."""
    current = _current(path)
    if current is None:
        return None
    weight = _weight([name for name, _ in current["columns"]])
    parts = _Store(path, current["stream"]).version_before(batch).parts
    weights = [pq.read_table(f"{path}/{part}", columns=[weight])[weight] for part in parts]
    return sum(pc.sum(column).as_py() or 0 for column in weights)


def _net(spark: SparkSession, path: str, parts: tuple[str, ...], names: Sequence[str]) -> DataFrame:
    signed = spark.read.parquet(*(f"{path}/{part}" for part in parts))
    columns = [F.col(quoted(name)) for name in names]
    weight = _weight(names)
    return signed.groupBy(*columns).agg(F.sum(weight).alias(weight)).where(F.col(weight) != 0)


def _weight(names: Sequence[str]) -> str:
    """Return the name of the column of weights: one that no column of the view has."""
    weight = "_weight"
    while weight in [name.lower() for name in names]:
        weight += "_"
    return weight


def _current(path: str) -> dict[str, Any] | None:
    """Return the stream that the table belongs to, and its columns."""
    text = read_file(f"{path}/_versions", _CURRENT)
    if text is None:
        return None
    note = _read_note(path, text)
    if not isinstance(note.get("stream"), str) or not isinstance(note.get("columns"), list):
        raise _damaged(path, f"the note {_CURRENT} is incomplete")
    return note


def _read_note(path: str, text: bytes) -> dict[str, Any]:
    try:
        note = json.loads(text)
    except ValueError:
        note = None
    if not isinstance(note, dict):
        raise _damaged(path, "a note in _versions is not JSON")
    check_format(path, note.get("format", FORMAT))
    return note


def _damaged(path: str, reason: str) -> StateError:
    return StateError(
        f"the target {path} is damaged",
        code="CROWN-SINK-CORRUPT",
        reason=reason,
        hint="restore it from a copy, or use a new checkpoint and materialize(..., overwrite=True), which replaces it",
    )


def _shown(columns: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)


class _Store:
    """The version files of one stream."""

    def __init__(self, path: str, stream: str) -> None:
        self.root = f"{path}/_versions"
        self.prefix = stream[:8]
        self._table = path
        self.stream = stream
        self._path = f"{self.root}/{stream}"

    def versions(self) -> list[int]:
        names = [name for name in names_in(self._path) if _VERSION.fullmatch(name)]
        return [int(name.removesuffix(".json")) for name in names]

    def version_before(self, batch: int) -> Version:
        earlier = [version for version in self.versions() if version < batch]
        return self.read(earlier[-1]) if earlier else Version((), 0)

    def read(self, version: int) -> Version:
        text = read_file(self._path, _name(version))
        if text is None:
            known = self.versions()
            raise StateError(
                f"there is no version {version}",
                code="CROWN-SINK-VERSION",
                hint=f"versions {known[0]} to {known[-1]} exist" if known else "no batch was written yet",
            )
        data = _read_note(self._table, text)
        try:
            return Version(tuple(data["parts"]), data["rows"], data.get("live", 0))
        except (KeyError, TypeError) as error:
            raise _damaged(self._table, f"the note of version {version} is incomplete") from error

    def write(self, batch: int, version: Version) -> None:
        data = {"format": FORMAT, "parts": version.parts, "rows": version.rows, "live": version.live}
        write_at_once(self._path, _name(batch), json.dumps(data).encode())

    def remove_others(self) -> None:
        """Remove what earlier streams left behind."""
        for name in names_in(self.root):
            if name not in (_CURRENT, self.stream):
                remove(self.root, name)
        for name in names_in(self._table):
            part = _PART.fullmatch(name)
            if part is not None and part[2] != self.prefix:
                remove(self._table, name)


def _name(version: int) -> str:
    return f"{version:012d}.json"
