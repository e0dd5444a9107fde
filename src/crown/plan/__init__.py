"""From a Query to the best join-free Plan, and the facts that explain it.

Where to start: `model` (the Plan) and `report` (what explain shows); `planner` (a query to stages), `conjunction`
(one conjunction to one tree, as an ordered tuple of passes), `trees` (all free-connex trees and the best), `distribute`
(a plan over many cells), `serial` (JSON), `explain` (text, picture and page).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crown.ir.plan import Plan
from crown.ir.serial import from_json, to_json
from crown.plan.cells.distribute import Distributed, distribute
from crown.plan.explain.report import Report
from crown.plan.explain.text import Explanation, explain

if TYPE_CHECKING:
    from crown.ir.query import Query

__all__ = ["Distributed", "Explanation", "distribute", "explain", "from_json", "plan", "plan_with_report", "to_json"]

# `crown.ir.query` is written in terms of `crown.ir.plan`, so the planner, which reads queries, can't be
# imported while this package is.


def plan(query: Query) -> Plan:
    """The best join-free plan of a query."""
    return plan_with_report(query)[0]


def plan_with_report(query: Query, *, cells: int = 1) -> tuple[Plan, Report]:
    """The best plan, and the facts that explain it (its distribution over `cells` among them)."""
    from crown.plan import planner

    return planner.plan_with_report(query, cells=cells)
