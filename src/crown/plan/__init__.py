"""From a Query to the best join-free Plan, and the facts that explain it.

Where to start: `model` (the Plan) and `report` (what explain shows); `planner` (a query to stages), `conjunction`
(one conjunction to one tree, as an ordered tuple of passes), `trees` (all free-connex trees and the best), `distribute`
(a plan over many cells), `serial` (JSON), `explain` (text, picture and page).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crown.plan.distribute import Distributed, distribute
from crown.plan.explain import Explanation, explain
from crown.plan.model import Plan
from crown.plan.report import Report
from crown.plan.serial import from_json, to_json

if TYPE_CHECKING:
    from crown.sql.query import Query

__all__ = ["Distributed", "Explanation", "distribute", "explain", "from_json", "plan", "plan_with_report", "to_json"]

# `crown.sql.query` is written in terms of `crown.plan.model`, so the planner, which reads queries, can't be
# imported while this package is.


def plan(query: Query) -> Plan:
    """The best join-free plan of a query."""
    return plan_with_report(query)[0]


def plan_with_report(query: Query, *, cells: int = 1) -> tuple[Plan, Report]:
    """The best plan, and the facts that explain it (its distribution over `cells` among them)."""
    from crown.plan import planner

    return planner.plan_with_report(query, cells=cells)
