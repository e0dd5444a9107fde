"""The bound query, evaluated naively, gives what DuckDB gives for the SQL text."""

from __future__ import annotations

import functools
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlglot

from crown.errors import SqlError
from crown.ir.query import Query, Top
from crown.sql import load_schema, parse
from crown.sql.schema.schema import Schema
from crown.testing.dialect import in_duckdb
from tests.sql.generate import SCHEMA, random_query, random_tables
from tests.support.judge import differences, multiset
from tests.support.oracle import Rows, ask
from tests.support.reference import evaluate

Tables = dict[str, list[dict[str, Any]]]


@functools.cache
def connection(schema: str) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(config={"threads": 1})
    for statement in sqlglot.transpile(schema, read="spark", write="duckdb"):
        opened.execute(statement)
    return opened


@functools.cache
def loaded(schema: str) -> Schema:
    return load_schema(schema)


def duckdb_answer(sql: str, schema: str, tables: Tables) -> Rows:
    """DuckDB's rows; those of the naive evaluation where DuckDB itself breaks."""
    opened = connection(schema)
    for name, rows in tables.items():
        if name not in sql:
            continue
        opened.execute(f"DELETE FROM {name}")
        if rows:
            row = f"({', '.join('?' * len(rows[0]))})"
            values = [value for r in rows for value in r.values()]
            opened.execute(f"INSERT INTO {name} VALUES {', '.join([row] * len(rows))}", values)
    return ask(opened, in_duckdb(sql), lambda: evaluate(parse(sql, schema), tables))


def _rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Quotients and averages of decimals have Spark's scale here and are doubles in DuckDB."""
    return tuple(round(float(v), 4) if isinstance(v, float | Decimal) else v for v in row)


def check(sql: str, tables: Tables, schema: str = SCHEMA) -> Query:
    query = parse(sql, loaded(schema))
    got = evaluate(query, tables)
    expected = duckdb_answer(sql, schema, tables)
    if isinstance(query.body, Top):
        # Ties are cut differently; the sizes must agree at least.
        assert len(got) == len(expected), sql
        return query
    missing, extra = differences(multiset(map(_rounded, expected)), multiset(map(_rounded, got)))
    assert (missing, extra) == (Counter(), Counter()), f"{sql}\n{tables}"
    return query


WRITTEN = """
SELECT * FROM r
SELECT r.a, s.b FROM r, s WHERE r.a = s.a
SELECT r.a, s.c FROM r JOIN s USING (a)
SELECT * FROM r JOIN s USING (a)
SELECT * FROM r NATURAL JOIN s
SELECT * FROM r LEFT JOIN s USING (a)
SELECT * FROM r RIGHT JOIN s USING (a)
SELECT * FROM r FULL JOIN s USING (a)
SELECT x.a, y.a FROM r x LEFT JOIN r y ON x.a = y.b AND x.b > 1
SELECT x.a, y.a FROM r x LEFT JOIN r y ON x.a = y.b AND y.b > 1 WHERE y.a IS NULL
SELECT x.a, y.a, z.c FROM r x LEFT JOIN r y ON x.a = y.b LEFT JOIN s z ON y.a = z.a
SELECT x.a, y.a, z.c FROM r x LEFT JOIN (r y JOIN s z ON y.a = z.a) ON x.a = y.b
SELECT x.a, q.n FROM r x LEFT JOIN (SELECT a, count(*) n FROM s GROUP BY a) q ON x.a = q.a
SELECT x.a, q.u FROM r x LEFT JOIN (SELECT y.a, z.c u FROM r y JOIN s z ON y.a < z.a) q ON x.a = q.a
SELECT a FROM r WHERE a IN (SELECT a FROM s)
SELECT a FROM r WHERE a NOT IN (SELECT a FROM s)
SELECT a FROM r WHERE a NOT IN (SELECT a FROM s WHERE s.b = r.b)
SELECT a FROM r WHERE a NOT IN (SELECT a FROM s WHERE a IS NOT NULL)
SELECT k FROM t WHERE k NOT IN (SELECT b FROM s)
SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = t.k AND t.v > 1)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s JOIN t ON s.b = t.k WHERE s.a = r.a)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b = r.b)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.a = r.b)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.b))
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND EXISTS (SELECT 1 FROM t WHERE t.k = s.b))
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.b))
SELECT a FROM r WHERE NOT (EXISTS (SELECT 1 FROM s WHERE s.a = r.a) OR b = 2)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s x, s y WHERE x.a = r.a AND x.b < y.b)
SELECT a FROM r WHERE a IN (SELECT a FROM s UNION ALL SELECT k FROM t)
SELECT a FROM r WHERE a NOT IN (SELECT a FROM s UNION SELECT k FROM t)
SELECT a FROM r WHERE a IN (SELECT a FROM s GROUP BY a HAVING count(*) > 1)
SELECT a FROM r WHERE EXISTS (SELECT max(b) FROM s)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s) AND b > 1
SELECT a FROM r WHERE (a, b) IN (SELECT a, b FROM s)
SELECT a FROM r LEFT SEMI JOIN s ON r.a = s.a
SELECT a FROM r LEFT ANTI JOIN s ON r.a = s.a AND r.b = 1
SELECT a, b FROM r WHERE a > (SELECT avg(b) FROM s)
SELECT a, (SELECT max(b) FROM s) m FROM r
SELECT a FROM r WHERE a = (SELECT max(a) FROM s)
SELECT a, count(*) FROM r GROUP BY a HAVING count(*) > (SELECT count(*) FROM t)
SELECT a, sum(b) n FROM r GROUP BY a HAVING n * 2 >= (SELECT sum(b) FROM r) OR n IS NULL
SELECT x.a FROM r x LEFT JOIN s y ON x.a = y.a GROUP BY x.a HAVING count(y.b) < (SELECT max(k) FROM t)
SELECT q.n FROM (SELECT count(*) n FROM r) q, (SELECT count(*) m FROM s) p WHERE q.n > p.m
SELECT q.a FROM (SELECT a, count(*) n FROM r GROUP BY a) q WHERE q.n IN (SELECT b FROM s)
SELECT count(*), sum(a), avg(b), min(a), max(b), count(a), count(DISTINCT b), sum(DISTINCT b) FROM r
SELECT a, count(*) FILTER (WHERE b > 1) n, sum(b) FILTER (WHERE a = 1) FROM r GROUP BY a
SELECT a + 1 x, sum(b) FROM r GROUP BY x
SELECT a + 1, sum(b) + a + 1 FROM r GROUP BY a + 1, a
SELECT a, sum(b) s FROM r GROUP BY 1 HAVING s > 2
SELECT r.a, sum(r.b * s.b) FROM r JOIN s ON r.a = s.a GROUP BY r.a
SELECT DISTINCT r.a, s.b + r.b FROM r JOIN s ON r.a = s.a
SELECT DISTINCT a IS NULL FROM r
SELECT a FROM r UNION SELECT a FROM s
SELECT a FROM r UNION ALL SELECT v FROM t
SELECT a FROM r EXCEPT SELECT a FROM s
SELECT a, b FROM r EXCEPT ALL SELECT a, b FROM s
SELECT a FROM r INTERSECT ALL SELECT a FROM s
SELECT a FROM r INTERSECT SELECT a FROM s UNION ALL SELECT k FROM t
SELECT a, 1.5 x FROM r UNION SELECT k, v FROM t
SELECT q.a, count(*) FROM (SELECT a FROM r UNION ALL SELECT a FROM s) q JOIN t ON q.a = t.k GROUP BY q.a
WITH c AS (SELECT a, count(*) n FROM r GROUP BY a) SELECT x.a, y.n FROM c x JOIN c y ON x.n = y.n
WITH c AS (SELECT a, b FROM r WHERE b > 0), d AS (SELECT a x FROM c) SELECT d.x, c.b FROM d JOIN c ON d.x = c.a
SELECT x.a FROM r x, r y WHERE x.a = y.a AND y.a = 1 AND x.b <> y.b
SELECT x.a FROM r x, s y WHERE x.a = y.a AND x.a = x.b
SELECT x.a FROM r x, s y WHERE x.a = y.a AND x.b = y.a
SELECT x.a FROM r x, t y WHERE x.a = y.v
SELECT x.a, y.v FROM r x, t y WHERE x.a + 1 = y.k * 2
SELECT x.a FROM r x, s y WHERE (x.a = y.a AND x.b = 1) OR (x.a = y.a AND y.b = 2)
SELECT x.a FROM r x, s y WHERE (x.a = 1 AND y.b = 2) OR (x.a = 2 AND y.b = 1)
SELECT x.a FROM r x, s y WHERE x.a <=> y.a
SELECT x.a FROM r x, s y WHERE x.a <=> y.a AND x.b = y.b
SELECT a FROM r WHERE a BETWEEN 1 AND 2 OR b IN (1, NULL)
SELECT a FROM r WHERE NOT (a IN (1, 2))
SELECT CASE WHEN a > 1 THEN 'big' WHEN a IS NULL THEN 'none' ELSE c END FROM r
SELECT coalesce(a, b, 0), nullif(a, 1), if(a > 1, a, b), ifnull(c, 'x'), c || '!' FROM r
SELECT upper(c), length(c), substring(c, 1, 1), trim(c), c LIKE '%a%' FROM r
SELECT a / 2, a % 2, -a, abs(a), b * 1.5, p / 3 FROM r
SELECT p + a, p * p, p - 0.5, sum(p) FROM r GROUP BY p, a
SELECT avg(p), sum(p * v) FROM r JOIN t ON r.a = t.k
SELECT year(d), month(d), extract(day FROM d) FROM t
SELECT d + INTERVAL 1 DAY, date_trunc('month', d) FROM t
SELECT k FROM t WHERE d >= '2020-01-15' AND d < DATE '2020-01-01' + INTERVAL 1 MONTH
SELECT k FROM t WHERE d = '2020-01-15' OR floor(v / 2) = 1
SELECT cast(a AS string), cast(c AS string), cast(v AS int) FROM r, t WHERE r.a = t.k
SELECT 1, NULL x, a FROM r WHERE 1 = 1
SELECT a FROM r WHERE 1 = 0
SELECT count(*) FROM r WHERE FALSE
SELECT a FROM r WHERE NULL
SELECT x.a FROM r x LEFT JOIN s y ON x.a = y.a WHERE y.b = 1
SELECT x.a, count(y.b), count(*) FROM r x LEFT JOIN s y ON x.a = y.a GROUP BY x.a
SELECT x.a FROM r x LEFT JOIN s y ON x.a = y.a WHERE x.b NOT IN (SELECT b FROM s)
SELECT x.a FROM r x LEFT JOIN s y ON x.a = y.a WHERE y.b NOT IN (SELECT v FROM t)
SELECT x.a FROM r x LEFT JOIN s y ON x.a = y.a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = y.b)
SELECT x.a FROM r x FULL JOIN s y ON x.a = y.a AND x.b = y.b WHERE coalesce(x.a, y.a) > 1
SELECT x.a, y.b FROM r x LEFT JOIN s y ON TRUE
SELECT x.a, y.b FROM r x CROSS JOIN s y
SELECT a, b FROM r ORDER BY a DESC, b LIMIT 2
SELECT a, count(*) n FROM r GROUP BY a ORDER BY n DESC, a LIMIT 2 OFFSET 1
SELECT z.a FROM (SELECT a FROM r ORDER BY a LIMIT 2) z JOIN s ON z.a = s.a
SELECT DISTINCT a, count(*) FROM r GROUP BY a, b
SELECT a FROM (SELECT DISTINCT a, b FROM r)
SELECT y.a FROM (SELECT a, b + 1 AS e FROM r) x JOIN s y ON x.e = y.b
SELECT bool_and(a > 1), bool_or(b > 1) FROM r
SELECT a FROM r WHERE a = ANY (SELECT a FROM s)
SELECT a FROM r WHERE b = (SELECT max(b) FROM s WHERE s.a = r.a)
SELECT a FROM r WHERE b < (SELECT 2 * avg(s.b) FROM s, t WHERE s.a = r.a AND s.b = t.k)
SELECT a FROM r x WHERE x.b >= (SELECT min(b) FROM r y WHERE y.a = x.a AND y.c = x.c)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b > (SELECT min(k) FROM t WHERE t.v = s.b))
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b < r.b)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b <> r.b)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b >= r.b)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b < r.b)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b <> r.b)
SELECT a FROM r x WHERE NOT EXISTS (SELECT 1 FROM r y WHERE y.a > x.a)
SELECT x.c FROM r x LEFT JOIN s y ON x.a = y.a WHERE NOT EXISTS (SELECT 1 FROM r z WHERE z.a = x.a AND z.b <> y.b)
SELECT a FROM r WHERE c NOT LIKE '%a%' AND NOT (b NOT BETWEEN 1 AND 2)
SELECT greatest(a, b), least(a, b, 2) FROM r
SELECT round(p, 1), round(p), round(p * 7, -1), round(a, -1), round(v, 1), floor(p), ceil(p), floor(v / 2) FROM r, t
SELECT r.a, round(sum(p * v), 2), round(avg(b), 1), ceil(sum(p)) FROM r JOIN t ON r.a = t.k GROUP BY r.a
SELECT sqrt(abs(a)), exp(b), power(a, 2), sign(a - b), ln(abs(a) + 1), sqrt(a * a + v * v) FROM r, t
SELECT replace(c, 'a', 'bc'), left(c, 1), right(c, 2), ltrim(c), rtrim(c), c || right(c, 1) FROM r
SELECT a FROM r WHERE startswith(c, 'a') OR contains(c, 'b') OR endswith(c, 'c')
SELECT x.c FROM r x, r y WHERE x.a = y.b AND contains(x.c, y.c)
SELECT date_add(d, 3), date_sub(d, k), datediff(d, DATE '2020-01-10'), d - 4, quarter(d) FROM t
SELECT x.k, datediff(x.d, y.d) FROM t x, t y WHERE x.v = y.v AND datediff(x.d, y.d) > 1
SELECT date_trunc('year', d), date_trunc('quarter', d), date_trunc('week', d), hour(d), trunc(d, 'month') FROM t
SELECT date_trunc('month', d) m, count(*) FROM t GROUP BY m
SELECT a FROM r WHERE c LIKE '%!%%' ESCAPE '!' OR c NOT LIKE 'a!_%' ESCAPE '!'
SELECT a + 1 x, x * 2 y, y + x z FROM r
SELECT a x, x + 1 y, count(*) n, n + x m FROM r GROUP BY a ORDER BY n * 2 LIMIT 3
SELECT a FROM r ORDER BY b, c, a LIMIT 2
SELECT a, count(*) n FROM r GROUP BY a ORDER BY max(b) DESC, sum(b), a LIMIT 2 OFFSET 1
""".strip().splitlines()


@pytest.mark.parametrize("sql", WRITTEN)
def test_oracle_written_queries(sql: str, rng: random.Random) -> None:
    for _ in range(4):
        check(sql, random_tables(rng))


@pytest.mark.parametrize("total", [150, pytest.param(5_000, marks=pytest.mark.slow)])
def test_oracle_random_queries(rng: random.Random, total: int) -> None:
    refused: dict[str, int] = {}
    for _ in range(total):
        sql = random_query(rng)
        try:
            for tables in (random_tables(rng), random_tables(rng)):
                check(sql, tables)
        except SqlError as error:
            refused[error.code] = refused.get(error.code, 0) + 1
    assert sum(refused.values()) < total * 0.4, refused
