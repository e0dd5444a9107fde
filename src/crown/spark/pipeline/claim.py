"""Whose a checkpoint is: a note beside Spark's own files, written when a query starts, never before it is planned.

It lets a changed pipeline be refused before Spark starts. What counts in the end is the state itself, which `start`
compares.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from crown.errors import StateError
from crown.spark.filesystem import names_in, read_file, write_at_once
from crown.spark.flow.meaning import same
from crown.spark.pipeline.checking import Check
from crown.spark.pipeline.description import PipelineDescription

_NOTE = "crown.json"
_FORMAT = 2


def check_claim(pipeline: PipelineDescription, checked: Check) -> None:
    """Refuse a checkpoint that belongs to another pipeline. One in which no query ever started belongs to nobody."""
    before = _noted(pipeline.checkpoint)
    now = _identity(pipeline, checked)
    if before is None or before.get("view") is None or now["view"] is None:
        return
    _check_format(pipeline.checkpoint, before)
    if before.get("format") != _FORMAT:
        return  # an older note named the plan of its version: `start` compares the state itself
    explanation = checked.explanation
    tables = () if explanation is None else explanation.plan.tables
    is_same = before["view"] == now["view"] or same(str(before.get("query")), pipeline.query, tables)
    if is_same and before.get("cells") == now["cells"]:
        return
    changed = [name for name in {**before, **now} if name != "view" and before.get(name) != now.get(name)]
    differences = "; ".join(f"{name} was {before.get(name)!r}, now {now.get(name)!r}" for name in changed)
    raise StateError(
        f"the checkpoint {pipeline.checkpoint} belongs to another pipeline",
        code="CROWN-STATE-OTHER-PLAN",
        reason=differences,
        hint="use a new checkpoint, or go back to the previous query and options",
    )


def _check_format(checkpoint: str, note: dict[str, Any]) -> None:
    found = note.get("format", 1)
    if not isinstance(found, int) or found > _FORMAT:
        raise StateError(
            f"the note {_NOTE} in the checkpoint {checkpoint} has format {found}; this version of Crown reads 1 to "
            f"{_FORMAT}",
            code="CROWN-STATE-FORMAT",
            hint="use the version of Crown that wrote it, or a newer one",
        )


def write_claim(pipeline: PipelineDescription, checked: Check) -> None:
    try:
        write_at_once(pipeline.checkpoint, _NOTE, json.dumps(_identity(pipeline, checked), indent=1).encode())
    except pa.ArrowException:
        return  # a file system that only Spark knows


def _noted(checkpoint: str) -> dict[str, Any] | None:
    """Return what the note says, if there is one and it counts."""
    try:
        text = read_file(checkpoint, _NOTE)
        if text is None or not names_in(f"{checkpoint}/offsets"):
            return None
        found = json.loads(text)
    except (pa.ArrowException, ValueError):
        return None  # `start` reads the state itself
    return found if isinstance(found, dict) else None


def _identity(pipeline: PipelineDescription, checked: Check) -> dict[str, Any]:
    """`view` and `cells` tell two pipelines apart; the rest says how they differ."""
    return {
        "format": _FORMAT,
        "view": checked.view,
        "query": pipeline.query,
        "cells": pipeline.cells,
        **{f"schema of {t.name}": t.schema for t in pipeline.tables},
        **{f"key of {t.name}": list(t.key) for t in pipeline.tables},
        **{f"profile of {t.name}": t.profile for t in pipeline.tables},
        **{f"window of {t.name}": t.window for t in pipeline.tables},
    }
