"""The settings that a session needs or profits from. Crown checks them; it never changes a running session."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from crown.ir.plan import Plan
from crown.spark.required import CHANGELOG, PARTITIONS, check_settings, recommended

JAR = Path(__file__).parent / "jars" / "crown-spark.jar"

_JARS = "spark.jars"
_MASTER = "spark.master"
# How Hadoop writes checkpoints to local disks.
_LOCAL = "spark.hadoop.fs.AbstractFileSystem.file.impl"
_LOCAL_CLASS = "crown.spark.LocalFs"
_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"


class CrownSettingsWarning(UserWarning):
    """A setting that costs speed but not correctness."""


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
        # Hadoop's local file system already writes checksums; Spark's would be two more files for
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
    check_settings(lambda name: spark.conf.get(name, None), plan)


def advise(spark: SparkSession, cells: int) -> None:
    """Warn of settings that only cost speed."""
    partitions = int(spark.conf.get(PARTITIONS, "200") or 200)
    how = f'spark.conf.set("{PARTITIONS}", "{cells}")'
    if partitions % cells:
        _warn(f"{PARTITIONS} is {partitions} for {cells} cells: cells may share a task. {how}")
    elif partitions > 4 * cells:
        _warn(f"{PARTITIONS} is {partitions} for {cells} cells: most tasks are empty. {how}")
    if spark.conf.get(CHANGELOG, "false") != "true":
        _warn(f'each batch uploads whole RocksDB files. spark.conf.set("{CHANGELOG}", "true")')


def _warn(message: str) -> None:
    warnings.warn(message, CrownSettingsWarning, stacklevel=4)
