"""Plan a Query: the best join-free Plan, and the facts that explain it.

Where to start: `planner` (a query to stages), `tree.passes` (one conjunction to one tree, as an ordered tuple of
passes), `tree.trees` (all free-connex trees and the best), `cells.distribute` (a plan over many cells),
`explain.report` (what explain shows) and `explain` (text, picture and page).
"""

from __future__ import annotations

from collections.abc import Mapping

from crown.ir.plan import Plan
from crown.ir.query import Query
from crown.ir.serial import from_json, to_json
from crown.plan import planner
from crown.plan.cells.distribute import Distributed, distribute
from crown.plan.explain.report import Report
from crown.plan.explain.text import Explanation, explain

__all__ = ["Distributed", "Explanation", "distribute", "explain", "from_json", "plan", "plan_with_report", "to_json"]


def plan(query: Query) -> Plan:
    """Return the best join-free plan of a query."""
    return plan_with_report(query)[0]


def plan_with_report(query: Query, *, cells: int = 1, views: Mapping[str, Plan] | None = None) -> tuple[Plan, Report]:
    """Return the best plan, and the facts that explain it (its distribution over `cells` among them).

    `views` are the plans of the maintained views that the query may read, by name.
    """
    return planner.plan_with_report(query, cells=cells, views=views)
