"""Test your own views: DuckDB recomputes the query after every batch, and both must agree.

    from crown.testing import check

    check(sql, schema, [{"orders": [(1, "ann", 20)]}, {"orders": [(2, "bob", 5)]}])

`check` creates the view and follows it through the batches. If you feed the view yourself, create a `Judge` next to it.
Needs DuckDB: ``pip install 'crown-ivm[testing]'``.
"""

from __future__ import annotations

from crown.testing.batches import Batch, Change
from crown.testing.compare import differences, multiset, normal, split_delta
from crown.testing.judge import Judge, check
from crown.view.interface import Row

__all__ = ["Batch", "Change", "Judge", "Row", "check", "differences", "multiset", "normal", "split_delta"]
