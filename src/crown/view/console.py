"""The data that the console shows for a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from crown import _kernel
from crown.ir.plan import Plan
from crown.plan.explain.report import Report
from crown.view.engines import read_all

DeltaObserver: TypeAlias = Callable[[pa.Table], None]


def enumerated(engine: _kernel.Engine, plan: Plan, offset: int, limit: int, view: str = "") -> pa.Table:
    """Return rows of the enumeration; `_multiplicity` only where the view has duplicates."""
    rows = read_all(engine.distinct_page(offset, limit, view=view))
    return rows if plan.bag else rows.drop_columns(["_multiplicity"])


def not_taken(engine: _kernel.Engine) -> pa.Table:
    """Return the rejected changes that were not retrieved yet, without removing them."""
    return read_all(engine.rejected(keep=True))


@dataclass(frozen=True)
class StandaloneViewFacts:
    """`observe` adds an observer of the view's deltas and returns how to remove it, `sorted` reads the result in order,
    `lookup` by columns.
    """

    plan: Plan
    report: Report | None
    quarantines: bool
    engine: _kernel.Engine
    sorted: Callable[[], pa.Table]
    lookup: Callable[..., pa.Table]
    observe: Callable[[DeltaObserver], Callable[[], None]]

    @property
    def more(self) -> Mapping[str, Any]:
        return {}

    def stats(self, measured: Mapping[str, Any]) -> Mapping[str, Any]:
        return measured

    def hot_keys(self, measured: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        return measured

    def page(self, offset: int, limit: int) -> pa.Table:
        return enumerated(self.engine, self.plan, offset, limit)

    def rejected(self) -> pa.Table:
        return not_taken(self.engine)
