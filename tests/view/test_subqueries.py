"""Subqueries as values: marks and scalar subqueries in every place, DuckDB as judge after every batch."""

from __future__ import annotations

import random

import pytest

import crown
from crown.ir.plan import TreeStage
from crown.plan import plan
from crown.sql import parse
from tests.view.test_outer_joins import SCHEMA, follow

MARKS = [
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR a.j > 2",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR EXISTS (SELECT 1 FROM d WHERE d.k = "
    "a.j AND d.l > 1)",
    "SELECT a.id, a.k IN (SELECT b.v FROM b) AS m, a.k NOT IN (SELECT b.v FROM b WHERE b.k = a.j) AS n FROM a",
    "SELECT a.id FROM a WHERE a.k IN (SELECT b.v FROM b) OR a.j IN (SELECT d.l FROM d WHERE d.k = a.k)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT b.v FROM b WHERE b.k = a.j) OR a.j = 1",
    "SELECT a.id, CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 1) THEN 'x' ELSE 'y' END AS m FROM a",
    "SELECT a.id, a.k > ALL (SELECT b.v FROM b WHERE b.k = a.j) AS m, a.k < ANY (SELECT b.v FROM b) AS n FROM a",
    "SELECT a.id, a.k <> ANY (SELECT b.v FROM b WHERE b.k = a.j) AS m, a.k = ALL (SELECT b.v FROM b WHERE b.k = "
    "a.j) AS n FROM a",
    "SELECT a.id FROM a WHERE a.k >= ALL (SELECT b.v FROM b WHERE b.k = a.j)",
    "SELECT a.id FROM a WHERE NOT a.k >= ALL (SELECT b.v FROM b WHERE b.k = a.j)",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.j AND b.v < a.id)",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND (b.v > a.j OR b.w = a.x))",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM d WHERE d.k = b.v "
    "AND d.l = a.j))",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND (b.v = 1 OR EXISTS (SELECT 1 FROM d WHERE d.k = b.v "
    "AND d.l = a.j))) AS m FROM a",
    "SELECT a.id, (a.k, a.j) IN (SELECT b.k, b.v FROM b) AS m FROM a",
    "SELECT a.id FROM a WHERE (a.k, a.j) NOT IN (SELECT b.k, b.v FROM b)",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k LIMIT 1) AS m, EXISTS (SELECT 1 FROM d) AS n FROM a",
    "SELECT a.id, 2 IN (SELECT b.v FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v) OR "
    "a.j = 0",
    "SELECT a.id, b.v, EXISTS (SELECT 1 FROM d WHERE d.k = b.v) AS m FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k UNION SELECT 1 FROM d WHERE d.k = a.j) AS m FROM a",
    "SELECT COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR EXISTS (SELECT 1 FROM d WHERE "
    "d.k = a.k)",
    "SELECT DISTINCT a.x, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id FROM a ORDER BY EXISTS (SELECT 1 FROM b WHERE b.k = a.k), a.id LIMIT 3",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND NOT EXISTS (SELECT 1 FROM d WHERE "
    "d.k = b.v AND d.l = a.j))",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.k = b.v AND EXISTS "
    "(SELECT 1 FROM d WHERE d.k = c.y AND d.l = a.j))) AS m FROM a",
    "SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b WHERE b.v <> a.j)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.v <> a.j)",
    "SELECT a.id, a.k NOT IN (SELECT b.k FROM b WHERE b.v <> a.j) AS m FROM a",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k) AS m FROM a",
    "SELECT a.id FROM a JOIN d ON a.k = d.k WHERE EXISTS (SELECT 1 FROM b WHERE b.v = a.j + d.l)",
    "SELECT a.id FROM a JOIN d ON a.k = d.k WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.v = a.j + d.l)",
    "SELECT a.id FROM a JOIN d ON a.k = d.k WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.j AND a.id < d.l)",
    "SELECT t.id, t.m FROM (SELECT a.id, a.j IN (SELECT b.v FROM b WHERE b.k = a.k) AS m FROM a) AS t LEFT JOIN c "
    "ON c.k = t.id WHERE t.m IS NULL OR NOT t.m",
    "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE a.j > 1) AS m, a.j IN (SELECT 1 FROM b WHERE a.j = 1) AS n FROM a",
    "SELECT a.id, EXISTS (SELECT 1 FROM b LEFT JOIN d ON d.k = b.v WHERE b.k = a.k AND (d.l = a.j OR d.l IS "
    "NULL)) AS m FROM a",
    "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k WHERE (a.j, b.v) IN (SELECT d.k, d.l FROM d) OR a.id = 0",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.j AND b.w <> a.x)",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b, d WHERE b.k = a.k AND d.k = b.v AND d.l > a.j AND b.w "
    "<> a.x)",
    "SELECT t.z, b.v FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k UNION ALL SELECT c.y FROM c) AS t "
    "LEFT JOIN b ON b.v = t.z",
    "SELECT b.v FROM b WHERE b.v NOT IN (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k)",
    "SELECT b.v FROM b WHERE NOT EXISTS (SELECT 1 FROM a JOIN d ON a.k < d.k WHERE a.id + d.l = b.v)",
]
SCALARS = [
    "SELECT a.id, (SELECT MAX(b.v) FROM b WHERE b.k = a.k) AS m, (SELECT COUNT(*) FROM b WHERE b.k = a.k) AS n FROM a",
    "SELECT a.id, (SELECT MAX(b.v) FROM b) AS m, (SELECT COUNT(*) + 1 FROM b) AS n FROM a",
    "SELECT a.id FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.k = a.k) = 0 OR a.j < (SELECT AVG(d.l) * 1.2 FROM d "
    "WHERE d.k = a.k)",
    "SELECT a.id, (SELECT c.y FROM c WHERE c.k = a.k) AS y FROM a",
    "SELECT a.id, (SELECT c.y + 1 FROM c JOIN b ON b.v = c.y WHERE c.k = a.k LIMIT 1) AS y FROM a",
    "SELECT COUNT(*) AS n, (SELECT MAX(b.v) FROM b) AS m FROM a",
    "SELECT a.id, (SELECT SUM(b.v) FROM b WHERE b.k <= a.k) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(*) FROM b WHERE b.k <= a.k) AS m FROM a",
    "SELECT a.id, a.j IN (SELECT COUNT(*) FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT MAX(b.v) FROM b WHERE b.k = a.k) IN (SELECT d.l FROM d) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(*) FROM b WHERE b.k = a.k AND (b.v = 1 OR EXISTS (SELECT 1 FROM d WHERE d.k = b.v "
    "AND d.l = a.j))) AS m FROM a",
    "SELECT a.id, (SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM d WHERE d.k = b.v) THEN 1 ELSE 2 END) FROM b WHERE "
    "b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT MAX(b.v) FROM b WHERE b.k = a.k AND b.v < (SELECT AVG(d.l) FROM d WHERE d.k = b.k)) AS "
    "m FROM a",
    "SELECT a.id, (SELECT MAX(b.v) FROM b WHERE b.k = a.k AND b.v < (SELECT AVG(d.l) FROM d WHERE d.k = a.j)) AS "
    "m FROM a",
    "SELECT a.id FROM a WHERE a.j > (SELECT MIN(b.v) FROM b WHERE b.k = a.k) AND EXISTS (SELECT 1 FROM d WHERE "
    "d.k = a.k AND d.l <> a.j)",
    "SELECT a.id FROM a WHERE CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k) THEN a.j > 1 ELSE a.j <= (SELECT "
    "MAX(d.l) FROM d WHERE d.k = a.k) END",
    "SELECT a.id, COALESCE((SELECT SUM(b.v) FROM b WHERE b.k = a.k AND a.j > 1), -1) AS m, (SELECT COUNT(b.v) "
    "FROM b WHERE b.k = a.k AND a.j > 1) AS n FROM a",
    "SELECT a.id, (SELECT MAX(b.v) FROM b LEFT JOIN c ON c.k = b.v WHERE b.k = a.k AND c.y IS NULL) AS m FROM a",
]
AMONG_GROUPS = [
    "SELECT a.x, COUNT(*) AS n, EXISTS (SELECT 1 FROM b WHERE b.w = a.x) AS m FROM a GROUP BY a.x",
    "SELECT a.x, COUNT(*) AS n FROM a GROUP BY a.x HAVING COUNT(*) IN (SELECT b.v FROM b) OR EXISTS (SELECT 1 "
    "FROM b WHERE b.w = a.x)",
    "SELECT a.x, SUM(CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k) THEN 1 ELSE 0 END) AS n FROM a GROUP BY a.x",
    "SELECT EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS e, COUNT(*) AS n FROM a GROUP BY EXISTS (SELECT 1 FROM b "
    "WHERE b.k = a.k)",
    "SELECT EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS e, COUNT(*) AS n FROM a GROUP BY e",
    "SELECT a.k IN (SELECT b.v FROM b) AS e, COUNT(*) AS n FROM a GROUP BY 1",
    "SELECT a.x, SUM(a.k) AS s FROM a GROUP BY a.x HAVING SUM(a.k) > (SELECT AVG(b.v) FROM b WHERE b.w = a.x)",
    "SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b GROUP BY b.k HAVING COUNT(*) > 1) OR a.j = 0",
    "SELECT a.id FROM a WHERE a.id IN (SELECT b.v FROM b WHERE b.k = a.k GROUP BY b.v HAVING COUNT(*) > 1) OR a.j = 0",
    "SELECT a.id, EXISTS (SELECT COUNT(*) FROM b WHERE b.k = a.k HAVING COUNT(*) > 1) AS m FROM a",
    "SELECT a.x, COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR a.k IS NULL GROUP BY a.x "
    "HAVING MAX(a.j) >= ALL (SELECT b.v FROM b WHERE b.w = a.x)",
    "SELECT MAX(a.j) AS m FROM a HAVING MAX(a.j) > (SELECT AVG(b.v) FROM b)",
    "SELECT a.x, (SELECT COUNT(*) FROM b WHERE b.w = a.x) + COUNT(*) AS n FROM a GROUP BY a.x ORDER BY n DESC, "
    "a.x LIMIT 2",
    "SELECT DISTINCT a.x, (SELECT COUNT(*) FROM b WHERE b.w = a.x) AS n FROM a GROUP BY a.x, a.k",
    "WITH r AS (SELECT k, SUM(v) AS t FROM b GROUP BY k) SELECT r1.k FROM r AS r1 WHERE r1.t > (SELECT AVG(r2.t) "
    "FROM r AS r2 WHERE r2.k = r1.k) OR r1.t >= (SELECT MAX(t) FROM r)",
    "WITH r AS (SELECT k, SUM(v) AS t FROM b GROUP BY k) SELECT a.id FROM a JOIN r ON r.k = a.k WHERE r.t > 1.2 * "
    "(SELECT AVG(t) FROM r r2 WHERE r2.k = r.k) OR NOT EXISTS (SELECT 1 FROM d WHERE d.k = r.t)",
]
IN_ON = [
    "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j)",
    "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k AND (b.v = 1 OR a.id IN (SELECT d.l FROM d WHERE d.k = b.v))",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = b.v)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.v = (SELECT MAX(d.l) FROM d WHERE d.k = b.k)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.v = (SELECT MAX(d.l) FROM d)",
    "SELECT a.id, b.v FROM b RIGHT JOIN a ON a.k = b.k AND b.v NOT IN (SELECT d.l FROM d)",
]
COMPARISONS = [
    "SELECT a.id, b.v, d.l FROM a FULL JOIN (b JOIN d ON b.v = d.k) ON a.k = b.k AND b.k < d.l",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.v > a.j",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON b.v BETWEEN a.j AND a.id",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.v >= a.j AND b.v < a.j + 2",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k < b.k",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k OR a.j = b.v",
    "SELECT a.id, b.v FROM b RIGHT JOIN a ON a.k = b.k AND b.v <> a.j",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND b.v > a.j",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k < b.k",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k",
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN b ON a.k = b.k AND b.v > a.j LEFT JOIN c ON c.k = b.v",
    "SELECT a.id, b.v, d.l FROM a JOIN d ON a.k = d.k LEFT JOIN b ON b.k = a.j AND a.id < d.l",
    "SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k AND b.v > a.j",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.v > a.j AND b.w <> a.x",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.k <= b.k",
    "SELECT a.id FROM a LEFT SEMI JOIN (b JOIN d ON b.v = d.k) ON a.k = b.k AND d.l <> a.j AND b.v < a.id",
    "SELECT a.x, COUNT(b.v) AS n, COUNT(*) AS m FROM a LEFT JOIN b ON a.k = b.k AND b.v > a.j GROUP BY a.x",
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN (b JOIN c ON b.v = c.k) ON a.k = b.k AND c.y > a.j",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "SELECT a.id, b.v, d.l FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN d ON d.k = b.v AND d.l > a.j",
    "SELECT a.id, b.v, d.l FROM a LEFT JOIN b ON a.k = b.k FULL JOIN d ON d.k = b.v",
]
OVER_EXPRESSIONS = [
    "SELECT t.z FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t WHERE EXISTS (SELECT 1 FROM b WHERE "
    "b.v = t.z)",
    "SELECT t.z FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t WHERE NOT EXISTS (SELECT 1 FROM b "
    "WHERE b.v = t.z)",
    "SELECT t.z, EXISTS (SELECT 1 FROM b WHERE b.v = t.z) AS m, t.z NOT IN (SELECT b.v FROM b) AS n FROM (SELECT "
    "a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t",
    "SELECT t.z FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t WHERE t.z NOT IN (SELECT b.v FROM b)",
    "SELECT t.z, b.v FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t LEFT JOIN b ON b.v = t.z",
    "SELECT t.z, b.v FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t FULL JOIN b ON b.v = t.z",
    "SELECT b.v, t.z FROM b LEFT JOIN (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t ON b.v = t.z",
    "SELECT b.v FROM b LEFT ANTI JOIN (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t ON b.v = t.z",
    "SELECT t.z FROM (SELECT a.id + d.l AS z FROM a JOIN d ON a.k = d.k) AS t LEFT SEMI JOIN b ON b.v = t.z",
]


LATERAL = [
    "SELECT a.id, l.v FROM a, LATERAL (SELECT b.v FROM b WHERE b.k = a.k) AS l",
    "SELECT a.id, l.v FROM a LEFT JOIN LATERAL (SELECT b.v FROM b WHERE b.k = a.k AND b.v > a.j) AS l ON TRUE",
    "SELECT a.id, l.n, l.m FROM a CROSS JOIN LATERAL (SELECT COUNT(*) AS n, MAX(b.v) AS m FROM b WHERE b.k = a.k) AS l",
    "SELECT a.id, l.v, l.n FROM a LEFT JOIN LATERAL (SELECT b.v, COUNT(*) AS n FROM b WHERE b.k = a.k GROUP BY "
    "b.v) AS l ON l.n > 1",
    "SELECT a.id, l.z FROM a JOIN LATERAL (SELECT DISTINCT b.v + a.j AS z FROM b WHERE b.k = a.k) AS l ON TRUE",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM (SELECT b.v AS v FROM b WHERE b.k = a.k) AS t WHERE t.v > a.j)",
    "SELECT a.id, (SELECT SUM(t.v) FROM (SELECT DISTINCT b.v AS v FROM b WHERE b.k = a.k) AS t) AS s FROM a",
    "SELECT a.id, (SELECT MAX(t.n) FROM (SELECT b.v, COUNT(*) AS n FROM b WHERE b.k = a.k GROUP BY b.v) AS t) AS "
    "s FROM a",
    "SELECT a.id, (SELECT SUM(t.n) FROM (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k) AS t) AS s FROM a",
    "SELECT a.id, l.v, l2.y FROM a, LATERAL (SELECT b.v FROM b WHERE b.k = a.k) AS l, LATERAL (SELECT c.y FROM c "
    "WHERE c.k = l.v) AS l2",
    "SELECT a.id, l.* FROM a, LATERAL (SELECT * FROM b WHERE b.k = a.k) AS l",
    "SELECT a.id, l.n FROM a LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k HAVING COUNT(*) > 1) "
    "AS l ON TRUE",
]


@pytest.mark.parametrize("sql", LATERAL)
def test_subqueries_in_from_that_read_what_is_around(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


SETS = [
    "SELECT a.id FROM a WHERE EXISTS (SELECT v FROM b WHERE b.k = a.k EXCEPT SELECT l FROM d WHERE d.k = a.j)",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT v FROM b WHERE b.k = a.k INTERSECT SELECT l FROM d WHERE d.k = a.j)",
    "SELECT a.id FROM a WHERE a.j IN (SELECT v FROM b WHERE b.k = a.k EXCEPT ALL SELECT l FROM d WHERE d.k > a.k)",
    "SELECT a.id, a.j NOT IN (SELECT v FROM b WHERE b.k = a.k EXCEPT SELECT l FROM d) AS m FROM a",
    "SELECT a.id, (SELECT MAX(v) FROM (SELECT v FROM b WHERE b.k = a.k EXCEPT SELECT l FROM d) AS q) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(*) FROM (SELECT v FROM b WHERE b.k = a.k UNION ALL SELECT l FROM d WHERE d.k = a.j) "
    "AS q) AS m FROM a",
    "SELECT a.id, q.v FROM a CROSS JOIN LATERAL (SELECT v FROM b WHERE b.k = a.k UNION SELECT COUNT(*) FROM d WHERE "
    "d.k = a.j) AS q",
    "SELECT a.id, q.v FROM a LEFT JOIN LATERAL (SELECT v FROM b WHERE b.k = a.k INTERSECT ALL SELECT l FROM d "
    "ORDER BY v LIMIT 2) AS q ON TRUE",
]
BARE = [
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM (SELECT v FROM b WHERE b.k = j) AS q WHERE q.v = id)",
    "SELECT id, (SELECT MAX(v) FROM (SELECT v FROM b WHERE b.k = j) AS q) AS m FROM a",
    "SELECT id, q.v FROM a, LATERAL (SELECT v FROM b WHERE b.k = j) AS q",
    "WITH e AS (SELECT b.k AS ek, v FROM b) SELECT id, q.v FROM a, LATERAL (SELECT v FROM e WHERE ek = j) AS q",
]
BOTH_SIDES = [
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON b.v > (SELECT MAX(l) FROM d WHERE d.k = a.k AND d.l < b.v)",
    "SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v)",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.v IN (SELECT l FROM d WHERE d.k = a.j)",
    "SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k AND b.v = (SELECT MAX(l) FROM d)",
    "SELECT a.id, b.v FROM a RIGHT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v)",
    "SELECT a.id, b.v FROM a RIGHT JOIN b ON a.k = b.k AND a.j NOT IN (SELECT l FROM d WHERE d.k = b.v)",
    "SELECT a.id, b.v FROM a RIGHT JOIN b ON EXISTS (SELECT 1 FROM d WHERE l = j AND z > v)",
    "SELECT a.id, c.y, b.v FROM a JOIN c ON c.k = a.k RIGHT JOIN b ON a.k = b.k AND b.v > ANY (SELECT l FROM d WHERE "
    "d.k = c.y)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = b.v)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND a.j IN (SELECT l FROM d)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND NOT EXISTS (SELECT 1 FROM d)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l >= b.v)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k AND (a.j > (SELECT MAX(l) FROM d WHERE d.k = b.v) OR b.w = 'a')",
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.j = (SELECT MIN(l) FROM d WHERE d.k = b.k)",
    "SELECT a.id, b.v FROM a FULL JOIN b ON EXISTS (SELECT 1 FROM d WHERE d.k = b.v)",
    "SELECT b.v, COUNT(a.id) AS n FROM a FULL JOIN b ON a.k = b.k AND a.j <> ALL (SELECT l FROM d WHERE d.k = b.v) "
    "GROUP BY b.v",
    "SELECT a.id, b.v, c.y FROM a FULL JOIN b ON a.k = b.k AND a.j IN (SELECT l FROM d) FULL JOIN c ON c.k = b.v AND "
    "EXISTS (SELECT 1 FROM d WHERE d.k = c.y)",
]
WINDOWS = [
    "SELECT a.id FROM a WHERE EXISTS (SELECT v FROM b WHERE b.k = a.k QUALIFY ROW_NUMBER() OVER (ORDER BY v) = 2)",
    "SELECT a.id FROM a WHERE a.j IN (SELECT v FROM b WHERE b.k = a.k QUALIFY RANK() OVER (ORDER BY v DESC) = 1)",
    "SELECT a.id FROM a WHERE a.j NOT IN (SELECT v FROM b WHERE b.k = a.k QUALIFY RANK() OVER (ORDER BY v) <= 2)",
    "SELECT a.id FROM a WHERE a.j IN (SELECT DENSE_RANK() OVER (ORDER BY v) FROM b WHERE b.k = a.k)",
    "SELECT a.id FROM a WHERE a.j = ANY (SELECT RANK() OVER (PARTITION BY k ORDER BY v) FROM b WHERE b.v >= a.k)",
    "SELECT a.id, (SELECT v FROM b WHERE b.k = a.k QUALIFY ROW_NUMBER() OVER (ORDER BY v, w) = 1) AS m FROM a",
    "SELECT a.id, (SELECT SUM(v) OVER () FROM b WHERE b.k = a.k LIMIT 1) AS m FROM a",
    "SELECT a.id, (SELECT DISTINCT MAX(v) OVER () FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(*) FROM (SELECT LAG(v) OVER (ORDER BY v) AS l FROM b WHERE b.k = a.k) AS q WHERE l IS "
    "NULL) AS n FROM a",
    "SELECT a.id, (SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY v, w) AS n FROM b WHERE b.k < a.k) AS q "
    "WHERE q.n < 3) AS n FROM a",
    "SELECT a.id, q.v, q.n FROM a CROSS JOIN LATERAL (SELECT v, ROW_NUMBER() OVER (ORDER BY v, w) AS n FROM b WHERE "
    "b.k = a.k) AS q",
    "SELECT a.id, q.v, q.n FROM a LEFT JOIN LATERAL (SELECT v, SUM(v) OVER (PARTITION BY w ORDER BY v) AS n FROM b "
    "WHERE b.v > a.j) AS q ON TRUE",
    "SELECT a.id, q.n, q.m FROM a CROSS JOIN LATERAL (SELECT v, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS "
    "m FROM b WHERE b.k = a.k GROUP BY v) AS q",
    "SELECT a.id, (SELECT MAX(SUM(v)) OVER () FROM b WHERE b.k = a.k GROUP BY w LIMIT 1) AS m FROM a",
    "SELECT a.id, q.v FROM a CROSS JOIN LATERAL (SELECT DISTINCT ON (w) v, COUNT(*) OVER () AS n FROM b WHERE b.k = "
    "a.k ORDER BY w, v) AS q",
]


@pytest.mark.parametrize("sql", SETS)
def test_set_operations_for_each_outer_row(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", BARE)
def test_outer_columns_without_their_table(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", BOTH_SIDES)
def test_subqueries_in_on_that_read_both_sides(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", WINDOWS)
def test_window_functions_for_each_outer_row(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT a.id, (SELECT SUM(SUM(v)) OVER () FROM b WHERE b.k = a.k) FROM a", "an aggregate without GROUP BY"),
        (
            "SELECT a.id, q.n FROM a, LATERAL (SELECT RANK() OVER (ORDER BY v + a.j) AS n FROM b WHERE b.k = a.k) AS q",
            "a subquery with window functions can't use a column of the outer query",
        ),
    ],
)
def test_window_functions_that_would_differ_for_each_outer_row(sql: str, message: str) -> None:
    with pytest.raises(crown.errors.SqlError, match=message):
        crown.View(sql, SCHEMA)


@pytest.mark.parametrize("sql", MARKS)
def test_marks(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", SCALARS)
def test_scalar_subqueries(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


OUTER_VALUES = [
    "SELECT a.id, (SELECT a.k + 1) AS m, (SELECT a.j WHERE a.k > 1) AS n FROM a",
    "SELECT a.id, (SELECT a.j + c.y FROM c WHERE c.k = a.k) AS m, (SELECT a.x FROM c WHERE c.k = a.k) AS n FROM a",
    "SELECT a.id FROM a WHERE a.k = (SELECT a.j + 1) OR a.j IN (SELECT a.k + b.v FROM b WHERE b.k = a.k)",
    "SELECT a.k, COUNT(*) AS n, (SELECT a.k + 1) AS m FROM a GROUP BY a.k",
    "SELECT a.id, (SELECT SUM(b.v) + a.j FROM b WHERE b.k = a.k) AS m, (SELECT COUNT(*) + a.id FROM b) AS n FROM a",
    "SELECT a.id, (SELECT SUM(b.v) FROM b WHERE b.k = a.k HAVING COUNT(*) > a.j) AS m FROM a",
    "SELECT a.id, l.n FROM a LEFT JOIN LATERAL (SELECT COUNT(*) + a.j AS n FROM b WHERE b.k = a.k HAVING COUNT(*) < "
    "a.id) AS l ON TRUE",
    "SELECT a.id, (SELECT COUNT((SELECT b.v + 1)) FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k HAVING n > 1) AS m FROM a",
    "SELECT a.id FROM a WHERE EXISTS (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k HAVING n > 1)",
]
# Aggregates of a subquery that have more than one argument, an order or a parameter.
ORDERED_AGGREGATES = [
    "SELECT a.id, (SELECT MAX_BY(b.v, b.w) FROM b WHERE b.k = a.k AND b.w IS NOT NULL) AS m FROM a",
    "SELECT a.id, (SELECT COUNT(DISTINCT b.v, b.w) FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT LISTAGG(b.w, '-') WITHIN GROUP (ORDER BY b.w DESC) FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY b.v) FROM b WHERE b.k = a.k) AS m FROM a",
    "SELECT a.id, (SELECT COVAR_POP(d.l, d.z) FROM d WHERE d.k = a.k) AS m FROM a",
]
OUTER_AGGREGATES = [
    "SELECT a.k, COUNT(*) AS n FROM a GROUP BY a.k HAVING EXISTS (SELECT 1 FROM b WHERE b.v < MIN(a.j))",
    "SELECT a.k FROM a GROUP BY a.k HAVING NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v < MAX(a.j))",
    "SELECT a.k, (SELECT COUNT(*) FROM b WHERE b.v = MIN(a.j)) AS m, (SELECT MAX(a.id) + 1) AS n FROM a GROUP BY a.k",
    "SELECT a.k FROM a GROUP BY a.k HAVING MAX(a.j) NOT IN (SELECT b.v FROM b WHERE b.k = MIN(a.id))",
    "SELECT a.k, (SELECT MAX(o.j) + MAX(a.j) FROM a AS o WHERE o.k = a.k) AS m, MAX(a.j) AS n FROM a GROUP BY a.k",
    "SELECT (SELECT c.y FROM c WHERE c.k = MAX(a.k)) AS m FROM a",
]
SEMI_JOINS = [
    "SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k AND a.j NOT IN (SELECT d.l FROM d)",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.j NOT IN (SELECT d.l FROM d WHERE d.k = a.k)",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.j NOT IN (SELECT d.l FROM d WHERE d.k = b.v)",
    "SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k AND NOT EXISTS (SELECT 1 FROM d WHERE d.k = a.j AND d.l = b.v)",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.j NOT IN (SELECT d.l FROM d))",
]


@pytest.mark.parametrize("sql", [*OUTER_VALUES, *ORDERED_AGGREGATES])
def test_outputs_of_subqueries_that_read_the_outer_row(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", OUTER_AGGREGATES)
def test_aggregates_of_the_outer_query_in_subqueries(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", SEMI_JOINS)
def test_subqueries_in_the_on_of_semi_joins(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELECT a.id, (SELECT SUM(b.v + a.j) FROM b WHERE b.k = a.k) AS m FROM a", "an aggregate in a subquery"),
        ("SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.v < MIN(a.j))", "not allowed in WHERE"),
        ("SELECT a.k, SUM((SELECT MAX(a.j))) AS m FROM a GROUP BY a.k", "not allowed in another aggregate"),
    ],
)
def test_aggregates_that_would_differ_for_each_outer_row(sql: str, message: str) -> None:
    with pytest.raises(crown.SqlError, match=message):
        crown.View(sql, SCHEMA)


@pytest.mark.parametrize("sql", AMONG_GROUPS)
def test_subqueries_among_groups(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", IN_ON)
def test_subqueries_in_on(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", COMPARISONS)
def test_outer_and_semi_joins_by_comparisons(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize("sql", OVER_EXPRESSIONS)
def test_keys_that_are_computed_from_several_tables(sql: str, rng: random.Random) -> None:
    follow(sql, rng)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a",
        "SELECT a.id FROM a WHERE a.j = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "SELECT a.id, a.k IN (SELECT b.v FROM b WHERE b.k = a.j) AS m FROM a",
        "SELECT a.id, (SELECT COUNT(*) FROM b WHERE b.k = a.k) AS n FROM a",
    ],
)
def test_a_mark_is_an_optional_edge(sql: str) -> None:
    last = [stage for stage in plan(parse(sql, SCHEMA)).stages if isinstance(stage, TreeStage)][-1]
    edges = [node.edge for node in last.nodes]
    assert edges[0] == "join"
    assert set(edges[1:]) == {"optional"}


def test_a_plain_condition_stays_a_semi_join() -> None:
    for sql, edge in [
        ("SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "exists"),
        ("SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b)", "exists"),
        ("SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "anti"),
    ]:
        (tree,) = plan(parse(sql, SCHEMA)).stages
        assert isinstance(tree, TreeStage)
        assert [node.edge for node in tree.nodes if node.edge != "join"] == [edge]


def test_a_mark_changes_the_rows_of_its_key_when_it_flips() -> None:
    view = crown.View("SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a", SCHEMA)
    view.insert("a", [(1, 5, 0, "x"), (2, 5, 0, "x"), (3, 6, 0, "x"), (4, None, 0, "x")])
    assert view.insert("b", [(5, 10, "w")]).num_rows == 4
    assert view.insert("b", [(5, 11, "w")]).num_rows == 0
    assert view.delete("b", [(5, 10, "w")]).num_rows == 0
    assert view.delete("b", [(5, 11, "w")]).num_rows == 4
    assert sorted(view) == [(1, False), (2, False), (3, False), (4, False)]


SINGLE = "CREATE TABLE r (id INT NOT NULL, k INT, v INT); CREATE TABLE s (k INT, v INT)"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT r.id, (SELECT s.v FROM s WHERE s.k = r.k) AS v FROM r", [(1, 5), (2, 6)]),
        ("SELECT r.id FROM r WHERE r.v = (SELECT s.v FROM s WHERE s.k = r.k)", [(1,)]),
        ("SELECT r.id FROM r WHERE (SELECT s.v FROM s WHERE s.k = r.k) > 1", [(1,), (2,)]),
        ("SELECT r.id FROM r WHERE (SELECT s.v FROM s WHERE s.k = r.k) > 5 OR r.id = 1", [(1,), (2,)]),
        ("SELECT r.id, SUM((SELECT s.v FROM s WHERE s.k = r.k)) AS v FROM r GROUP BY r.id", [(1, 5), (2, 6)]),
    ],
)
def test_a_scalar_subquery_of_several_rows_is_an_error(sql: str, shown: list[tuple[int, ...]], threads: int) -> None:
    """Only where an outer row sees them, and the batch is undone."""
    view = crown.View(sql, SINGLE, threads=threads)
    view.insert("s", [(1, 5), (1, 6), (2, 5)])
    view.insert("r", [(1, 2, 5)])
    before = list(view)
    with pytest.raises(crown.InvalidChange, match="CROWN-SCALAR-ROWS"):
        view.insert("r", [(2, 1, 5)])
    assert list(view) == before
    view.delete("s", [(1, 5)])
    view.insert("r", [(2, 1, 5)])
    assert sorted(view) == shown
    with pytest.raises(crown.InvalidChange, match="CROWN-SCALAR-ROWS"):
        view.insert("s", [(2, 5)])
    assert sorted(view) == shown
    view.insert("s", [(7, 5), (7, 6)])
    assert sorted(view) == shown


def test_an_uncorrelated_scalar_subquery_of_several_rows_is_an_error() -> None:
    view = crown.View("SELECT r.id, (SELECT s.v FROM s) AS v FROM r", SINGLE)
    view.insert("s", [(1, 5)])
    with pytest.raises(crown.InvalidChange, match="CROWN-SCALAR-ROWS"):
        view.insert("s", [(2, 5)])
    view.insert("r", [(1, 2, 5)])
    assert list(view) == [(1, 5)]


def test_a_key_proves_that_a_scalar_subquery_has_one_row() -> None:
    sql = "SELECT a.id, (SELECT c.y FROM c WHERE c.k = a.k) AS y FROM a"
    assert "single_row" not in repr(plan(parse(sql, SCHEMA)))


@pytest.mark.parametrize("kind, unmatched", [("CROSS", []), ("OUTER", [(2, None)])])
def test_apply_of_sql_server(kind: str, unmatched: list[tuple[int, None]]) -> None:
    sql = f"SELECT r.a, q.b FROM r {kind} APPLY (SELECT s.b FROM s WHERE s.a = r.a) q"
    view = crown.View(sql, schema="CREATE TABLE r (a INT); CREATE TABLE s (a INT, b INT)", dialect="tsql")
    view.insert("r", [(1,), (2,)])
    view.insert("s", [(1, 5), (1, 6)])
    assert sorted(view, key=str) == [(1, 5), (1, 6), *unmatched]


def test_marks_cost_a_look_up_and_space_that_is_linear() -> None:
    """Counters change as often per update, and bytes are as many per row, however large the tables are."""
    schema = "CREATE TABLE a (id BIGINT NOT NULL, k BIGINT); CREATE TABLE b (k BIGINT, v BIGINT)"
    sql = """SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m,
        a.id IN (SELECT b.v FROM b WHERE b.k = a.k) AS n, (SELECT COUNT(*) FROM b WHERE b.k = a.k) AS c FROM a"""

    def cost(rows: int) -> tuple[float, float]:
        view = crown.View(sql, schema)
        view.insert("a", [(i, i) for i in range(rows)])
        view.insert("b", [(i, i % 7) for i in range(0, rows, 2)])
        stats = view.stats()
        trees = [stage for stage in stats["stages"] if stage.get("updates")]
        changes = sum(tree["counter_changes"] for tree in trees) / sum(tree["updates"] for tree in trees)
        return changes, stats["bytes"] / rows

    small, large = cost(500), cost(4000)
    assert large[0] <= small[0] + 0.01
    assert large[0] < 2
    assert large[1] < small[1] * 1.5
