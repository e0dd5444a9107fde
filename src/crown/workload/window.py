"""Windows in a log: rows that leave by themselves have no deletions there, so these are added before measuring."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crown.ir.tables import Table, Window
from crown.workload.lifespan import BEFORE, Moments
from crown.workload.log import TableLog


def with_windows(logs: Mapping[str, TableLog], tables: tuple[Table, ...]) -> dict[str, TableLog]:
    """Return the logs with what their tables' windows expire. A log that has deletions is left as it is."""
    windows = {table.name: table.window for table in tables if table.window is not None}
    result = dict(logs)
    for name, window in windows.items():
        if name in result and not np.any(result[name].change < 0):
            result[name] = _expire(result[name], window)
    return _apart(result) if windows else result


def _expire(log: TableLog, window: Window) -> TableLog:
    """Adds each row's deletion just before the insertion that pushes it out; rows that come too late never were."""
    arrival = np.arange(len(log))
    if window.rows is not None:
        pushed_by = arrival + window.rows
    else:
        assert window.column is not None
        assert window.interval is not None
        value = _numbers(log.rows[window.column])
        newest = np.maximum.accumulate(value) if len(value) else value
        pushed_by = np.searchsorted(newest, value + window.interval, side="right")
    kept = np.flatnonzero(pushed_by > arrival)
    gone = kept[pushed_by[kept] < len(log)]
    source = np.r_[kept, gone]
    moment = np.r_[log.moment[kept], np.maximum(log.moment[pushed_by[gone]] - 1, BEFORE)]
    change = np.r_[log.change[kept], -log.change[gone]]
    # Deletions come in their own order of arrival, which is first in, first out.
    order = np.lexsort((np.r_[kept, gone], change > 0, moment))
    return TableLog(log.rows.take(pa.array(source[order])), change[order], moment[order])


def _numbers(column: pa.ChunkedArray) -> Moments:
    """Days of dates, microseconds of timestamps, integers as they are: the unit of `Window.interval`."""
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", column.type.tz))
    values: Moments = pc.cast(column, pa.int64()).fill_null(0).to_numpy()
    return values


def _apart(logs: dict[str, TableLog]) -> dict[str, TableLog]:
    """Give every change a unique moment: several rows may expire at the same one."""
    moments = np.concatenate([log.moment for log in logs.values()]) if logs else np.empty(0, np.int64)
    rank = np.empty(len(moments), np.int64)
    rank[np.argsort(moments, kind="stable")] = np.arange(len(moments))
    rank[moments == BEFORE] = BEFORE
    result, offset = {}, 0
    for name, log in logs.items():
        result[name] = TableLog(log.rows, log.change, rank[offset : offset + len(log)])
        offset += len(log)
    return result
