"""A table of parquet files by version: each batch adds its deltas, a version is a list of parts, readers see whole
versions.

Version v is named by one small file, `_versions/v.json`, which appears in one step after its parts are complete. A
repeated batch rewrites its own part and version and nothing else. When the parts hold more than twice the rows of the
table, the next version starts from a part with the whole table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crown.errors import StateError
from crown.spark.filesystem import names_in, read_file, write_at_once
from crown.spark.schema import CHANGE_TYPE, COMES, MULTIPLICITY

_WEIGHT = "_weight"
_FEW_ROWS = 1 << 20
_MOST_PARTS = 64


@dataclass(frozen=True)
class Version:
    """`rows` counts the rows of all parts."""

    parts: tuple[str, ...]
    rows: int


class ParquetTarget:
    """The sink: `apply` is for `foreachBatch`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def apply(self, deltas: DataFrame, batch: int) -> None:
        store = _Store(self._path)
        before = store.version_before(batch)
        part = f"part-{batch:012d}"
        weight = F.col(MULTIPLICITY) if MULTIPLICITY in deltas.columns else F.lit(1).cast("long")
        signed = F.when(F.col(CHANGE_TYPE).isin(*COMES), weight).otherwise(-weight)
        changes = deltas.withColumn(_WEIGHT, signed).drop(CHANGE_TYPE, MULTIPLICITY)
        spark = deltas.sparkSession
        changes.write.mode("overwrite").parquet(f"{self._path}/{part}")
        added = spark.read.parquet(f"{self._path}/{part}").count()
        parts, rows = (*before.parts, part), before.rows + added
        if (rows > _FEW_ROWS and len(parts) > 1) or len(parts) > _MOST_PARTS:
            whole = f"whole-{batch:012d}"
            _net(spark, self._path, parts).write.mode("overwrite").parquet(f"{self._path}/{whole}")
            kept = spark.read.parquet(f"{self._path}/{whole}").count()
            if 2 * kept < rows or len(parts) > _MOST_PARTS:
                parts, rows = (whole,), kept
        store.write(batch, Version(parts, rows))


def read_materialized(spark: SparkSession, path: str, *, version: int | None = None) -> DataFrame:
    """The table as of the last complete version, or of `version` (the number of a batch). Duplicates are repeated."""
    store = _Store(path)
    found = store.read(store.latest() if version is None else version)
    weighted = _net(spark, path, found.parts)
    return weighted.withColumn(_WEIGHT, F.explode(F.sequence(F.lit(1), F.col(_WEIGHT)))).drop(_WEIGHT)


def _net(spark: SparkSession, path: str, parts: tuple[str, ...]) -> DataFrame:
    signed = spark.read.parquet(*(f"{path}/{part}" for part in parts))
    columns = [F.col(f"`{name}`") for name in signed.columns if name != _WEIGHT]
    return signed.groupBy(*columns).agg(F.sum(_WEIGHT).alias(_WEIGHT)).where(F.col(_WEIGHT) != 0)


class _Store:
    """The version files."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}/_versions"

    def latest(self) -> int:
        versions = self._versions()
        if not versions:
            raise StateError(f"{self._path} has no version yet", code="CROWN-SINK-EMPTY")
        return versions[-1]

    def version_before(self, batch: int) -> Version:
        earlier = [version for version in self._versions() if version < batch]
        return self.read(earlier[-1]) if earlier else Version((), 0)

    def read(self, version: int) -> Version:
        text = read_file(self._path, _name(version))
        if text is None:
            known = self._versions()
            raise StateError(
                f"there is no version {version}",
                code="CROWN-SINK-VERSION",
                hint=f"versions {known[0]} to {known[-1]} exist" if known else "no batch was written yet",
            )
        data = json.loads(text)
        return Version(tuple(data["parts"]), data["rows"])

    def write(self, batch: int, version: Version) -> None:
        data = json.dumps({"parts": version.parts, "rows": version.rows}).encode()
        write_at_once(self._path, _name(batch), data)

    def _versions(self) -> list[int]:
        return [int(name.removesuffix(".json")) for name in names_in(self._path)]


def _name(version: int) -> str:
    return f"{version:012d}.json"
