"""`crown.testing` as users call it: every form of batch and schema, and every kind of disagreement."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pytest

import crown
from crown.errors import CrownError
from crown.sql.schema.schema import SchemaLike
from crown.testing import Batch, Change, Judge, check
from crown.view.interface import Rows

ROOT = Path(__file__).parents[2]
SQL = "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON s.k = r.b GROUP BY r.a"
SCHEMA = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (k INT PRIMARY KEY, v STRING)"
KEYS = {"s": [(1, "x"), (2, "y")]}


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 1), (1, 2)],
        [{"a": 1, "b": 1}, {"B": 2, "A": 1}],
        pa.table({"a": [1, 1], "b": [1, 2]}),
        pandas.DataFrame({"a": [1, 1], "b": [1, 2]}),
        polars.DataFrame({"b": [1, 2], "a": [1, 1]}),
    ],
    ids=["tuples", "dicts", "arrow", "pandas", "polars"],
)
def test_a_batch_is_what_a_view_takes(rows: Rows) -> None:
    assert list(check(SQL, SCHEMA, [KEYS, {"R": rows}])) == [(1, 2)]


def test_deletions_updates_and_copies() -> None:
    batches: list[Batch] = [
        KEYS,
        [("r", [{"a": 1, "b": 1, "_multiplicity": 3}])],
        {"r": [{"a": 1, "b": 1, "_change_type": "delete"}]},
        {"s": [{"k": 2, "v": "y", "_change_type": "update_preimage"}, {"k": 2, "v": "z"}]},
        [Change("s", (1, "x"), -1)],
    ]
    assert list(check(SQL, SCHEMA, batches)) == []


def test_rows_with_nested_values_and_nan() -> None:
    """They are deleted by rows that are equal, not the same."""
    schema = "CREATE TABLE t (l ARRAY<INT>, s STRUCT<p: INT, q: STRING>, x DOUBLE)"
    rows = [([1, 2], {"p": 1, "q": "a"}, float("nan")), ([], {"p": None, "q": "a"}, 0.5)]
    gone = [("t", ([1, 2], {"p": 1, "q": "a"}, float("nan")), -1)]
    view = check("SELECT l, s, x, COUNT(*) AS n FROM t GROUP BY l, s, x", schema, [{"t": rows * 2}, gone])
    assert sorted(row[-1] for row in view) == [1, 2]


@pytest.mark.parametrize(
    "schema",
    [
        {"r": {"a": "int", "b": "int"}, "s": {"columns": {"k": "int", "v": "string"}, "primary_key": ["k"]}},
        {"r": pa.schema({"a": pa.int32(), "b": pa.int32()}), "s": pa.schema({"k": pa.int32(), "v": pa.string()})},
        "CREATE TABLE r (a INT, b INT) PROFILE insert_only; CREATE TABLE s (k INT PRIMARY KEY, v STRING)",
    ],
    ids=["dict", "arrow", "text with a profile"],
)
def test_a_schema_is_what_a_view_takes(schema: SchemaLike) -> None:
    assert list(check(SQL, schema, [KEYS, {"r": [(1, 1)]}])) == [(1, 1)]


def test_a_view_that_missed_a_change_is_seen() -> None:
    view, judge = crown.View(SQL, SCHEMA), Judge(SQL, SCHEMA)
    judge.follow(view, KEYS)
    judge.apply({"r": [(1, 1)]})
    with pytest.raises(AssertionError, match=r"full result\n  missing: \(1, 1\)") as failure:
        judge.follow(view, {"r": [(2, 1)]})
    assert "crown.testing.check(sql, schema, batches)" in str(failure.value)


def test_views_of_the_schema_are_there_too() -> None:
    schema = SCHEMA + "; CREATE VIEW named (key, label) AS SELECT k, v FROM s WHERE k > 1"
    assert list(
        check("SELECT r.a, n.label FROM r JOIN named n ON n.key = r.b", schema, [KEYS, {"r": [(1, 1), (1, 2)]}])
    ) == [(1, "y")]


def test_a_window_is_refused() -> None:
    view = crown.View("SELECT a FROM r", "CREATE TABLE r (a INT)", windows={"r": 2})
    with pytest.raises(CrownError, match="has a window"):
        Judge("SELECT a FROM r", "CREATE TABLE r (a INT)").follow(view, {"r": [(1,)]})


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(CrownError, match="there is no table q"):
        check(SQL, SCHEMA, [{"q": [(1, 1)]}])


def test_without_duckdb_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from crown.testing import check\n"
        "check('SELECT a FROM r', 'CREATE TABLE r (a INT)', [])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "[CROWN-NOT-INSTALLED] the judge needs DuckDB" in finished.stderr
    assert "crown-ivm[testing]" in finished.stderr


def test_the_example_passes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "examples" / "testing")]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert finished.returncode == 0, finished.stdout
    assert "2 passed" in finished.stdout


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EVENTS = "CREATE TABLE e (k INT, ts TIMESTAMP); CREATE TABLE p (k INT, ts TIMESTAMP, price INT)"
AT = {minutes: NOON + timedelta(minutes=minutes) for minutes in (-90, -30, -7, 0, 3, 60)}
ARRIVING: list[Batch] = [
    {"e": [(1, AT[-90]), (1, AT[-30]), (2, AT[-7]), (2, None)]},
    {"p": [(1, AT[-30], 5), (1, AT[-90], 4), (2, AT[0], 6)]},
    [("e", (1, AT[-90]), -1), ("p", (1, AT[-30], 5), -1)],
]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, TUMBLE_END(ts, INTERVAL '1' HOUR) AS e, COUNT(*) AS n "
        "FROM e GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)",
        "SELECT window.start AS s, window.end AS e, COUNT(*) AS n FROM e GROUP BY window(ts, '1 hour', '25 minutes')",
        "SELECT window_start, COUNT(*) AS n FROM "
        "TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '12' MINUTE)) GROUP BY window_start",
        "SELECT e.k, e.ts, p.price FROM e ASOF JOIN p ON e.k = p.k AND e.ts >= p.ts",
        "SELECT e.k, e.ts, p.price FROM e ASOF LEFT JOIN p ON e.k = p.k AND e.ts <= p.ts",
    ],
)
def test_windows_of_time_and_asof_joins_are_judged(sql: str) -> None:
    check(sql, EVENTS, ARRIVING)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, COUNT(*) AS n FROM e WHERE ts > now() - INTERVAL 1 HOUR GROUP BY k",
        "SELECT k, CAST(ts AS DATE) = current_date() AS today FROM e WHERE ts < current_timestamp",
    ],
)
def test_queries_that_read_the_time_are_judged(sql: str) -> None:
    view = check(sql, EVENTS, [NOON, ARRIVING[0], AT[60].replace(tzinfo=None), [("e", (1, AT[-90]), -1)]])
    judge = Judge(sql, EVENTS)
    judge.advance(NOON)
    judge.apply(ARRIVING[0])
    with pytest.raises(AssertionError, match=r"datetime\(2024, 5, 1, 12, 0, tzinfo"):
        judge.check_result(view.to_arrow())


def test_a_query_that_duckdb_lacks_is_refused() -> None:
    with pytest.raises(CrownError, match="DuckDB can't answer this query") as caught:
        check("SELECT xxhash64(k) AS h FROM e", EVENTS, [])
    assert caught.value.code == "CROWN-ARGUMENT" and "xxhash64" in str(caught.value)
