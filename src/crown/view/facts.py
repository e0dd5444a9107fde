"""What a view tells the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from crown import _kernel
from crown.ir.plan import Plan
from crown.plan.explain.report import Report
from crown.view.engines import read_all

Observer: TypeAlias = Callable[[pa.Table], None]


@dataclass(frozen=True)
class ViewFacts:
    """`observe` sets who sees the view's deltas, `sorted` reads the result in its order."""

    plan: Plan
    report: Report | None
    quarantines: bool
    engine: _kernel.Engine
    sorted: Callable[[], pa.Table]
    observe: Callable[[Observer | None], None]

    def stats(self) -> dict[str, Any]:
        return self.engine.stats()

    def hot_keys(self, limit: int) -> list[list[dict[str, Any]]]:
        return self.engine.hot_keys(limit)

    def page(self, offset: int, limit: int) -> pa.Table:
        """Return rows of the enumeration; `_multiplicity` only where the view has duplicates."""
        rows = read_all(self.engine.page(offset, limit))
        return rows if self.plan.bag else rows.drop_columns(["_multiplicity"])

    def rejected(self) -> pa.Table:
        """Return the rejected changes that nobody has taken yet, and leave them there."""
        return read_all(self.engine.rejected(keep=True))
