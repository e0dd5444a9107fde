"""TUMBLE, HOP, CUMULATE, SESSION and Spark's windows: DuckDB computes the same from numbers, after every batch."""

from __future__ import annotations

import datetime
import random

import pytest

import crown
from tests.support.followed import Followed, follow
from tests.support.judge import Change, Judge

SCHEMA = "CREATE TABLE bid (auction BIGINT, price BIGINT, ts TIMESTAMP)"
MINUTE = 60_000_000


def start(minutes: int, back: str = "0") -> str:
    size = minutes * MINUTE
    return f"to_timestamp(((epoch_us(ts) // {size}) * {size} - {back} * {size}) / 1000000)"


def hops(slide: int, size: int) -> str:
    """All windows of all rows, for FROM."""
    count = -(-size // slide)
    begin = start(slide, "i")
    end = f"{begin} + INTERVAL {size} MINUTE"
    rows = f"SELECT *, {begin} AS window_start, {end} AS window_end FROM bid, range({count}) r(i)"
    return f"({rows} WHERE {end} > ts)"


TUMBLE = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE))"
NAMED = "TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTE))"
HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '{0}' MINUTE))"
CUMULATE = "TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '20' MINUTE))"
LENGTHS = "INTERVAL '5' MINUTE, INTERVAL '10' MINUTE"
TEN = f"{start(10)} AS s, {start(10)} + INTERVAL 10 MINUTE AS e"
TUMBLED = f"SELECT {TEN}, COUNT(*) FROM bid WHERE ts IS NOT NULL GROUP BY ALL"
HOPPED = f"SELECT auction, window_start, window_end, SUM(price) FROM {hops(5, 10)} GROUP BY ALL"
GAP = "CASE WHEN ts - LAG(ts) OVER {0} <= INTERVAL 5 MINUTE THEN 0 ELSE 1 END"
SESSIONS = (
    "SELECT {1} MIN(ts), MAX(ts) + INTERVAL 5 MINUTE, COUNT(*), SUM(price) FROM (SELECT *, SUM(gap) OVER {0} AS number "
    f"FROM (SELECT *, {GAP} AS gap FROM bid WHERE ts IS NOT NULL)) GROUP BY {{1}} number"
)
BY_AUCTION, OF_ALL = (
    SESSIONS.format("(PARTITION BY auction ORDER BY ts)", "auction,"),
    SESSIONS.format("(ORDER BY ts)", ""),
)
GROWN = f"{start(20)} + (i + 1) * INTERVAL 5 MINUTE"
CASES = {
    "SELECT auction, SESSION_START(ts, INTERVAL '5' MINUTE) AS s, SESSION_END(ts, INTERVAL '5' MINUTE) AS e, "
    "COUNT(*) AS n, SUM(price) AS t FROM bid GROUP BY auction, SESSION(ts, INTERVAL '5' MINUTE)": BY_AUCTION,
    "SELECT b.auction, session_window.start, session_window.end, COUNT(*) AS n, SUM(price) AS t FROM bid b "
    "GROUP BY b.auction, session_window(b.ts, '5 minutes')": BY_AUCTION,
    "SELECT SESSION_START(ts, INTERVAL '5' MINUTE) AS s, SESSION_END(ts, INTERVAL '5' MINUTE) AS e, COUNT(*) AS n, "
    "SUM(price) AS t FROM (SELECT ts, price FROM bid) GROUP BY SESSION(ts, INTERVAL '5' MINUTE)": OF_ALL,
    "SELECT TUMBLE_START(ts, INTERVAL '10' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '10' MINUTE) AS e, COUNT(*) AS n "
    "FROM bid GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE)": TUMBLED,
    "SELECT window.start, window.end, COUNT(*) AS n FROM bid GROUP BY window(ts, '10 minutes')": TUMBLED,
    "SELECT window(ts, '10 minutes').start AS s, window(ts, '10 minutes').end AS e, COUNT(*) AS n FROM bid "
    "GROUP BY window(ts, '10 minutes')": TUMBLED,
    f"SELECT window_start, window_end, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, window_end": TUMBLED,
    f"SELECT w.window_start, w.window_end, COUNT(*) AS n FROM {NAMED} AS w GROUP BY 1, 2": TUMBLED,
    "SELECT auction, window.start, window.end, SUM(price) AS n FROM bid "
    "GROUP BY auction, window(ts, '10 minutes', '5 minutes')": HOPPED,
    f"SELECT auction, HOP_START(ts, {LENGTHS}) AS s, HOP_END(ts, {LENGTHS}) AS e, SUM(price) AS n FROM bid "
    f"GROUP BY auction, HOP(ts, {LENGTHS})": HOPPED,
    f"SELECT b.auction, window_start, window_end, SUM(b.price) AS n FROM {HOP.format(10)} AS b "
    "GROUP BY b.auction, window_start, window_end": HOPPED,
    f"SELECT window_start, MAX(price) AS n FROM {HOP.format(12)} GROUP BY window_start": (
        f"SELECT window_start, MAX(price) FROM {hops(5, 12)} GROUP BY ALL"
    ),
    f"SELECT window_start, window_end, COUNT(*) AS n FROM {CUMULATE} GROUP BY window_start, window_end": (
        f"SELECT {start(20)} AS s, {GROWN} AS e, COUNT(*) FROM bid, range(4) r(i) WHERE {GROWN} > ts GROUP BY ALL"
    ),
    f"SELECT b.auction, b.price FROM bid b JOIN (SELECT MAX(price) AS most, window_end AS e FROM {TUMBLE} "
    "GROUP BY window_start, window_end) m ON b.price = m.most "
    "WHERE b.ts BETWEEN m.e - INTERVAL '10' MINUTE AND m.e": (
        f"SELECT b.auction, b.price FROM bid b JOIN (SELECT MAX(price) AS most, {TEN} "
        f"FROM bid WHERE ts IS NOT NULL GROUP BY s) m ON b.price = m.most "
        "WHERE b.ts BETWEEN m.e - INTERVAL 10 MINUTE AND m.e"
    ),
}


def changes(rng: random.Random, judge: Judge) -> list[Change]:
    rows = list(judge.tables["bid"].elements())
    gone = rng.sample(rows, min(len(rows), rng.randint(0, 4)))
    noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    times = [
        None,
        *(noon + datetime.timedelta(minutes=m, seconds=s) for m in (0, 5, 9, 10, 12, 19, 31) for s in (0, 7)),
    ]
    came = [(rng.randint(1, 3), rng.randint(1, 9), rng.choice(times)) for _ in range(rng.randint(1, 8))]
    return [*(Change("bid", row, -1) for row in gone), *(Change("bid", row, 1) for row in came)]


@pytest.mark.parametrize("sql", CASES)
def test_windows_of_time(sql: str, rng: random.Random) -> None:
    judge = Judge("SELECT 1", SCHEMA)
    judge._question = CASES[sql]
    judge.result = judge.recompute()
    views = [Followed("one cell", crown.View(sql, SCHEMA)), Followed("2 threads", crown.View(sql, SCHEMA, threads=2))]
    for _ in range(5):
        follow(judge, views, [changes(rng, judge)], reloads=frozenset({0}) if rng.random() < 0.3 else frozenset())


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT SESSION_START(ts, INTERVAL '5' MINUTE) AS s FROM bid", "must be in GROUP BY"),
        ("SELECT 1 FROM bid JOIN bid b USING (price) GROUP BY SESSION(b.ts, INTERVAL '5' MINUTE)", "over a join"),
        (
            "SELECT 1 FROM bid GROUP BY SESSION(ts, INTERVAL '5' MINUTE), SESSION(ts, INTERVAL '6' MINUTE)",
            "two different",
        ),
        ("SELECT 1 FROM bid GROUP BY SESSION(ts, INTERVAL '-5' MINUTE)", "positive"),
        ("SELECT 1 FROM bid GROUP BY SESSION(ts)", "a time and a gap"),
        (
            "SELECT session_window(ts, '5 minutes') AS w FROM bid GROUP BY session_window(ts, '5 minutes')",
            "pair of times",
        ),
        ("SELECT PROCTIME() FROM bid", "not in the data"),
        ("SELECT window(ts, '5 minutes') AS w FROM bid", "pair of times"),
        ("SELECT COUNT(*) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' MONTH)", "equal length"),
        ("SELECT COUNT(*) FROM bid GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' MINUTE)", "do not fit"),
        ("SELECT COUNT(*) FROM bid GROUP BY HOP(ts, INTERVAL '1' SECOND, INTERVAL '1' DAY)", "up to 10,000"),
        (
            "SELECT COUNT(*) FROM bid GROUP BY window(ts, '4 minutes', '2 minutes'), window(ts, '1 hour')",
            "two different",
        ),
        ("SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts)))", "takes a table"),
    ],
)
def test_windows_that_are_refused(sql: str, message: str) -> None:
    with pytest.raises(crown.errors.SqlError, match=message) as error:
        crown.View(sql, SCHEMA)
    assert error.value.code in ("CROWN-SQL-TIME-WINDOW", "CROWN-SQL-INTERVAL")
