"""Statistics of the nodes of a running stream's trees, which cells report while a browser is connected.

A cell without changes is not called and so reports nothing; its last report is still valid. The stream runs plans with
canonical names (see `crown.spark.checkpoint.canonical`), so a view's trees are matched with them by structure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypedDict

from py4j.protocol import Py4JError

from crown.console.nodes import hot_keys, node_frames
from crown.console.source import HotKey, NodeFrame, NodeRates, node_rates
from crown.ir.plan import Plan, TreeStage
from crown.plan.cells.layout import lay_out
from crown.plan.combine_views import Shared
from crown.spark.flow import jvm
from crown.spark.flow.maintained import MaintainedView


class _Told(TypedDict):
    """What a cell reports."""

    stages: Sequence[Mapping[str, Any]]
    hot_keys: Sequence[Mapping[str, Any]]


class NodeFigures:
    """The nodes of a stream, by its own names; `of_view` has those of a view by the view's."""

    def __init__(self, running: MaintainedView) -> None:
        self._running = running
        self._cells: dict[int, _Told] = {}
        self._nodes: Mapping[str, NodeFrame] = {}
        self._rates: Mapping[str, NodeRates] = {}
        self._matches: dict[str, _Match] = {}

    def watch(self, connected: bool) -> None:
        """Start or stop the reports of cells."""
        if self._running.engine != "jvm":
            return
        with suppress(Py4JError):  # Spark may be ending
            jvm.watch(self._running.spark, self._running.topology.fingerprint, "cells", connected)

    def add(self, loads: Sequence[Mapping[str, Any]], seconds: float) -> None:
        """Take what cells reported with a batch."""
        told = {load["cell"]: json.loads(load["figures"]) for load in loads if load.get("figures")}
        before, is_next = self._nodes, bool(told) and told.keys() <= self._cells.keys()
        if told:
            self._cells = self._cells | told
        elif loads:  # no browser was connected, so the last report is stale
            self._cells = {}
        self._nodes = node_frames([stage for cell in self._cells.values() for stage in cell["stages"]])
        self._rates = node_rates(before, self._nodes, seconds) if is_next else {}

    def of_view(
        self, name: str, plan: Plan
    ) -> tuple[Mapping[str, NodeFrame], Mapping[str, NodeRates], Sequence[HotKey]]:
        """Return the figures of a view's nodes, what they did in the last batch, and hot keys."""
        match = self._matches.get(name)
        if match is None:
            match = self._matches[name] = _Match(plan, self._running)
        nodes = {mine: self._nodes[there] for mine, there in match.nodes.items() if there in self._nodes}
        rates = {mine: self._rates[there] for mine, there in match.nodes.items() if there in self._rates}
        hot = [match.renamed(cell["hot_keys"]) for cell in self._cells.values()]
        return nodes, rates, hot_keys(hot, plan, nodes)

    @property
    def note(self) -> str:
        if self._running.engine != "jvm":
            return "figures need the engines in Spark's JVM"
        known, cells = len(self._cells), self._running.topology.cells
        if not known:
            return "figures come with the next batch"
        if known < cells:
            return f"of {known} of {cells} cells: the others have had no change while this page was open"
        return ""


class _Match:
    """Where the trees of a view's plan are in what a stream runs."""

    def __init__(self, plan: Plan, running: MaintainedView) -> None:
        cell = running.topology.cell
        there = {stage.id: stage for stage in cell.stages}
        places = Shared.of(cell).add(lay_out(plan, running.topology.cells).cell.stages)
        trees = [stage for stage in plan.stages if isinstance(stage, TreeStage)]
        self.nodes: dict[str, str] = {}
        self._names: dict[tuple[str, str], tuple[str, str, dict[str, str]]] = {}
        for tree in trees:
            same = there.get(places.get(tree.id, ""))
            if not isinstance(same, TreeStage):
                continue
            for place, (mine, its) in enumerate(zip(tree.nodes, same.nodes, strict=True)):
                self.nodes[f"{tree.id}/{place}"] = f"{same.id}/{place}"
                variables = dict(zip(its.variables, mine.variables, strict=True))
                self._names[same.id, its.name] = (tree.id, mine.name, variables)

    def renamed(self, hot: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return hot keys by the view's names; those of other views are left out."""
        found = []
        for one in hot:
            if (place := self._names.get((one["stage"], one["node"]))) is not None:
                stage, node, variables = place
                key = {variables[name]: value for name, value in one["key"].items()}
                found.append({**one, "stage": stage, "node": node, "key": key})
        return found
