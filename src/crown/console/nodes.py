"""Statistics of the nodes of trees, from the engines' reports: totals, rates and hot keys. A node is `$stage/place`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crown.console.source import HotKey, NodeFrame
from crown.ir.plan import Plan, TreeStage
from crown.plan.explain.labels import relabelled


def node_frames(stages: Sequence[Mapping[str, Any]]) -> dict[str, NodeFrame]:
    """Return the statistics of each node, from the engines' reports on their stages; summed over cells."""
    sums: dict[str, dict[str, int]] = {}
    for stage in stages:
        for place, node in enumerate(stage.get("nodes", ())):
            mine = sums.setdefault(f"{stage['id']}/{place}", dict.fromkeys(NodeFrame.__dataclass_fields__, 0))
            for name in mine:
                mine[name] += node[name]
    return {mark: NodeFrame(**values) for mark, values in sums.items()}


def hot_keys(cells: Sequence[Sequence[Mapping[str, Any]]], plan: Plan, nodes: Mapping[str, NodeFrame]) -> list[HotKey]:
    """Return those that have clearly more rows than the average key, on either side of the edge; most skewed first."""
    places = {
        (stage.id, node.name): (f"{stage.id}/{place}", f"{stage.id}/{node.parent}")
        for stage in plan.stages
        if isinstance(stage, TreeStage)
        for place, node in enumerate(stage.nodes)
    }
    written = relabelled(plan)
    found: dict[tuple[str, str], HotKey] = {}  # a key whose rows are in several cells is listed once, with the most
    for hot in (hot for cell in cells for hot in cell):
        mark, above = places.get((hot["stage"], hot["node"]), ("", ""))
        if mark not in nodes or above not in nodes or not nodes[mark].keys:
            continue
        side, rows = max(((mark, hot["rows"]), (above, hot["parents"])), key=lambda pair: pair[1])
        average = nodes[side].rows / nodes[mark].keys
        if rows >= 10 and rows > 4 * average:
            key = ", ".join(f"{written(name)} = {value}" for name, value in hot["key"].items())
            if (side, key) not in found or found[side, key].rows < rows:
                found[side, key] = HotKey(side, key, rows, rows / nodes[side].rows, average, hot["parents"])
    return sorted(found.values(), key=lambda hot: -hot.share)[:6]
