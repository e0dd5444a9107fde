"""Computed columns: what DuckDB evaluates is what Spark and the kernel would."""

from __future__ import annotations

import datetime
import hashlib

import pyarrow as pa
import pytest

import crown
from tests.workload.test_reduce import ROWS, SCHEMA, VALUES

# Numbers and times have another text in DuckDB than in Spark: they are not compared by their text.
OTHER_TEXT = {"round(f)", "ln(a)", "CAST(d AS TIMESTAMP)", "date_trunc('week', w)"}


@pytest.mark.parametrize("part", range(2))
def test_functions_of_the_kernel_inside_functions_of_the_host(part: int) -> None:
    """MD5 is the host's, and so is then all that it reads. A table has at most 64 columns, so in two parts."""
    texts = [f"CAST({text} AS STRING)" for text in VALUES[part::2] if text not in OTHER_TEXT]
    outside = crown.View(f"SELECT {', '.join(f'md5({t}) AS v{i}' for i, t in enumerate(texts))} FROM t", SCHEMA)
    inside = crown.View(f"SELECT {', '.join(f'{t} AS v{i}' for i, t in enumerate(texts))} FROM t", SCHEMA)
    assert len(outside.plan.tables[0].computed) == len(texts)
    for row in pa.table(ROWS).to_pylist():
        got, expected = outside.insert("t", [row]), inside.insert("t", [row])
        for index, text in enumerate(texts):
            value = expected[f"v{index}"][0].as_py()
            digest = None if value is None else hashlib.md5(value.encode()).hexdigest()
            assert got[f"v{index}"][0].as_py() == digest, (text, row, value)


def test_days_of_the_week_are_counted_as_in_spark() -> None:
    view = crown.View("SELECT d, weekday(d) AS w, hex(dayofweek(d)) AS n FROM t", "CREATE TABLE t (d DATE)")
    sunday = datetime.date(2023, 1, 1)
    view.insert("t", [(sunday + datetime.timedelta(days=i),) for i in range(7)])
    expected = [(6, "1"), (0, "2"), (1, "3"), (2, "4"), (3, "5"), (4, "6"), (5, "7")]
    assert [(w, n) for _, w, n in sorted(view)] == expected


@pytest.mark.parametrize("literal", ["0.1F", "CAST(0.1 AS FLOAT)", "CAST('0.1' AS FLOAT)"])
def test_a_float_equals_its_literal(literal: str) -> None:
    view = crown.View(f"SELECT a FROM t WHERE g = {literal} AND g IN ({literal}, 7)", "CREATE TABLE t (a INT, g FLOAT)")
    view.insert("t", [(1, 0.1), (2, 0.2)])
    assert list(view) == [(1,)]
