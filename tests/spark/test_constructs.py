"""Windows, grouping sets, subqueries, LATERAL and joins by comparison on Spark, against Spark's own batch SQL.

Every batch inserts and deletes, with NULLs in every column and rows that are there more than once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from crown.spark import maintain, run_batch, snapshot
from tests.spark.streams import Feed, collect_batches, total
from tests.support.judge import Change, Judge, Row

pytestmark = pytest.mark.spark

TABLES = "CREATE TABLE g (src BIGINT, dst BIGINT); CREATE TABLE h (src BIGINT, dst BIGINT)"
BATCHES = 3
QUERIES = {
    "row-number": "SELECT src, dst, ROW_NUMBER() OVER (PARTITION BY src ORDER BY dst) AS n FROM g",
    "frame": "SELECT src, dst, SUM(dst) OVER (PARTITION BY src ORDER BY dst ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
    "AS s, LAG(dst) OVER (PARTITION BY src ORDER BY dst) AS l FROM g",
    "range-of-all": "SELECT src, dst, AVG(dst) OVER (ORDER BY src) AS a, DENSE_RANK() OVER (ORDER BY dst DESC) AS d "
    "FROM g",
    "top-of-each": "SELECT src, dst FROM (SELECT src, dst, RANK() OVER (PARTITION BY src ORDER BY dst DESC) AS r "
    "FROM g) WHERE r <= 2",
    "window-over-join": "SELECT g.src, h.dst, COUNT(*) OVER (PARTITION BY h.dst) AS n FROM g JOIN h ON g.dst = h.src",
    "rollup": "SELECT src, dst, COUNT(*) AS n, GROUPING_ID() AS level FROM g GROUP BY ROLLUP (src, dst)",
    "cube-over-join": "SELECT g.src, h.dst, COUNT(*) AS n, SUM(g.dst) AS s, GROUPING(h.dst) AS whole "
    "FROM g JOIN h ON g.dst = h.src GROUP BY CUBE (g.src, h.dst)",
    "grouping-sets": "SELECT src, dst, MIN(dst) AS least FROM g GROUP BY GROUPING SETS ((src), (dst), ())",
    "scalar": "SELECT g.src, (SELECT MAX(h.dst) FROM h WHERE h.src = g.dst) AS m FROM g",
    "scalar-of-all": "SELECT src, dst FROM g WHERE dst > (SELECT AVG(dst) FROM h)",
    "count-in-select": "SELECT g.src, (SELECT COUNT(*) FROM h WHERE h.src = g.dst) AS n FROM g",
    "exists-or": "SELECT src, dst FROM g WHERE src = 1 OR EXISTS (SELECT 1 FROM h WHERE h.src = g.dst)",
    "case-in": "SELECT src, CASE WHEN dst IN (SELECT src FROM h) THEN 'in' ELSE 'out' END AS place FROM g",
    "not-in": "SELECT src, dst FROM g WHERE dst NOT IN (SELECT src FROM h WHERE src IS NOT NULL)",
    "not-in-nulls": "SELECT src, dst FROM g WHERE dst NOT IN (SELECT src FROM h)",
    "lateral": "SELECT g.src, l.s FROM g, LATERAL (SELECT h.dst + g.src AS s FROM h WHERE h.src = g.dst) AS l",
    "lateral-sum": "SELECT g.src, l.s FROM g, LATERAL (SELECT SUM(h.dst) AS s FROM h WHERE h.src = g.dst) AS l",
    "left-lateral": "SELECT g.src, l.d FROM g LEFT JOIN LATERAL (SELECT h.dst AS d FROM h WHERE h.src = g.dst) AS l",
    "left-by-comparison": "SELECT g.src, g.dst, h.dst AS d FROM g LEFT JOIN h ON g.dst < h.src",
    "full-by-comparison": "SELECT g.src, h.dst FROM g FULL OUTER JOIN h ON g.dst = h.src AND g.src <= h.dst",
    "anti-by-comparison": "SELECT g.src, g.dst FROM g LEFT ANTI JOIN h ON g.dst < h.src AND g.src = h.dst",
    "exists-by-comparison": "SELECT src FROM g WHERE EXISTS (SELECT 1 FROM h WHERE h.src = g.src AND h.dst > g.dst)",
    "set-operations": "(SELECT src FROM g UNION ALL SELECT dst FROM h) EXCEPT ALL SELECT src FROM h",
    "intersect": "SELECT g.src FROM g LEFT JOIN h ON g.dst = h.src INTERSECT SELECT dst FROM h",
    "distinct-aggregates": "SELECT src, COUNT(DISTINCT dst) AS n, MAX_BY(dst, dst) AS m, VAR_POP(dst) AS v FROM g "
    "GROUP BY src HAVING COUNT(*) > 1",
    "median": "SELECT COUNT(*) AS n, MEDIAN(g.dst) AS m FROM g JOIN h ON g.src = h.src",
    "pivot": "SELECT * FROM g PIVOT (SUM(dst) FOR src IN (1 AS one, 2 AS two))",
    "unpivot": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM g UNPIVOT (v FOR k IN (src, dst)) GROUP BY k",
    "series": "SELECT n, COUNT(src) AS k FROM (SELECT EXPLODE(SEQUENCE(0, 3)) AS n) s LEFT JOIN g ON src = n "
    "GROUP BY n",
    "arrays": "SELECT src, ARRAY_MAX(ARRAY(src, dst)) AS m, "
    "ARRAY_JOIN(SORT_ARRAY(SPLIT(CONCAT(dst, ',', src), ',')), ';') AS j FROM g",
    "explode": "SELECT g.src, x FROM g LATERAL VIEW EXPLODE(ARRAY(src, dst)) t AS x",
    "derived-twice": "WITH c AS (SELECT src, COUNT(*) AS n FROM g GROUP BY src) "
    "SELECT a.src, b.src AS other FROM c a JOIN c b ON a.n = b.n WHERE a.src < b.src",
    "limit": "SELECT src, dst FROM g ORDER BY dst DESC NULLS LAST, src LIMIT 5",
    "aggregate-of-aggregate": "SELECT n, COUNT(*) AS groups FROM (SELECT src, COUNT(*) AS n FROM g GROUP BY src) "
    "GROUP BY n",
}
# One of each kind in the default run.
QUICK = ("frame", "cube-over-join", "scalar", "lateral", "full-by-comparison")


def rows_of(frame: DataFrame) -> Counter[Row]:
    return Counter(map(plain, frame.collect()))


def plain(row: Any) -> Row:
    """Floating-point sums depend on the order of their terms in the last digit, in Spark's batch SQL too."""
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


def summed(deltas: Iterable[pa.Table]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row, count in total(deltas).items():
        found[plain(row)] += count
    return found


def histories(rng: random.Random) -> list[list[Change]]:
    present: list[Change] = []
    found = []

    def value() -> int | None:
        return None if rng.random() < 0.12 else rng.randrange(5)

    for _ in range(BATCHES):
        gone = [present.pop(rng.randrange(len(present))) for _ in range(min(len(present), 6))]
        came = [Change(rng.choice("gh"), (value(), value())) for _ in range(14)]
        present += came
        found.append([*(Change(change.table, change.row, -1) for change in gone), *came])
    return found


def spark_tables(spark: SparkSession, tables: Mapping[str, Counter[Row]]) -> None:
    for name, rows in tables.items():
        frame = spark.createDataFrame(list(rows.elements()), "src BIGINT, dst BIGINT")
        frame.createOrReplaceTempView(name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in QUERIES]
)
def test_a_construct_on_spark(spark: SparkSession, cells: int, rng: random.Random, name: str, tmp_path: Path) -> None:
    sql = QUERIES[name]
    judge = Judge("SELECT g.src FROM g, h", TABLES)
    feed = Feed(tmp_path / "in", judge)
    history = histories(rng)
    for changes in history:
        feed.write(changes)
    tables = {table: frame for table, frame in feed.tables(spark).items() if f" {table}" in sql}
    deltas = collect_batches(maintain(spark, sql, tables, cells=cells), tmp_path / "checkpoint")
    wanted: Counter[Row] = Counter()
    for number, changes in enumerate(history):
        judge.apply(changes)
        spark_tables(spark, judge.tables)
        wanted = rows_of(spark.sql(sql))
        assert summed(deltas[batch] for batch in range(number + 1)) == wanted, f"{name}, after batch {number}"
    assert rows_of(snapshot(spark, str(tmp_path / "checkpoint"))) == wanted, f"{name}, snapshot"
    bounded = {table: spark.read.parquet(str(tmp_path / "in" / table)) for table in tables}
    assert summed([run_batch(spark, sql, bounded, cells=cells).toArrow()]) == wanted, f"{name}, run_batch"
