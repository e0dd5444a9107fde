"""Views with window functions, ranks, VALUES and all kinds of aggregates share stages, and come and go."""

from __future__ import annotations

import random

import pytest

import crown

SCHEMA = "CREATE TABLE r (k INT, x INT, s STRING); CREATE TABLE q (k INT, y INT)"
# Pairs of views with the same meaning under other names; the second of each is made after rows have
# come.
VIEWS = {
    "running": (
        "SELECT k, x, SUM(x) OVER (PARTITION BY k ORDER BY x, s) AS total FROM r",
        "SELECT b.k AS g, b.x AS v, SUM(b.x) OVER (PARTITION BY b.k ORDER BY b.x, b.s) AS t FROM r AS b",
    ),
    "lag": (
        "SELECT k, x, s, LAG(s) OVER (PARTITION BY k ORDER BY x, s) AS before FROM r",
        "SELECT k, x, s AS total, LAG(s) OVER (PARTITION BY k ORDER BY x, s) AS s FROM r",
    ),
    "first": (
        "SELECT * FROM (SELECT k, x, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, s) AS n FROM r) "
        "WHERE n <= 2",
        "SELECT n, g FROM (SELECT k AS g, x, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, s) AS n FROM r) "
        "WHERE n <= 2",
    ),
    "ranked": (
        "SELECT k, x, RANK() OVER (PARTITION BY k ORDER BY x) AS a, DENSE_RANK() OVER (PARTITION BY k ORDER BY x) AS b "
        "FROM r",
        "SELECT r.x, RANK() OVER (PARTITION BY r.k ORDER BY r.x) AS k FROM r",
    ),
    "spread": (
        "SELECT k, VAR_POP(x) AS v, CORR(x, y) AS c, COUNT(*) FILTER (WHERE y > 2) AS n FROM r JOIN q USING (k) "
        "GROUP BY k",
        "SELECT b.k AS x, VAR_POP(b.x) AS k, CORR(b.x, c.y) AS y, COUNT(*) FILTER (WHERE c.y > 2) AS n "
        "FROM r AS b JOIN q AS c ON b.k = c.k GROUP BY b.k",
    ),
    "ordered": (
        "SELECT k, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS median, MAX(s) AS s FROM r GROUP BY k",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY b.x) AS k, MAX(b.s) AS m, b.k AS g FROM r AS b "
        "GROUP BY b.k",
    ),
    "constants": (
        "SELECT r.k, v.name FROM r JOIN (VALUES (1, 'one'), (2, 'two')) AS v (k, name) ON r.k = v.k",
        "SELECT w.n AS k, b.k AS n FROM r AS b JOIN (VALUES (1, 'one'), (2, 'two')) AS w (g, n) ON b.k = w.g",
    ),
    "recursion": (
        "WITH RECURSIVE p(k, n) AS (SELECT k, 0 FROM r UNION SELECT q.y, p.n + 1 FROM p JOIN q ON q.k = p.k "
        "WHERE n < 3) SELECT k, n FROM p",
        "WITH RECURSIVE z(a, b) AS (SELECT k, 0 FROM r AS x UNION SELECT o.y, z.b + 1 FROM z JOIN q AS o ON o.k = z.a "
        "WHERE z.b < 3) SELECT b AS k, a AS x FROM z",
    ),
    "sets": (
        "SELECT k, s, SUM(x) AS x FROM r GROUP BY ROLLUP (k, s)",
        "SELECT s, k, SUM(x) AS total FROM r GROUP BY ROLLUP (k, s)",
    ),
}


class Both:
    """A database and its views alone."""

    def __init__(self, threads: int) -> None:
        self.database = crown.Database(SCHEMA, threads=threads, keep="all")
        self.alone: dict[str, crown.View] = {}
        self.rows: dict[str, list[tuple[object, ...]]] = {"r": [], "q": []}

    def add(self, name: str, query: str) -> None:
        self.database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        self.alone[name] = crown.View(query, SCHEMA)
        self.alone[name].apply(self.rows)
        self.check()

    def drop(self, name: str) -> None:
        self.database.drop(name)
        del self.alone[name]
        self.check()

    def change(self, source: random.Random) -> None:
        for table, known in self.rows.items():
            gone = source.sample(known, len(known) // 3)
            for row in gone:
                known.remove(row)
            new = [self._row(table, source) for _ in range(6)]
            known += new
            for rows, work in ((gone, "delete"), (new, "insert")):
                deltas = getattr(self.database, work)(table, rows)
                for name, view in self.alone.items():
                    assert sorted(_rows(deltas[name])) == sorted(_rows(getattr(view, work)(table, rows))), name
        self.check()

    def _row(self, table: str, source: random.Random) -> tuple[object, ...]:
        k, value = source.randint(0, 3), source.choice([None, 1, 2, 3, 4, 5])
        return (k, value, source.choice(["a", "b", "ä", None])) if table == "r" else (k, value)

    def check(self) -> None:
        for name, view in self.alone.items():
            assert sorted(map(repr, self.database[name])) == sorted(map(repr, view)), name


def _rows(delta: object) -> list[str]:
    assert hasattr(delta, "to_pylist")
    return [repr(tuple(row.values())) for row in delta.to_pylist()]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", VIEWS)
def test_equal_views_come_and_go(kind: str, threads: int) -> None:
    first, second = VIEWS[kind]
    source = random.Random(7)
    both = Both(threads)
    both.add("before", first)
    both.change(source)
    both.add("after", second)
    both.add("again", first)
    both.change(source)
    both.drop("before")
    both.change(source)
    both.drop("again")
    both.change(source)


@pytest.mark.parametrize("threads", [1, 3])
def test_all_of_them_at_once(threads: int) -> None:
    source = random.Random(8)
    both = Both(threads)
    for kind, (first, _) in VIEWS.items():
        both.add(kind, first)
    both.change(source)
    for kind, (_, second) in VIEWS.items():
        both.add(f"{kind}2", second)
    both.change(source)
    for kind in VIEWS:
        both.drop(kind)
    both.change(source)


def test_a_window_over_a_maintained_view() -> None:
    """The query's only source is below the window."""
    both = Both(1)
    both.database.execute("CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(x) AS x FROM r GROUP BY k")
    both.database.execute(
        "CREATE MATERIALIZED VIEW placed AS SELECT k, RANK() OVER (ORDER BY x DESC) AS place FROM sums"
    )
    both.database.insert("r", [(1, 5, "a"), (2, 7, "a"), (1, 1, "b")])
    assert sorted(both.database["placed"]) == [(1, 2), (2, 1)]
    both.database.insert("r", [(1, 5, "c")])
    assert sorted(both.database["placed"]) == [(1, 1), (2, 2)]


def test_equal_windows_are_kept_once() -> None:
    database = crown.Database(SCHEMA)
    for kind in ("running", "first", "ranked"):
        database.execute(f"CREATE MATERIALIZED VIEW {kind} AS {VIEWS[kind][0]}")
        stages = {stage["id"] for stage in database.stats()["stages"]}
        database.execute(
            f"CREATE MATERIALIZED VIEW {kind}2 AS {VIEWS[kind][0].replace(' AS n', ' AS m').replace('n <=', 'm <=')}"
        )
        assert {stage["id"] for stage in database.stats()["stages"]} == stages
    assert "for running, running2" in str(database.explain())
