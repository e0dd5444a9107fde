"""Placeholder until the end of this commit series."""

from __future__ import annotations

from crown.plan.model import Plan
from crown.plan.report import Distribution


def describe(plan: Plan, cells: int) -> Distribution:
    return Distribution(1, (), (), (), True, "one cell holds everything", ())
