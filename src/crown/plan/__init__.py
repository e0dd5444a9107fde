"""From a Query to the best join-free Plan, and the facts that explain it.

Start with `model` (the Plan) and `report` (what explain shows).
"""

from __future__ import annotations

from crown.plan.serial import from_json, to_json

__all__ = ["from_json", "to_json"]
