"""The data that the console shows for a view of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from crown import _kernel
from crown.errors import CrownError
from crown.ir.plan import MapStage, Plan, SetOperationStage, TreeStage
from crown.plan.explain.report import Report
from crown.view.console import DeltaObserver, enumerated, not_taken
from crown.view.database.catalog import CatalogView
from crown.view.interface import DatabaseStats


class DatabaseViewFacts:
    """Statistics by stage of the view's own plan, with what it shares; they no longer change once it is dropped.

    `observe` adds an observer of the view's deltas, and returns a function that removes it. `deltas` says whether the
    database has some: then trees know how many rows they have.
    """

    def __init__(
        self,
        view: CatalogView,
        engine: _kernel.Engine,
        *,
        reads: tuple[str, ...],
        quarantines: bool,
        deltas: bool,
        stats: Callable[[], DatabaseStats],
        sorted: Callable[[], pa.Table],
        lookup: Callable[..., pa.Table],
        observe: Callable[[DeltaObserver], Callable[[], None]],
    ) -> None:
        self.plan: Plan = view.plan
        self.report: Report | None = view.report
        self.quarantines = quarantines
        self._reads = reads
        self.sorted = sorted
        self.lookup = lookup
        self._view = view
        self._engine = engine
        self._stats = stats
        self._is_counted = _is_counted(view.plan, deltas)
        self.observe = observe

    @property
    def more(self) -> Mapping[str, Any]:
        """The tables and views that it reads, and the views that it shares a part with."""
        found = self._stats()["views"].get(self._view.name)
        return {"reads": self._reads, "shared": [] if found is None else found["shared_with"]}

    def stats(self, measured: Mapping[str, Any]) -> Mapping[str, Any]:
        names = self._names
        stages = [stage for stage in measured["stages"] if stage["id"] in names]
        nodes = [node for stage in stages for node in stage["nodes"]]
        return {
            "result_rows": self._rows(),
            "bytes": sum(stage["bytes"] for stage in stages),
            "batches": measured["batches"],
            "changes": measured["changes"],
            "rejects": measured["rejects"],
            "stages": [{**stage, "id": names[stage["id"]]} for stage in stages],
            "updates": sum(node["updates"] for node in nodes),
            "counter_changes": sum(node["counter_changes"] for node in nodes),
        }

    def hot_keys(self, measured: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        names = self._names
        return [[{**hot, "stage": names[hot["stage"]]} for hot in cell if hot["stage"] in names] for cell in measured]

    def page(self, offset: int, limit: int) -> pa.Table:
        return enumerated(self._engine, self.plan, offset, limit, self._view.name)

    def rejected(self) -> pa.Table:
        return not_taken(self._engine)

    @property
    def _names(self) -> Mapping[str, str]:
        """The stages of the view's plan, by those of the database."""
        return {place: stage for stage, place in self._view.places.items()}

    def _rows(self) -> int | None:
        if not self._is_counted:
            return None
        try:
            return self._engine.count(view=self._view.name)
        except CrownError:
            return None


def _is_counted(plan: Plan, deltas: bool) -> bool:
    """Whether the number of rows is known without reading them."""
    stages = {stage.id: stage for stage in plan.stages}
    last = plan.stages[-1]
    while isinstance(last, MapStage) and last.filter is None and last.input in stages:
        last = stages[last.input]
    return deltas if isinstance(last, TreeStage) else not isinstance(last, MapStage | SetOperationStage)
