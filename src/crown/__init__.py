"""Crown keeps the result of a SQL join query up to date while its tables change.

`View` is the engine in one process; `crown.spark` runs the same plans on a cluster;
`crown.testing` compares a view with DuckDB; `crown.errors` has all exceptions.
How a query flows: `crown.sql` (text to a bound Query), `crown.plan` (Query to a tree of views), the kernel
`crown._kernel` (changes in, deltas out), `crown.view` and `crown.spark` around it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crown.errors import CrownError, InvalidChange, PlanError, SchemaError, SqlError, StateError

if TYPE_CHECKING:
    from crown import spark, testing
    from crown._kernel import __version__
    from crown.functions import function
    from crown.view import Database, View

__all__ = [
    "CrownError",
    "Database",
    "InvalidChange",
    "PlanError",
    "SchemaError",
    "SqlError",
    "StateError",
    "View",
    "__version__",
    "function",
    "spark",
    "testing",
]


def __getattr__(name: str) -> Any:
    """Load the view, the kernel and Spark's side when they are first used: errors and plans need none of them."""
    match name:
        case "Database" | "View":
            return getattr(import_module("crown.view"), name)
        case "function":
            return import_module("crown.functions").function
        case "__version__":
            return import_module("crown._kernel").__version__
        case "spark" | "testing":
            return import_module(f"crown.{name}")  # PySpark and DuckDB are imported by their functions
    raise AttributeError(f"module 'crown' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public, and the modules that were imported: not what this file imports for itself."""
    modules = (name for name, value in globals().items() if isinstance(value, ModuleType))
    return sorted({*__all__, *modules})
