"""The weight of a delta's row as a Spark column."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from crown.changes import CHANGE_TYPE, INSERTIONS, MULTIPLICITY


def weight_of(columns: Sequence[str]) -> Column:
    """Return the number of copies of a row that are inserted (positive) or deleted (negative) by deltas with these
    columns."""
    weight = F.col(MULTIPLICITY) if MULTIPLICITY in columns else F.lit(1).cast("long")
    return F.when(F.col(CHANGE_TYPE).isin(*INSERTIONS), weight).otherwise(-weight)
