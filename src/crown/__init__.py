"""Crown keeps the answer of a SQL join query up to date while its tables change.

`View` is the engine in one process; `crown.spark` runs the same plans on a cluster; `crown.errors` has all exceptions.
How it works, in the data's way: `crown.sql` (text to a bound Query), `crown.plan` (Query to a tree of views),
the kernel `crown._kernel` (changes in, deltas out), `crown.view` and `crown.spark` around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crown.errors import CrownError, InvalidChange, PlanError, SchemaError, SqlError, StateError

if TYPE_CHECKING:
    from crown._kernel import __version__
    from crown.view import View

__all__ = [
    "CrownError",
    "InvalidChange",
    "PlanError",
    "SchemaError",
    "SqlError",
    "StateError",
    "View",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """The view and the kernel are loaded when they are first used: errors and plans need neither."""
    if name == "View":
        from crown.view import View

        return View
    if name == "__version__":
        from crown._kernel import __version__

        return __version__
    raise AttributeError(f"module 'crown' has no attribute {name!r}")
