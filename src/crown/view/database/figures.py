"""Statistics of a database by table, stage and view."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, cast

from crown.view.interface import DatabaseStats, ViewStats


def figures(found: Mapping[str, Any], views: Mapping[str, Set[str]]) -> DatabaseStats:
    """Arrange the kernel's statistics: each stage once, with the views that read it; each view with what it reads.

    `views` has the stages of each view. With several cells, the parts of a stage are added up.
    """
    stages = _stages(found)
    for stage in stages:
        stage["shared_by"] = [name for name, own in views.items() if stage["id"] in own]
    described: dict[str, ViewStats] = {}
    for name, own in views.items():
        read = [stage for stage in stages if stage["id"] in own]
        described[name] = {
            "stages": [stage["id"] for stage in read],
            "rows": sum(stage["rows"] for stage in read),
            "bytes": sum(stage["bytes"] for stage in read),
            "own_bytes": sum(stage["bytes"] for stage in read if len(stage["shared_by"]) == 1),
            "shared_with": sorted({other for stage in read for other in stage["shared_by"]} - {name}),
        }
    rest = {key: found[key] for key in DatabaseStats.__annotations__ if key in found}
    strings = [part.get("interner", {}) for part in (found.get("engines") or {"engine": found}).values()]
    interner = {key: sum(part.get(key, 0) for part in strings) for key in dict.fromkeys(k for p in strings for k in p)}
    return cast(DatabaseStats, {**rest, "interner": interner, "views": described, "stages": stages})


def _stages(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = found.get("engines") or {"engine": found}
    stages: dict[str, dict[str, Any]] = {}
    for part in parts.values():
        for stage in part["stages"]:
            known = stages.setdefault(stage["id"], {**stage, "rows": 0, "bytes": 0, "nodes": []})
            known["rows"] += stage["rows"]
            known["bytes"] += stage["bytes"]
            known["nodes"] = _added(known["nodes"], stage.get("nodes", []))
    return list(stages.values())


def _added(known: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the figures of nodes."""
    if not known:
        return [dict(node) for node in more]
    return [
        {key: value if key == "name" else value + other[key] for key, value in node.items()}
        for node, other in zip(known, more, strict=True)
    ]
