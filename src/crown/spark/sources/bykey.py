"""Interpret records that a source marks with `_keyed_record` by the table's primary key.

With a key, deleted rows are identified by it alone: a source that marks records can't guarantee the other columns.
Without a key, marked records are invalid.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crown.changes import CHANGE_TYPE, DELETIONS
from crown.ir.tables import Table
from crown.spark.schema import CORRUPT, KEYED_RECORD


def by_key(frame: DataFrame, table: Table) -> DataFrame:
    """Return the changes of a table, where their source marks records; any others as they are."""
    if KEYED_RECORD not in frame.columns:
        return frame
    mark = F.col(KEYED_RECORD)
    if not table.primary_key:
        corrupt = F.coalesce(F.col(CORRUPT), mark)
        # The empty mark is on further rows of a record.
        return frame.where(mark.isNull() | (mark != "")).withColumn(CORRUPT, corrupt).drop(KEYED_RECORD)
    key = {name.lower() for name in table.primary_key}
    goes = F.col(CHANGE_TYPE).isin(*DELETIONS)
    others = [field for field in table.columns if field.name.lower() not in key]
    told = {field.name: F.when(~goes, F.col(f"`{field.name}`")) for field in others}
    return frame.withColumns(told).drop(KEYED_RECORD) if told else frame.drop(KEYED_RECORD)
