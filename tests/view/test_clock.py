"""Comparisons with now(): rows come and go as the view is told the time; DuckDB compares with the time as a literal."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import crown
from crown.testing.dialect import in_duckdb
from tests.support.followed import Followed
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE e (k BIGINT, ts TIMESTAMP, d DATE); CREATE TABLE f (k BIGINT, ts TIMESTAMP)"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
QUERIES = [
    "SELECT k, ts FROM e WHERE ts > now() - INTERVAL 1 HOUR",
    "SELECT k, ts FROM e WHERE ts >= CURRENT_TIMESTAMP - INTERVAL 1 HOUR AND ts < CURRENT_TIMESTAMP()",
    "SELECT k, ts FROM e WHERE ts BETWEEN now() - INTERVAL 2 HOURS AND now() - INTERVAL 1 HOUR",
    "SELECT k FROM e WHERE now() > ts",
    "SELECT k, d FROM e WHERE d = CURRENT_DATE",
    "SELECT k, d FROM e WHERE d >= CURRENT_DATE() - INTERVAL 1 DAY AND k > 1",
    "SELECT k, ts FROM e WHERE ts > now() - INTERVAL 1 MONTH",
    "SELECT COUNT(*) AS n FROM e WHERE ts > now() - INTERVAL 1 HOUR",
    "SELECT k, COUNT(*) AS n, MAX(ts) AS t FROM e WHERE ts <= now() GROUP BY k",
    "SELECT e.k, e.ts, f.ts AS t FROM e JOIN f ON e.k = f.k WHERE e.ts > now() - INTERVAL 1 HOUR AND f.ts <= now()",
    "SELECT e.k, f.ts FROM e LEFT JOIN (SELECT * FROM f WHERE ts > now() - INTERVAL 1 HOUR) AS f ON e.k = f.k",
    "SELECT k FROM e WHERE EXISTS (SELECT 1 FROM f WHERE f.k = e.k AND f.ts > now() - INTERVAL 1 HOUR)",
    "SELECT k, ts < now() AS past FROM e",
    "SELECT k, COUNT(*) AS n FROM e GROUP BY k HAVING MAX(ts) > now() - INTERVAL 1 HOUR",
    "SELECT DISTINCT k FROM e WHERE ts > now() - INTERVAL 1 HOUR OR k = 1",
]


def changes(rng: random.Random, judge: Judge) -> list[Change]:
    def moment() -> datetime | None:
        return rng.choice([None, *(NOON + timedelta(minutes=10 * i) for i in range(-12, 24))])

    found: list[Change] = []
    for table in ("e", "f"):
        rows = list(judge.tables[table].elements())
        found += [Change(table, row, -1) for row in rng.sample(rows, min(len(rows), rng.randint(0, 3)))]
        for _ in range(rng.randint(0, 5)):
            k, day = rng.randint(1, 3), rng.choice([None, date(2024, 4, 30), date(2024, 5, 1), date(2024, 5, 2)])
            found.append(Change(table, (k, moment(), day) if table == "e" else (k, moment())))
    return found


def ask(judge: Judge, sql: str, now: datetime) -> None:
    """Make the judge answer for this time."""
    text = sql
    for word in ("CURRENT_TIMESTAMP()", "CURRENT_TIMESTAMP", "now()"):
        text = text.replace(word, f"CAST('{now:%Y-%m-%d %H:%M:%S}+00' AS TIMESTAMP)")
    for word in ("CURRENT_DATE()", "CURRENT_DATE"):
        text = text.replace(word, f"DATE '{now:%Y-%m-%d}'")
    judge._question = in_duckdb(text)


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_come_and_go_with_the_time(sql: str, rng: random.Random) -> None:
    now = NOON
    judge = Judge("SELECT 1", SCHEMA)
    ask(judge, sql, now)
    judge.result = judge.recompute()
    judge._shown.clear()
    views = [Followed("one cell", crown.View(sql, SCHEMA)), Followed("2 threads", crown.View(sql, SCHEMA, threads=2))]
    for one in views:
        one._add(one.view.advance(now))
    for number in range(10):
        if number % 3 == 2:
            now += rng.choice([timedelta(minutes=10), timedelta(hours=1), timedelta(days=1), timedelta(minutes=-20)])
            ask(judge, sql, now)
            judge.apply([])
            for one in views:
                one._add(one.view.advance(now if rng.random() < 0.5 else now.replace(tzinfo=None)))
        else:
            batch = changes(rng, judge)
            arrow = judge.as_arrow(batch)
            for one in views:
                one.apply(arrow)
            judge.apply(batch)
        judge.result = judge.recompute()
        for one in views:
            assert one.shown == judge.result, f"{one.name}: deltas do not add up"
            one.check(judge)
        if number == 5:
            for one in views:
                one.reload()


def test_only_what_crosses_the_time_is_in_the_delta() -> None:
    view = crown.View(QUERIES[0], SCHEMA)
    view.advance(NOON)
    view.insert("e", [(i, NOON + timedelta(minutes=i - 59), None) for i in range(60)])
    assert len(view) == 60
    delta = view.advance(NOON + timedelta(minutes=2)).to_pylist()
    assert sorted((row["k"], row["_change_type"]) for row in delta) == [(0, "delete"), (1, "delete")]


def test_a_view_that_was_not_told_the_time_says_so() -> None:
    view = crown.View(QUERIES[0], SCHEMA)
    with pytest.raises(crown.errors.InvalidChange, match="does not know the time") as error:
        view.insert("e", [(1, NOON, None)])
    assert error.value.code == "CROWN-CHANGE-CLOCK"
    with pytest.raises(crown.errors.InvalidChange, match="does not know the time"):
        view.apply({"e": [(1, NOON, None)]})
    view.advance(NOON)
    assert view.insert("e", [(1, NOON, None)]).num_rows == 1


def test_a_query_without_now_has_no_time_to_advance() -> None:
    with pytest.raises(crown.errors.InvalidChange, match="does not read the time"):
        crown.View("SELECT k FROM e", SCHEMA).advance(NOON)


def test_explain_says_what_the_clock_costs() -> None:
    assert "the time of the last advance" in str(crown.View(QUERIES[0], SCHEMA).explain())


def test_a_saved_view_knows_whether_it_was_told_the_time(tmp_path: Path) -> None:
    view = crown.View(QUERIES[0], SCHEMA, threads=2)
    view.save(tmp_path / "timeless")
    with pytest.raises(crown.errors.InvalidChange, match="does not know the time"):
        crown.View.load(tmp_path / "timeless").insert("e", [(1, NOON, None)])
    view.advance(NOON)
    view.save(tmp_path / "timed")
    assert crown.View.load(tmp_path / "timed").insert("e", [(1, NOON, None)]).num_rows == 1


def test_the_views_of_a_database_share_the_time(tmp_path: Path) -> None:
    db = crown.Database(f"{SCHEMA}; CREATE MATERIALIZED VIEW recent AS {QUERIES[0]}", keep="all")
    with pytest.raises(crown.errors.InvalidChange, match="does not know the time"):
        db.insert("e", [(1, NOON, None)])
    db.advance(NOON)
    db.insert("e", [(1, NOON, None)])
    db.execute("CREATE MATERIALIZED VIEW past AS SELECT k FROM e WHERE ts < now()")
    assert (list(db["recent"]), list(db["past"])) == ([(1, NOON)], [])
    deltas = db.advance(NOON + timedelta(hours=2))
    assert (deltas["recent"].num_rows, deltas["past"].num_rows) == (1, 1)
    db.save(tmp_path / "db")
    db = crown.Database.load(tmp_path / "db")
    assert (list(db["recent"]), list(db["past"])) == ([], [(1,)])
    db.drop("recent")
    db.drop("past")
    db.insert("e", [(2, NOON, None)])
    db.execute("CREATE MATERIALIZED VIEW later AS SELECT k FROM e WHERE ts > now()")
    assert list(db["later"]) == []
    db.advance(NOON - timedelta(hours=1))
    assert sorted(db["later"]) == [(1,), (2,)]


def test_a_view_over_a_view_reads_the_time() -> None:
    database = crown.Database(SCHEMA)
    database.execute("CREATE MATERIALIZED VIEW last AS SELECT k, MAX(ts) AS ts FROM e GROUP BY k")
    database.execute("CREATE MATERIALIZED VIEW recent AS SELECT k FROM last WHERE ts > now() - INTERVAL 1 HOUR")
    database.advance(NOON)
    database.apply({"e": [(1, NOON, None), (2, NOON - timedelta(hours=2), None)]})
    assert list(database["recent"]) == [(1,)]
