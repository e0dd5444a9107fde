"""Intervals as values: compared with DuckDB's arithmetic over months and microseconds after each batch."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import crown
from crown.testing import multiset
from tests.support.three_ways import check_three_ways

SCHEMA = """
CREATE TABLE t (k INT, d INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH,
                x TIMESTAMP_NTZ, y TIMESTAMP_NTZ, p DATE, q DATE);
CREATE TABLE o (d INTERVAL DAY TO SECOND, n INT);
"""
DURATION, MONTHS, MOMENT = pa.duration("us"), pa.month_day_nano_interval(), pa.timestamp("us")
ARROW = {
    "t": pa.schema([("k", pa.int32()), ("d", DURATION), ("m", MONTHS), ("x", MOMENT), ("y", MOMENT),
                    ("p", pa.date32()), ("q", pa.date32())]),
    "o": pa.schema([("d", DURATION), ("n", pa.int32())]),
}  # fmt: skip
HOUR, DAY = 3_600_000_000, 86_400_000_000
# Crown's query, and DuckDB's over tables whose intervals are numbers.
QUERIES = [
    ("SELECT * FROM t", "SELECT * FROM t"),
    ("SELECT d, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY d", "SELECT d, COUNT(*), SUM(k) FROM t GROUP BY d"),
    ("SELECT DISTINCT m FROM t", "SELECT DISTINCT m FROM t"),
    ("SELECT t.k, o.n FROM t JOIN o ON t.d = o.d", "SELECT t.k, o.n FROM t JOIN o ON t.d = o.d"),
    (
        "SELECT t.k, o.n FROM t LEFT JOIN o ON t.x - t.y = o.d",
        "SELECT t.k, o.n FROM t LEFT JOIN o ON epoch_us(t.x) - epoch_us(t.y) = o.d",
    ),
    ("SELECT t.k, o.n FROM t JOIN o ON t.d < o.d", "SELECT t.k, o.n FROM t JOIN o ON t.d < o.d"),
    (
        "SELECT k, MIN(d) AS a, MAX(d) AS b, SUM(d) AS c, AVG(d) AS e, MIN(m) AS f, SUM(m) AS g, AVG(m) AS h, "
        "AVG(m) FILTER (WHERE k > 1) AS i, SUM(DISTINCT d) AS j FROM t GROUP BY k",
        "SELECT k, MIN(d), MAX(d), SUM(d), round(SUM(d)::DOUBLE / COUNT(d))::BIGINT, MIN(m), SUM(m), "
        "round(SUM(m)::DOUBLE / COUNT(m))::BIGINT, CASE WHEN k > 1 THEN round(SUM(m)::DOUBLE / COUNT(m))::BIGINT END, "
        "SUM(DISTINCT d) FROM t GROUP BY k",
    ),
    ("SELECT AVG(d) AS a, SUM(m) AS s FROM t", "SELECT round(SUM(d)::DOUBLE / COUNT(d))::BIGINT, SUM(m) FROM t"),
    (
        "SELECT k, x - y AS e FROM t WHERE x - y > INTERVAL '1' HOUR AND y - x <> INTERVAL '30:00' HOUR TO MINUTE",
        f"SELECT k, epoch_us(x) - epoch_us(y) AS e FROM t WHERE e > {HOUR} AND e <> -30 * {HOUR}",
    ),
    (
        "SELECT p - q AS e, COUNT(*) AS n FROM t GROUP BY p - q",
        f"SELECT (p - q) * {DAY} AS e, COUNT(*) FROM t GROUP BY e",
    ),
    (
        "SELECT k, x + d AS a, x - d AS b, x + m AS c, p - m AS e, p + CAST(d AS INTERVAL DAY) AS f FROM t",
        "SELECT k, x + to_microseconds(d), x - to_microseconds(d), x + to_months(m::INT), "
        f"(p - to_months(m::INT))::DATE, p + trunc(d / {DAY})::INT FROM t",
    ),
    (
        "SELECT d + INTERVAL '1' DAY AS a, -d AS b, d * k AS c, d / 3 AS e, d * 1.5 AS f, m * 2 AS g, m / 2 AS h, "
        "abs(m) AS i, d - INTERVAL '1 day 2 hours' AS j FROM t",
        f"SELECT d + {DAY}, -d, d * k, round(d / 3.0)::BIGINT, round(d * 1.5)::BIGINT, m * 2, round(m / 2.0)::BIGINT, "
        f"abs(m), d - 26 * {HOUR} FROM t",
    ),
    (
        "SELECT EXTRACT(DAY FROM d) AS a, EXTRACT(HOUR FROM d) AS b, EXTRACT(MONTH FROM m) AS c, CAST(m AS INT) AS e "
        "FROM t",
        f"SELECT trunc(d / {DAY})::INT, trunc(d % {DAY} / {HOUR})::INT, m % 12, m FROM t",
    ),
    (
        "SELECT d, k FROM t ORDER BY d DESC, k LIMIT 4",
        "SELECT d, k FROM t ORDER BY d DESC NULLS LAST, k NULLS FIRST LIMIT 4",
    ),
    (
        "SELECT COALESCE(d, INTERVAL '90' MINUTE) AS a, CASE WHEN k = 1 THEN d ELSE x - y END AS b, "
        "k IN (1, 2) AND d IN (INTERVAL '1' DAY, INTERVAL '-1' HOUR) AS c FROM t",
        f"SELECT COALESCE(d, 5400000000), CASE WHEN k = 1 THEN d ELSE epoch_us(x) - epoch_us(y) END, "
        f"k IN (1, 2) AND d IN ({DAY}, -{HOUR}) FROM t",
    ),
    (
        "SELECT k, SUM(d) OVER (PARTITION BY k) AS a, AVG(m) OVER (ORDER BY k) AS b, MAX(m) OVER (ORDER BY k) AS c "
        "FROM t",
        "SELECT k, SUM(d) OVER (PARTITION BY k), round(SUM(m) OVER (ORDER BY k NULLS FIRST)::DOUBLE "
        "/ COUNT(m) OVER (ORDER BY k NULLS FIRST))::BIGINT, MAX(m) OVER (ORDER BY k NULLS FIRST) FROM t",
    ),
    ("SELECT d FROM t EXCEPT SELECT d FROM o", "SELECT d FROM t EXCEPT SELECT d FROM o"),
    ("SELECT k FROM t WHERE d > (SELECT MIN(d) FROM o)", "SELECT k FROM t WHERE d > (SELECT MIN(d) FROM o)"),
    (
        "SELECT array_agg(d) AS a FROM o WHERE n = 1",
        "SELECT COALESCE(list(d ORDER BY d) FILTER (d IS NOT NULL), []) FROM o WHERE n = 1",
    ),
]


def plain(value: Any) -> Any:
    """An interval as its months or microseconds."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if isinstance(value, pa.MonthDayNano):
        return value.months
    return [*map(plain, value)] if isinstance(value, list) else value


def plain_rows(rows: Any) -> Counter[Any]:
    return multiset(tuple(map(plain, row)) for row in rows)


class Tables:
    def __init__(self, seed: int) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {"t": [], "o": []}
        self.source = random.Random(seed)

    def row(self, table: str) -> tuple[Any, ...]:
        source = self.source

        def maybe(value: Any) -> Any:
            return None if source.random() < 0.2 else value

        length = maybe(source.choice([0, 1, -1, DAY, -HOUR, HOUR, 26 * HOUR + 7, -3 * DAY - 1]))
        if table == "o":
            return length, maybe(source.randint(0, 2))
        start = datetime.datetime(2024, 1, 31)
        moments = [maybe(start + datetime.timedelta(hours=source.choice([0, 1, 24, 30]))) for _ in range(2)]
        dates = [maybe(datetime.date(2024, 1, source.choice([1, 30, 31]))) for _ in range(2)]
        return maybe(source.randint(0, 3)), length, maybe(source.choice([0, 1, -1, 7, -14])), *moments, *dates

    def batches(self, count: int) -> Iterator[dict[str, pa.Table]]:
        for _ in range(count):
            changes: dict[str, list[tuple[str, tuple[Any, ...]]]] = {"t": [], "o": []}
            for _ in range(self.source.randint(1, 8)):
                table = self.source.choice(["t", "t", "o"])
                if self.rows[table] and self.source.random() < 0.4:
                    row = self.rows[table].pop(self.source.randrange(len(self.rows[table])))
                    changes[table].append(("delete", row))
                else:
                    self.rows[table].append(self.row(table))
                    changes[table].append(("insert", self.rows[table][-1]))
            yield {
                name: arrow(name, [row for _, row in rows]).append_column("_change_type", [[word for word, _ in rows]])
                for name, rows in changes.items()
                if rows
            }

    def answer(self, sql: str) -> Counter[Any]:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE o (d BIGINT, n INT)")
            connection.execute("CREATE TABLE t (k INT, d BIGINT, m BIGINT, x TIMESTAMP, y TIMESTAMP, p DATE, q DATE)")
            for name, rows in self.rows.items():
                if rows:
                    places = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
            return plain_rows(connection.execute(sql).fetchall())


def arrow(table: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = []
    for field, values in zip(ARROW[table], zip(*rows, strict=True), strict=True):
        if field.type == MONTHS:
            columns.append(pa.array([None if value is None else (value, 0, 0) for value in values], MONTHS))
        elif field.type == DURATION:
            columns.append(pa.array(values, pa.int64()).cast(DURATION))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=ARROW[table])


@pytest.mark.parametrize(("sql", "duck"), QUERIES)
def test_intervals_are_what_duckdb_computes(sql: str, duck: str, tmp_path: Path) -> None:
    for seed in (1, 2):
        check_three_ways(sql, duck, SCHEMA, Tables(seed), tmp_path, f"seed {seed}", plain_rows)


def test_python_values_pandas_and_look_ups() -> None:
    view = crown.View("SELECT d, m FROM t", "CREATE TABLE t (d INTERVAL DAY TO SECOND, m INTERVAL MONTH)")
    day, months = datetime.timedelta(days=-1, microseconds=5), pa.MonthDayNano([14, 0, 0])
    view.insert("t", [(day, months), (None, None)])
    assert multiset(view) == multiset([(day, months), (None, None)])
    assert (day, months) in view
    view.insert("t", pd.DataFrame({"d": pd.to_timedelta(["1 day", "-2 hours"]), "m": [None, None]}))
    view.delete("t", [(None, None), (day, months)])
    assert multiset(view) == multiset([(datetime.timedelta(days=1), None), (datetime.timedelta(hours=-2), None)])
    assert view.to_arrow().schema.types == [DURATION, MONTHS]


def test_the_result_of_a_view_is_the_input_of_another() -> None:
    first = crown.View("SELECT d, m FROM t", SCHEMA)
    first.apply({"t": arrow("t", [(1, DAY, 5, None, None, None, None)])})
    second = crown.View("SELECT SUM(d) AS d, MAX(m) AS m FROM u", {"u": first.to_arrow().schema})
    second.insert("u", first.to_arrow())
    assert [tuple(map(plain, row)) for row in second] == [(DAY, 5)]


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("INTERVAL DAY", datetime.timedelta(hours=1), "not a whole number of days"),
        ("INTERVAL YEAR", pa.MonthDayNano([1, 0, 0]), "not a whole number of years"),
        ("INTERVAL MONTH", pa.MonthDayNano([1, 2, 0]), "with days or hours"),
        ("INTERVAL MONTH", datetime.timedelta(days=30), "with days or hours"),
        ("INTERVAL DAY TO SECOND", pa.MonthDayNano([1, 0, 0]), "with months"),
        ("INTERVAL DAY TO SECOND", 5, "expected INTERVAL DAY TO SECOND, found a Python int"),
        ("INTERVAL DAY TO SECOND", datetime.timedelta(days=106751992), "out of range"),
    ],
)
def test_values_that_do_not_fit_are_refused(type_: str, value: Any, why: str) -> None:
    view = crown.View("SELECT * FROM t", f"CREATE TABLE t (v {type_})")
    with pytest.raises(crown.CrownError, match=why):
        view.insert("t", [(value,)])
    assert len(view) == 0


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT k FROM t WHERE p - q > 5", r"mixes INTERVAL DAY and INT(.|\n)*datediff"),
        ("SELECT k + (p - q) FROM t", r"INT and INTERVAL DAY can't be combined with \+(.|\n)*datediff"),
        ("SELECT d + m FROM t", "INTERVAL DAY TO SECOND and INTERVAL YEAR TO MONTH"),
        ("SELECT d / d FROM t", "can't be combined with /"),
        ("SELECT d % 2 FROM t", "can't be combined with %"),
        ("SELECT date_add(p, d) FROM t", "can't be converted to INT"),
        ("SELECT EXTRACT(HOUR FROM p - q) FROM t", "INTERVAL DAY has no hour"),
        ("SELECT CAST(d AS DOUBLE) FROM t", "can't be converted to DOUBLE"),
        ("SELECT d FROM t WHERE d = '5'", "mixes INTERVAL DAY TO SECOND and STRING"),
        ("SELECT INTERVAL '1 month 2 days' FROM t", "this interval is not understood"),
        ("SELECT INTERVAL '25:61' HOUR TO MINUTE FROM t", "this interval is not understood"),
        ("SELECT INTERVAL '106751992' DAY FROM t", "this interval is too long"),
        ("SELECT CORR(d, d) FROM t", "does not take INTERVAL"),
    ],
)
def test_what_spark_refuses_is_refused(sql: str, why: str) -> None:
    with pytest.raises(crown.CrownError, match=why):
        crown.View(sql, SCHEMA)


def test_elsewhere_the_difference_of_dates_is_a_number() -> None:
    view = crown.View("SELECT p - q AS n, x - y AS e FROM t WHERE p - q > 5", SCHEMA, dialect="duckdb")
    moments = datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 1)
    view.insert("t", [(1, None, None, *moments, datetime.date(2024, 1, 31), datetime.date(2024, 1, 1))])
    assert list(view) == [(30, datetime.timedelta(days=1))]


def test_a_sum_that_overflows_is_an_error() -> None:
    view = crown.View("SELECT SUM(m) AS s FROM t", SCHEMA)
    longest = arrow("t", [(1, None, 2**31 - 1, None, None, None, None)])
    view.apply({"t": longest})
    with pytest.raises(crown.CrownError, match="does not fit"):
        view.apply({"t": longest})
    assert [row[0].months for row in view] == [2**31 - 1]
