"""Deltas and full results of SQL views against DuckDB after every batch."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import crown
from tests.support.judge import Change, Judge, split_delta

GRAPH = "CREATE TABLE g (src BIGINT, dst BIGINT)"
THREE = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d STRING)"

QUERIES = [
    (GRAPH, "SELECT a.src, b.src AS mid, b.dst FROM g a JOIN g b ON a.dst = b.src"),
    (GRAPH, "SELECT DISTINCT a.src, c.dst FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src"),
    (GRAPH, "SELECT a.src, COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src GROUP BY a.src"),
    (GRAPH, "SELECT COUNT(*) AS n, SUM(a.dst) AS s, MIN(b.dst) AS low FROM g a JOIN g b ON a.dst = b.src"),
    (
        GRAPH,
        "SELECT a.src, b.src AS y, c.src FROM g a, g b, g c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src",
    ),
    (GRAPH, "SELECT DISTINCT src FROM g WHERE NOT EXISTS (SELECT 1 FROM g h WHERE h.dst = g.src)"),
    (THREE, "SELECT r.a, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c WHERE r.a > 1"),
    (THREE, "SELECT r.a, s.c, t.d FROM r LEFT JOIN s ON r.b = s.b LEFT JOIN t ON s.c = t.c"),
    (
        THREE,
        "SELECT d, MAX(a) AS high, COUNT(DISTINCT r.b) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY d",
    ),
    (THREE, "SELECT b FROM r UNION SELECT b FROM s"),
    (THREE, "SELECT b FROM r EXCEPT SELECT b FROM s"),
    (THREE, "SELECT b FROM r UNION ALL SELECT c FROM s"),
    (THREE, "SELECT a + b AS x, upper(d) AS u FROM r JOIN t ON r.a = t.c"),
    (THREE, "SELECT r.a, round(avg(s.c)) m, ceil(sum(s.c) / 2) h FROM r JOIN s ON r.b = s.b GROUP BY r.a"),
    (
        THREE,
        "SELECT r.b, power(r.a, t.c) p, left(t.d, r.a) l FROM r JOIN t ON r.b = t.c WHERE contains(t.d, 'e')",
    ),
    (THREE, "SELECT r.b FROM r JOIN s ON r.b = s.b ORDER BY r.a * s.c DESC, r.b LIMIT 4"),
    (THREE, "SELECT b, count(*) AS n, n * 2 AS m FROM r GROUP BY b ORDER BY max(a), b LIMIT 2"),
    (THREE, "SELECT b, bool_and(a > 1) AS e, bool_or(a > 2) AS s FROM r GROUP BY b"),
]


def random_batches(rng: random.Random, schema: str, batches: int, size: int) -> list[list[Change]]:
    """Insertions and deletions of rows over a few values, NULLs among them."""
    width = {"g": "ii", "r": "ii", "s": "ii", "t": "is"}
    tables = ["g"] if schema == GRAPH else ["r", "s", "t"]
    alive: list[tuple[str, tuple[object, ...]]] = []
    result = []
    for _ in range(batches):
        batch = []
        for _ in range(size):
            if alive and rng.random() < 0.45:
                table, row = alive.pop(rng.randrange(len(alive)))
                batch.append(Change(table, row, -1))
            else:
                table = rng.choice(tables)
                values = [rng.randrange(4) if kind == "i" else rng.choice(["x", "y", "zed"]) for kind in width[table]]
                row = tuple(None if rng.random() < 0.1 else value for value in values)
                alive.append((table, row))
                batch.append(Change(table, row))
        result.append(batch)
    result.append([Change(table, row, -1) for table, row in alive])
    return result


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("schema", "sql"), QUERIES)
def test_oracle_deltas_and_result(schema: str, sql: str, threads: int, rng: random.Random) -> None:
    view, judge = crown.View(sql, schema, threads=threads), Judge(sql, schema)
    for batch in random_batches(rng, schema, 8, 12):
        delta = view.apply(judge.as_arrow(_keep_order(batch)))
        judge.apply(batch)
        judge.check_delta(delta)
        judge.check_result(view.to_arrow())
        judge.check_result(list(view))
        assert len(view) == judge.result.total()


def _keep_order(batch: list[Change]) -> list[Change]:
    """By table: one apply takes whole tables in turn, and rows of different tables do not depend on each other."""
    return sorted(batch, key=lambda change: change.table)


@pytest.mark.parametrize(("schema", "sql"), QUERIES)
def test_oracle_one_delta_per_update(schema: str, sql: str, rng: random.Random) -> None:
    view, judge = crown.View(sql, schema), Judge(sql, schema)
    view.apply({})  # shows the row that a global aggregate has from the start
    judge.apply([])
    tables = {table.name for table in view.plan.tables}
    for batch in random_batches(rng, schema, 2, 12):
        batch = [change for change in _keep_order(batch) if change.table in tables]
        deltas = view.apply(judge.as_arrow(batch), per_update=True)
        for position, change in enumerate(batch):
            judge.apply([change])
            mine = deltas.filter(deltas["_update"].to_numpy() == position).drop_columns("_update")
            came, went = split_delta(mine)
            assert not came & went, "each row once"
            judge.check_delta(mine)


@pytest.mark.parametrize(("schema", "sql"), QUERIES)
def test_saved_views_go_on_where_they_were(schema: str, sql: str, rng: random.Random, tmp_path: Path) -> None:
    view, judge = crown.View(sql, schema), Judge(sql, schema)
    view.apply({})  # shows the row that a global aggregate has from the start
    judge.apply([])
    for batch in random_batches(rng, schema, 5, 10):
        delta = view.apply(judge.as_arrow(_keep_order(batch)))
        judge.apply(batch)
        judge.check_delta(delta)
        view.save(tmp_path / "view")
        view = crown.View.load(tmp_path / "view")
        judge.check_result(view.to_arrow())
        assert len(view) == judge.result.total()
