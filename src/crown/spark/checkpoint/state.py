"""Read a checkpoint: its identity, and the state of each operator as of a committed batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crown.errors import CrownError, StateError
from crown.spark.checkpoint.identity import Before, Identity, check_format, compare
from crown.spark.filesystem import names_in

View = tuple[Identity, Mapping[str, str]]  # and the plans of its operators, by name


@dataclass(frozen=True)
class StoredOperator:
    """A stateful operator of Crown. `names` are those of its output columns, `inputs` the views that it reads."""

    spark: SparkSession
    checkpoint: str
    id: int
    batch: int
    name: str
    identity: Mapping[str, Any]
    inputs: tuple[str, ...]
    plan: str
    names: tuple[str, ...]
    ranges: Mapping[int, tuple[int, int]]  # which chunks each cell has, by its key
    fingerprints: frozenset[str]  # of its cells

    @property
    def view(self) -> str:
        return str(self.identity["view"])

    def read(self, variable: str) -> DataFrame:
        return _read(self.spark, self.checkpoint, self.id, self.batch, variable)


@dataclass(frozen=True)
class Accepted:
    """State that the view with this fingerprint may continue from, although its own fingerprint differs."""

    view: str
    operator: StoredOperator


def last_batch(checkpoint: str) -> int | None:
    """Return the last batch that Spark has committed."""
    return max(_numbers(f"{checkpoint}/commits"), default=None)


def stored_operators(spark: SparkSession, checkpoint: str, batch: int) -> list[StoredOperator]:
    """Crown's stateful operators, except those that no change has reached yet."""
    found = spark.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorProperties")
    own = [row.operatorId for row in found.distinct().collect() if _is_crowns(row.operatorProperties)]
    if not own:
        raise _unknown(checkpoint)
    operators = (_stored(spark, checkpoint, id, batch) for id in sorted(own))
    return [operator for operator in operators if operator is not None]


def _is_crowns(properties: str) -> bool:
    found = json.loads(properties or "{}").get("stateVariables", [])
    return {variable["stateName"] for variable in found} == {"meta", "chunks"}


def _stored(spark: SparkSession, checkpoint: str, id: int, batch: int) -> StoredOperator | None:
    meta = _read(spark, checkpoint, id, batch, "meta").select("key.cell", "value.*")
    if "identity" not in meta.columns:
        raise _unknown(checkpoint)
    cells = meta.collect()
    if not cells:
        return None
    # A cell that no change has reached for a long time may still have the old names.
    last = max(cells, key=lambda row: row.batch)
    identity, inputs, names = (json.loads(last[part]) for part in ("identity", "inputs", "names"))
    check_format(identity)
    ranges = {row.cell: (row.first_chunk, row.next_chunk) for row in cells}
    fingerprints = frozenset(row.fingerprint for row in cells)
    where = (spark, checkpoint, id, batch)
    return StoredOperator(*where, last.stage, identity, tuple(inputs), last.plan, tuple(names), ranges, fingerprints)


def check_checkpoint(spark: SparkSession, checkpoint: str, views: Sequence[View]) -> list[Accepted]:
    """Raise an error for a checkpoint of other views, or one whose state can't be read. A new one is fine.

    Return the state that is accepted although its fingerprint differs.

    All state is read once, so that damage is found now and not by a task that Spark retries.
    """
    try:
        batch = last_batch(checkpoint)
    except pa.ArrowException:
        return []  # a file system that only Spark supports: the first task that finds foreign state rejects it
    if batch is None:
        return []
    if not names_in(f"{checkpoint}/state"):
        raise _unknown(checkpoint)
    try:
        operators = stored_operators(spark, checkpoint, batch)
        problems = [problem for operator in operators for problem in _damage(operator)]
    except CrownError:
        raise
    except Exception as error:  # Spark has no class of errors for files that it can't read
        raise _corrupt(checkpoint, _first_line(error)) from error
    accepted = compare_all(operators, views)
    if problems:
        raise _corrupt(checkpoint, problems[0])
    return accepted


def compare_all(operators: Sequence[StoredOperator], views: Sequence[View]) -> list[Accepted]:
    """A view that no change has reached yet has no state, but what has state must be one of the views."""
    known = {identity.view for identity, _ in views}
    stored = {operator.view for operator in operators}
    accepted = []
    for operator in (operator for operator in operators if operator.view not in known):
        # Those that have state already have found it.
        candidates = [view for view in views if view[0].view not in stored] or views
        refusals = [(view, _refusal(operator, view)) for view in candidates]
        if all(refused is not None for _, refused in refusals):
            raise next(refused for _, refused in refusals if refused is not None)
        accepted += [Accepted(view[0].view, operator) for view, refused in refusals if refused is None]
    return accepted


def _refusal(operator: StoredOperator, view: View) -> StateError | None:
    try:
        compare(Before(operator.identity, operator.name, operator.plan), *view)
    except StateError as error:
        return error
    return None


def _damage(operator: StoredOperator) -> Iterator[str]:
    """Missing chunks, and chunks whose bytes differ from what was written."""
    whole = F.crc32("user_map_value.data") == F.col("user_map_value.checksum")
    chunks = operator.read("chunks").select("key.cell", "user_map_key.index", whole.alias("whole"))
    found = {(row["cell"], row["index"]): row["whole"] for row in chunks.collect()}
    for cell, (first, following) in operator.ranges.items():
        for index in range(first, following):
            if (cell, index) not in found:
                yield f"chunk {index} of operator {operator.name} is missing"
            elif not found[cell, index]:
                yield f"chunk {index} of operator {operator.name} does not match its checksum"


def _read(spark: SparkSession, checkpoint: str, id: int, batch: int, variable: str) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", id).option("batchId", batch)
    return reader.option("stateVarName", variable).load(checkpoint)


def _numbers(path: str) -> list[int]:
    return [int(name) for name in names_in(path) if name.isdigit()]


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "java_exception", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _corrupt(checkpoint: str, reason: str) -> StateError:
    return StateError(
        f"the state in the checkpoint {checkpoint} is damaged",
        code="CROWN-STATE-CORRUPT",
        reason=reason,
        hint="restore the checkpoint from a copy, or start over with a new checkpoint and a new target "
        "(materialize(..., overwrite=True) replaces the old one)",
    )


def _unknown(checkpoint: str) -> StateError:
    return StateError(
        f"the checkpoint {checkpoint} belongs to another query, or to an earlier version of Crown",
        code="CROWN-STATE-OTHER-PLAN",
        hint="use a new checkpoint and a new target (materialize(..., overwrite=True) replaces the old one)",
    )
