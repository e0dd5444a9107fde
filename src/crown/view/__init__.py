"""The embedded engine: a view that lives in this process.

Where to start: `view` (what users call), `inputs` (their data as Arrow), `engines` (one kernel engine, or several
behind a router), `storage` (saved views).
"""

from __future__ import annotations

from crown.view.database.database import Database, DatabaseView
from crown.view.view import View

__all__ = ["Database", "DatabaseView", "View"]
