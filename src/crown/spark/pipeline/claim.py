"""The owner of a checkpoint: a small file next to Spark's, written when a query starts, never before it is planned.

It allows a changed pipeline to be rejected before Spark starts. The state itself is authoritative; `start` compares it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from crown.errors import StateError
from crown.spark.checkpoint.meaning import same
from crown.spark.filesystem import names_in, read_file, write_at_once
from crown.spark.pipeline.checking import Check
from crown.spark.pipeline.description import PipelineDescription

_NOTE = "crown.json"
_FORMAT = 2


def check_claim(pipeline: PipelineDescription, checked: Check) -> None:
    """Reject a checkpoint that belongs to another pipeline. One in which no query ever started has no owner."""
    before = _noted(pipeline.checkpoint)
    now = _identity(pipeline, checked)
    if before is None or before.get("view") is None or now["view"] is None:
        return
    _check_format(pipeline.checkpoint, before)
    if before.get("format") != _FORMAT:
        return  # an older file named the plan of its version: `start` compares the state itself
    if _same(pipeline, before, now, checked) and before.get("cells") == now["cells"]:
        return
    differences = "; ".join(_differences(before, now))
    raise StateError(
        f"the checkpoint {pipeline.checkpoint} belongs to another pipeline",
        code="CROWN-STATE-OTHER-PLAN",
        reason=differences,
        hint="use a new checkpoint, or go back to the previous queries and options",
    )


def _same(pipeline: PipelineDescription, before: Mapping[str, Any], now: Mapping[str, Any], checked: Check) -> bool:
    if before["view"] == now["view"]:
        return True
    if "query" not in before or "query" not in now or checked.plan is None:
        return False
    return same(str(before["query"]), now["query"], checked.plan.tables, pipeline.dialect)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    told = {"view"}
    if ("query" in before) != ("query" in now):
        told |= {"query", "views", "queries by name"}
        kinds = ("one query", "several views") if "query" in before else ("several views", "one query")
        yield f"it was of {kinds[0]}, now of {kinds[1]}"
    elif "views" in now:
        told.add("views")
        yield from _changed_views(before["views"], now["views"])
    for name in {**before, **now}:
        was, is_ = before.get(name), now.get(name)
        if name not in told and was != is_:
            yield f"{name} was {was!r}, now {is_!r}"


def _changed_views(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in {**before, **now}:
        if name not in now:
            yield f"the view {name} is gone"
        elif name not in before:
            yield f"the view {name} is new"
        elif before[name] != now[name]:
            yield f"the query of view {name} was {before[name]!r}, now {now[name]!r}"


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
    """Return the contents of the file, if it exists and applies."""
    try:
        text = read_file(checkpoint, _NOTE)
        if text is None or not names_in(f"{checkpoint}/offsets"):
            return None
        found = json.loads(text)
    except (pa.ArrowException, ValueError):
        return None  # `start` reads the state itself
    return found if isinstance(found, dict) else None


def _identity(pipeline: PipelineDescription, checked: Check) -> dict[str, Any]:
    """`view` and `cells` distinguish two pipelines; the rest explains how they differ."""
    queries: dict[str, Any] = {"views": pipeline.maintained, "queries by name": pipeline.names}
    if pipeline.alone:
        queries = {"query": pipeline.views[0].query}
    return {
        "format": _FORMAT,
        "view": checked.meaning,
        **queries,
        "cells": pipeline.cells,
        **{f"schema of {t.name}": t.schema for t in pipeline.tables},
        **{f"key of {t.name}": list(t.key) for t in pipeline.tables},
        **{f"profile of {t.name}": t.profile for t in pipeline.tables},
        **{f"window of {t.name}": t.window for t in pipeline.tables},
    }
