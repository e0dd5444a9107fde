"""The weight of a delta's row as a Spark column."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from crown.changes import CHANGE_TYPE, INSERTIONS, MULTIPLICITY


def weight_of(columns: Sequence[str]) -> Column:
    """Return the number of inserted copies of a row in deltas with these columns; negative for deleted ones."""
    weight = F.col(MULTIPLICITY) if MULTIPLICITY in columns else F.lit(1).cast("long")
    return F.when(F.col(CHANGE_TYPE).isin(*INSERTIONS), weight).otherwise(-weight)
