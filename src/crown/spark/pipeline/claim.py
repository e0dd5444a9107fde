"""Whose a checkpoint is: a note beside Spark's own files, written when a query starts, never before it is planned."""

from __future__ import annotations

import json
from typing import Any

from crown.errors import StateError
from crown.spark.filesystem import names_in, read_file, write_at_once
from crown.spark.pipeline.description import Pipeline

_NOTE = "crown.json"


def check_claim(pipeline: Pipeline) -> None:
    """Refuse a checkpoint that belongs to another pipeline. One in which no query ever started belongs to nobody."""
    text = read_file(pipeline.checkpoint, _NOTE)
    if text is None or not names_in(f"{pipeline.checkpoint}/offsets"):
        return
    try:
        before = json.loads(text)
        assert isinstance(before, dict)
    except (ValueError, AssertionError) as error:
        raise StateError(
            f"{pipeline.checkpoint}/{_NOTE} is damaged",
            code="CROWN-STATE-CORRUPT",
            hint="restore the checkpoint from a copy, or start again with a new one",
        ) from error
    now = _identity(pipeline)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if changed:
        raise StateError(
            f"the checkpoint {pipeline.checkpoint} belongs to another pipeline",
            code="CROWN-STATE-OTHER-PLAN",
            reason="; ".join(f"{name} was {before.get(name)!r}, is {now.get(name)!r}" for name in changed),
            hint="use a new checkpoint, or go back to what it was made with",
        )


def write_claim(pipeline: Pipeline) -> None:
    write_at_once(pipeline.checkpoint, _NOTE, json.dumps(_identity(pipeline), indent=1).encode())


def _identity(pipeline: Pipeline) -> dict[str, Any]:
    """What a checkpoint is bound to, in words that a refusal can show."""
    return {
        "query": " ".join(pipeline.query.split()),
        "cells": pipeline.cells,
        **{f"schema of {t.name}": t.schema for t in pipeline.tables},
        **{f"key of {t.name}": list(t.key) for t in pipeline.tables},
        **{f"window of {t.name}": t.window for t in pipeline.tables},
    }
