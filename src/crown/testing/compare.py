"""Compare results of two databases: as multisets, with one form for equal values, and floats up to rounding."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from crown.changes import CHANGE_TYPE, MULTIPLICITY, SIGN
from crown.view.interface import Row


def split_delta(delta: pa.Table) -> tuple[Counter[Row], Counter[Row]]:
    """Return the inserted and the deleted rows of a delta, as multisets."""
    names = [name for name in delta.column_names if name not in (CHANGE_TYPE, MULTIPLICITY)]
    words = delta[CHANGE_TYPE].to_pylist()
    weights = delta[MULTIPLICITY].to_pylist() if MULTIPLICITY in delta.column_names else [1] * len(words)
    came: Counter[Row] = Counter()
    went: Counter[Row] = Counter()
    for word, weight, row in zip(words, weights, tuples(delta.select(names)), strict=True):
        (came if SIGN[word] > 0 else went)[tuple(map(normal, row))] += weight
    return came, went


def multiset(rows: Iterable[Row]) -> Counter[Row]:
    """Return how often each row occurs, its values in their normal form."""
    return Counter(tuple(map(normal, row)) for row in rows)


def normal(value: object) -> object:
    """Return one form for values that SQL holds equal: one NaN, no negative zero, times in UTC, dates as times, bytes.

    >>> normal(-0.0), normal(float("nan")), normal(datetime.date(2024, 1, 1))
    (0.0, 'NaN', datetime.datetime(2024, 1, 1, 0, 0))
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if type(value) is datetime.date:  # a date plus an interval is a date to Spark, a timestamp to DuckDB
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict | list | tuple):
        return _frozen(value)
    return value


def hashable(row: Row) -> Row:
    """Return a row that can be a key: nested values frozen, and one NaN.

    >>> hashable((1, [2, 3], float("nan"))) == hashable((1, [2, 3], float("nan")))
    True
    """
    return tuple(map(_key, row))


def _key(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return math.nan
    return normal(value) if isinstance(value, dict | list | tuple) else value


def _frozen(value: Any) -> tuple[Any, ...]:
    """Return a hashable form of a nested value. Arrow shows a map as a list of pairs, others as a dict."""
    if isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
        value = {normal(key): part for key, part in value}
    if isinstance(value, dict):
        return tuple(sorted(((normal(key), normal(part)) for key, part in value.items()), key=repr))
    return tuple(map(normal, value))


def differences(expected: Counter[Row], got: Counter[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """Return what is missing and what is extra; rows that differ only by rounding of floats count as equal."""
    missing, extra = expected - got, got - expected
    for row in list(missing):
        for other in list(extra):
            if missing[row] and extra[other] and _close(row, other):
                common = min(missing[row], extra[other])
                missing[row] -= common
                extra[other] -= common
    return +missing, +extra


def tuples(rows: pa.Table | Iterable[Row]) -> Iterator[Row]:
    """Return the rows of an Arrow table, or the rows themselves."""
    if not isinstance(rows, pa.Table):
        return iter(rows)
    if not rows.num_columns:
        return iter([()] * rows.num_rows)
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _close(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(_close_values, left, right))


def _close_values(left: Any, right: Any) -> bool:
    inexact = isinstance(left, float) or isinstance(right, float)
    numbers = isinstance(left, int | float | decimal.Decimal) and isinstance(right, int | float | decimal.Decimal)
    if inexact and numbers:
        # Spark's AVG of decimals is a decimal, rounded; DuckDB's is a float.
        places = [v.as_tuple().exponent for v in (left, right) if isinstance(v, decimal.Decimal)]
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=max(1e-9, *(0.51 * 10.0 ** int(e) for e in places), 0.0))
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _close(left, right)
    return bool(left == right)
