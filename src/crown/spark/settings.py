"""The settings that a session needs or profits from. Crown checks them; it never changes a running session."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from crown.errors import PlanError
from crown.ir.plan import Plan
from crown.ir.serial import encode

# What runs the cells: "jvm" or "python".
ENGINE = "spark.crown.engine"
# How many bytes the engines of an executor's JVM may hold.
MEMORY = "spark.crown.memory"
JAR = Path(__file__).parent / "jars" / "crown-spark.jar"

_JARS = "spark.jars"
_MASTER = "spark.master"
# How Hadoop writes checkpoints to local disks.
_LOCAL = "spark.hadoop.fs.AbstractFileSystem.file.impl"
_LOCAL_CLASS = "crown.spark.LocalFs"
_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_PARTITIONS = "spark.sql.shuffle.partitions"
_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "uct", "+00:00", "utc+00:00", "gmt+00:00"})
# Functions of timestamps that do not depend on the session's time zone.
_ZONELESS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct", "and", "or", "not", "is_null", "in", "case", "coalesce"}
    | {"greatest", "least"}
)
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


class CrownSettingsWarning(UserWarning):
    """A setting that costs speed but not correctness."""


def recommended(cells: int) -> dict[str, str]:
    """Return the settings of a session that maintains views in `cells` cells."""
    return {
        _PROVIDER: _ROCKSDB,
        # Changes are written as they are, not as a whole new RocksDB snapshot per batch.
        _CHANGELOG: "true",
        # Each attempt commits under its own name, so a second attempt can't mix with the first.
        _FORMAT: "2",
        _PARTITIONS: str(cells),
        # Stateful streams are never re-planned; the checks alone would cost time in each batch.
        "spark.sql.adaptive.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        # Unless the limit is the largest number, Spark measures the whole Arrow batch after each
        # row on its way to Python. Batches stay limited by their rows.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        # Each Arrow batch has a fixed cost on both sides of the socket.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.session.timeZone": "UTC",
    }


def configure(builder: SparkSession.Builder, *, cells: int = 2) -> SparkSession.Builder:
    """Return the builder with the recommended settings.

    >>> spark = configure(SparkSession.builder.master("local[2]"), cells=2).getOrCreate()  # doctest: +SKIP
    """
    # A driver that was not started by spark-submit reads only the variable, and would take any
    # python3 of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in recommended(cells).items():
        builder = builder.config(name, value)
    options = _options(builder)
    if str(options.get(_MASTER, "")).startswith("local") and _CHECKSUMS not in options:
        # Hadoop's local file system has checksums of its own; Spark's would be two more files for
        # each.
        builder = builder.config(_CHECKSUMS, "false")
    return with_jar(builder)


def with_jar(builder: SparkSession.Builder) -> SparkSession.Builder:
    """With the jar that runs cells in Spark's JVM, unless the session is Spark Connect's or there is no jar."""
    options = _options(builder)
    if not JAR.exists() or "spark.remote" in options or "SPARK_REMOTE" in os.environ:
        return builder
    jars = [jar for jar in str(options.get(_JARS, "")).split(",") if jar]
    if str(JAR) not in jars:
        builder = builder.config(_JARS, ",".join([*jars, str(JAR)]))
    if _LOCAL not in options and _can_load_local():
        builder = builder.config(_LOCAL, _LOCAL_CLASS)
    return builder


def _options(builder: SparkSession.Builder) -> dict[str, Any]:
    found: dict[str, Any] = getattr(builder, "_options", {})
    return found


def _can_load_local() -> bool:
    """Whether Java has the jar on its class path: it is running with it, or the session will start it."""
    jvm: Any = SparkContext._jvm
    if jvm is None:
        return "PYSPARK_GATEWAY_PORT" not in os.environ
    return type(jvm.crown.spark.LocalFs).__name__ == "JavaClass"


def session(name: str = "crown", *, master: str | None = None, cells: int = 2) -> SparkSession:
    """Return a session made for Crown: `crown.spark.session(master="local[2]", cells=2)`."""
    builder = SparkSession.builder.appName(name)
    return configure(builder if master is None else builder.master(master), cells=cells).getOrCreate()


def require(spark: SparkSession, plan: Plan) -> None:
    """Raise for settings under which a stateful query can't run, isn't safe, or would return a different result."""
    if not str(spark.conf.get(_PROVIDER, "")).endswith("RocksDBStateStoreProvider"):
        raise PlanError(
            "the state store of the session is not supported",
            code="CROWN-SPARK-SETTING",
            reason="Spark's transformWithState needs the RocksDB state store",
            hint=f'spark.conf.set("{_PROVIDER}", "{_ROCKSDB}"), or use crown.spark.configure(builder)',
        )
    if _core(spark, "spark.speculation", "false") == "true" and spark.conf.get(_FORMAT, "1") == "1":
        raise PlanError(
            "speculation is on with state checkpoints of format 1",
            code="CROWN-SPARK-SETTING",
            reason="two attempts of one task would write the same file, and a later version could use either",
            hint=f'spark.conf.set("{_FORMAT}", "2"), or turn spark.speculation off',
        )
    zone = spark.conf.get(_ZONE, "UTC") or "UTC"
    if zone.lower() not in _UTC and _depends_on_zone(plan):
        raise PlanError(
            f"the session's time zone is {zone}",
            code="CROWN-SPARK-SETTING",
            reason="the query extracts parts of timestamps or compares them with strings, which Crown does in UTC",
            hint=f'spark.conf.set("{_ZONE}", "UTC"), or use TIMESTAMP_NTZ columns',
        )


def advise(spark: SparkSession, cells: int) -> None:
    """Warn of settings that only cost speed."""
    partitions = int(spark.conf.get(_PARTITIONS, "200") or 200)
    how = f'spark.conf.set("{_PARTITIONS}", "{cells}")'
    if partitions % cells:
        _warn(f"{_PARTITIONS} is {partitions} for {cells} cells: cells may share a task. {how}")
    elif partitions > 4 * cells:
        _warn(f"{_PARTITIONS} is {partitions} for {cells} cells: most tasks are empty. {how}")
    if spark.conf.get(_CHANGELOG, "false") != "true":
        _warn(f'each batch uploads whole RocksDB files. spark.conf.set("{_CHANGELOG}", "true")')


def _depends_on_zone(plan: Plan) -> bool:
    """Whether a value in the plan depends on the time zone."""
    waiting: list[Any] = [encode(plan)["stages"]]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            kind, arguments = value.get("kind"), value.get("arguments", ())
            if kind == "literal" and value["type"] == "timestamp" and value["value"] is not None:
                return True
            types = {value.get("type"), *(argument.get("type") for argument in arguments)}
            if kind == "call" and value["function"] not in _ZONELESS and "timestamp" in types:
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _core(spark: SparkSession, name: str, default: str) -> str:
    """Return a setting of the application, which a session may not show."""
    return (spark.conf.get(name, default) or default).lower()


def _warn(message: str) -> None:
    warnings.warn(message, CrownSettingsWarning, stacklevel=4)
