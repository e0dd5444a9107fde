"""The ownership of targets: each belongs to one stream, because two would mix their rows.

A target records the stream (the id that Spark stores in the checkpoint) and its last batch together with the rows.
Spark repeats a batch only if it is the last one, and never skips one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from crown.changes import BATCH, CHANGE_TYPE, MULTIPLICITY, POSITION
from crown.errors import SchemaError, StateError
from crown.spark.checkpoint.state import last_batch
from crown.spark.filesystem import read_file

_NEW = "use a new checkpoint and materialize(..., overwrite=True), which replaces the target"


FORMAT = 1  # of what a target records; notes without a number have this format


def check_format(target: str, found: object) -> None:
    """Reject a target whose notes this version can't read."""
    if found != FORMAT:
        raise StateError(
            f"the notes of the target {target} have format {found}; this version of Crown reads {FORMAT}",
            code="CROWN-STATE-FORMAT",
            hint="use the version of Crown that wrote it, or a newer one",
        )


class Step(Enum):
    """What a batch does to a target."""

    FIRST = "the first batch of a new target"
    REPLACE = "the first batch, in the place of what is there"
    NEXT = "the batch after the last one"
    REPEAT = "the last batch once more: nothing to do"


@dataclass(frozen=True)
class Owner:
    """The stream that a target belongs to, None if it was not recorded, and its last batch (-1: none yet)."""

    stream: str | None
    batch: int


def step(target: str, owner: Owner | None, stream: str | None, batch: int, *, overwrite: bool) -> Step:
    """Decide what `batch` of `stream` does to a target of `owner` (None: there is no target), or raise an error.

    `stream` is None for one that has not started yet.
    """
    if owner is None:
        if batch > 0:
            raise _behind(target, batch, -1)
        return Step.FIRST
    if owner.stream is None or owner.stream != stream:
        if batch == 0 and overwrite:
            return Step.REPLACE
        raise StateError(
            f"the target {target} belongs to another stream"
            if owner.stream is not None
            else f"the target {target} has rows that Crown did not write",
            code="CROWN-SINK-OTHER",
            reason="the stream would mix its rows with the existing ones",
            hint="materialize(..., overwrite=True) replaces them"
            if batch == 0
            else f"choose another target, or {_NEW}; stop the other stream first",
        )
    if batch > owner.batch + 1:
        raise _behind(target, batch, owner.batch)
    if batch < owner.batch:
        raise StateError(
            f"the target {target} is ahead of the checkpoint",
            code="CROWN-SINK-AHEAD",
            reason=f"it has batch {owner.batch}, but the checkpoint, perhaps an older copy, continues with {batch}",
            hint=_NEW,
        )
    return Step.REPEAT if batch == owner.batch else Step.NEXT


def _behind(target: str, batch: int, last: int) -> StateError:
    return StateError(
        f"the target {target} lacks batches of this stream",
        code="CROWN-SINK-BEHIND",
        reason=f"the checkpoint continues with batch {batch}, but the target "
        + (f"has none after {last}" if last >= 0 else "has none"),
        hint=_NEW,
    )


def stream_id(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the id of a checkpoint's stream; None before its first start."""
    try:
        text = read_file(checkpoint, "metadata")
    except pa.ArrowException:  # a file system that only Spark knows
        return spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if text is None:
        return None
    try:
        return str(json.loads(text)["id"])
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            f"the checkpoint {checkpoint} is damaged",
            code="CROWN-STATE-CORRUPT",
            reason="its file `metadata` does not name the stream",
            hint="restore the checkpoint from a copy, or use a new one and materialize(..., overwrite=True)",
        ) from error


def next_batch(checkpoint: str) -> int:
    """Return the next batch of a stream."""
    last = last_batch(checkpoint)
    return 0 if last is None else last + 1


def data_columns(schema: StructType) -> list[str]:
    """Return the view's columns among those of its deltas."""
    if CHANGE_TYPE not in schema.names:
        raise SchemaError(
            "this DataFrame is not a stream of deltas",
            code="CROWN-SINK-DELTAS",
            reason=f"it has no column {CHANGE_TYPE}",
            hint="pass the result of crown.spark.maintain",
        )
    names = [name for name in schema.names if name not in (CHANGE_TYPE, MULTIPLICITY, BATCH, POSITION)]
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1:
            raise SchemaError(
                f"the view has two columns {name!r}",
                code="CROWN-SINK-COLUMNS",
                reason="column names are not case-sensitive",
                hint="rename one of them with AS",
            )
    return names
