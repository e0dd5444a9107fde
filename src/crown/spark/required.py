"""What Crown needs of Spark's settings. This needs no Spark, so a pipeline's settings are checked before it starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from crown.errors import PlanError
from crown.ir.plan import Plan
from crown.ir.serial import encode

# What runs the cells: "jvm" or "python".
ENGINE = "spark.crown.engine"
# How many bytes the engines of an executor's JVM may hold.
MEMORY = "spark.crown.memory"
PARTITIONS = "spark.sql.shuffle.partitions"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

_ENGINES = ("jvm", "python")
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_SPECULATION = "spark.speculation"
_ZONE = "spark.sql.session.timeZone"
_SIZES = ("spark.driver.memory", "spark.executor.memory", "spark.driver.maxResultSize", "spark.executor.memoryOverhead")
_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "uct", "+00:00", "utc+00:00", "gmt+00:00"})
# Functions of timestamps that do not depend on the session's time zone.
_ZONELESS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct", "and", "or", "not", "is_null", "in", "case", "coalesce"}
    | {"greatest", "least"}
)


def recommended(cells: int) -> dict[str, str]:
    """Return the settings of a session that maintains views in `cells` cells."""
    return {
        _PROVIDER: _ROCKSDB,
        # Changes are written as they are, not as a whole new RocksDB snapshot per batch.
        CHANGELOG: "true",
        # Each attempt commits under its own name, so a second attempt can't mix with the first.
        _FORMAT: "2",
        PARTITIONS: str(cells),
        # Stateful streams are never re-planned; the checks alone would cost time in each batch.
        "spark.sql.adaptive.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        # Unless the limit is the largest number, Spark measures the whole Arrow batch after each
        # row on its way to Python. Batches stay limited by their rows.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        # Each Arrow batch has a fixed cost on both sides of the socket.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        _ZONE: "UTC",
    }


def check_settings(setting: Callable[[str], str | None], plan: Plan) -> None:
    """Raise for settings under which a plan can't run, isn't safe, or would return a different result."""
    if not (setting(_PROVIDER) or "").endswith("RocksDBStateStoreProvider"):
        raise PlanError(
            "the state store of the session is not supported",
            code="CROWN-SPARK-SETTING",
            reason="Spark's transformWithState needs the RocksDB state store",
            hint=f"set {_PROVIDER} to {_ROCKSDB}, as crown.spark.configure(builder) does",
        )
    if (setting(_SPECULATION) or "").lower() == "true" and (setting(_FORMAT) or "1") == "1":
        raise PlanError(
            "speculation is on with state checkpoints of format 1",
            code="CROWN-SPARK-SETTING",
            reason="two attempts of one task would write the same file, and a later version could use either",
            hint=f"set {_FORMAT} to 2, or turn {_SPECULATION} off",
        )
    zone = setting(_ZONE) or "UTC"
    if zone.lower() not in _UTC and _depends_on_zone(plan):
        raise PlanError(
            f"the session's time zone is {zone}",
            code="CROWN-SPARK-SETTING",
            reason="the query extracts parts of timestamps or compares them with strings, which Crown does in UTC",
            hint=f"set {_ZONE} to UTC, or use TIMESTAMP_NTZ columns",
        )
    engine_of(setting(ENGINE))
    bytes_of(MEMORY, setting(MEMORY))
    for name in _SIZES:
        _check_size(name, setting(name))


def engine_of(value: str | None) -> str | None:
    """Return what `spark.crown.engine` asks for; None if Crown chooses."""
    if value and value not in _ENGINES:
        raise PlanError(
            f"{ENGINE} is {value!r}", code="CROWN-SPARK-SETTING", hint='"jvm" or "python"; unset, Crown chooses'
        )
    return value or None


def bytes_of(name: str, value: str | None) -> int:
    """Parse a number of bytes in the form that Spark's settings use; 0 if there is none.

    >>> bytes_of(MEMORY, "2g"), bytes_of(MEMORY, "0.5kb"), bytes_of(MEMORY, "1000"), bytes_of(MEMORY, None)
    (2147483648, 512, 1000, 0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", (value or "0").lower())
    if found is None:
        raise PlanError(f"{name} is {value!r}", code="CROWN-SPARK-SETTING", hint='say a size, e.g. "8g"')
    return int(float(found[1]) * (1 << 10 * " kmgt".index(found[2] or " ")))


def _check_size(name: str, value: str | None) -> None:
    """Spark reads these only when it starts, and takes no fractions."""
    if value and re.fullmatch(r"\s*\d+\s*([kmgtp]?b?)\s*", value.lower()) is None:
        raise PlanError(f"{name} is {value!r}", code="CROWN-SPARK-SETTING", hint='say a size, e.g. "8g"')


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
