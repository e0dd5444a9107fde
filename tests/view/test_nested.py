"""Arrays, structs, maps, JSON, TIME, UUID and unsigned integers: compared with DuckDB after each batch."""

from __future__ import annotations

import datetime
import math
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import crown
from crown.testing import multiset
from tests.support.three_ways import check_three_ways

SCHEMA = {
    "t": {
        "k": "INT",
        "a": "ARRAY<INT>",
        "s": "STRUCT<x: INT, y: ARRAY<STRING>>",
        "m": "MAP<STRING, DOUBLE>",
        "u": "UUID",
        "c": "TIME",
        "j": "STRING",
        "b": "uint8",
        "w": "uint32",
    },
    "o": {"a": "ARRAY<INT>", "n": "INT"},
}
ARROW = {
    "t": pa.schema(
        [
            ("k", pa.int32()),
            ("a", pa.list_(pa.int32())),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
            ("m", pa.map_(pa.string(), pa.float64())),
            ("u", pa.string()),
            ("c", pa.time64("us")),
            ("j", pa.string()),
            ("b", pa.uint8()),
            ("w", pa.uint32()),
        ]
    ),
    "o": pa.schema([("a", pa.list_(pa.int32())), ("n", pa.int32())]),
}
# Crown's query (Spark's dialect), and what DuckDB is asked if it is not the same.
QUERIES: list[tuple[str, str | None]] = [
    (
        "SELECT k, n, v FROM t LATERAL VIEW explode(m) e AS n, v",
        "SELECT k, e.key, e.value FROM (SELECT k, unnest(map_entries(m)) AS e FROM t)",
    ),
    (
        "SELECT key, COUNT(*) AS n, SUM(value) AS v FROM t LATERAL VIEW explode(m) GROUP BY key",
        "SELECT e.key, COUNT(*), SUM(e.value) FROM (SELECT unnest(map_entries(m)) AS e FROM t) GROUP BY 1",
    ),
    (
        "SELECT * FROM t",
        None,
    ),
    (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a",
        None,
    ),
    (
        "SELECT s, m, COUNT(*) AS n FROM t GROUP BY s, m",
        None,
    ),
    (
        "SELECT DISTINCT m FROM t",
        None,
    ),
    (
        "SELECT t.k, o.n FROM t JOIN o ON t.a = o.a",
        None,
    ),
    (
        "SELECT t.k, o.a AS other FROM t LEFT JOIN o ON t.a = o.a",
        None,
    ),
    (
        "SELECT a FROM t EXCEPT SELECT a FROM o",
        None,
    ),
    (
        "SELECT a FROM t UNION ALL SELECT a FROM o",
        None,
    ),
    (
        "SELECT k, s.x, t.s.y AS y, s.y[0] AS first FROM t WHERE s.x = 1 AND size(s.y) > 0",
        "SELECT k, s.x, s.y, s.y[1] FROM t WHERE s.x = 1 AND len(s.y) > 0",
    ),
    (
        "SELECT k, try_element_at(a, 1) AS e, get(a, 1) AS g, try_element_at(a, -1) AS l FROM t",
        "SELECT k, a[1], a[2], a[-1] FROM t",
    ),
    (
        "SELECT k, m['p'] AS p, map_keys(m) AS ks, size(m) AS n FROM t",
        "SELECT k, m['p'], list_sort(map_keys(m)), cardinality(m)::INT FROM t",
    ),
    (
        "SELECT k, size(a) AS n FROM t WHERE array_contains(a, 1)",
        "SELECT k, len(a)::INT FROM t WHERE list_contains(a, 1)",
    ),
    (
        "SELECT array(k, 7) AS a, named_struct('q', k, 'r', a) AS s FROM t",
        "SELECT [k, 7], {'q': k, 'r': a} FROM t",
    ),
    (
        "SELECT k, get_json_object(j, '$.p.q') AS q, j ->> 'r' AS r FROM t",
        "SELECT k, json_extract_string(j, '$.p.q'), j ->> '$.r' FROM t",
    ),
    (
        "SELECT u, c, hour(c) AS h, CAST(c AS STRING) AS text FROM t WHERE c >= CAST('06:00:00' AS TIME)",
        "SELECT u, c, hour(c)::INT, c::VARCHAR FROM t WHERE c >= TIME '06:00:00'",
    ),
    (
        "SELECT u, MIN(c) AS c, COUNT(*) AS n FROM t WHERE u <> 'FFFFFFFF-0000-0000-0000-000000000000' GROUP BY u",
        "SELECT u, MIN(c), COUNT(*) FROM t WHERE u <> 'ffffffff-0000-0000-0000-000000000000' GROUP BY u",
    ),
    (
        "SELECT b + 1 AS b, w * 2 AS w, SUM(b) AS total FROM t GROUP BY b, w",
        "SELECT b::INT + 1, w::BIGINT * 2, SUM(b) FROM t GROUP BY b, w",
    ),
    (
        "SELECT x.k, y.k AS other FROM t x JOIN t y ON x.b = y.k",
        None,
    ),
    (
        "SELECT k % 2 AS g, collect_list(b) AS l, collect_set(k) AS ks FROM t GROUP BY k % 2",
        "SELECT k % 2, coalesce(list(b ORDER BY b) FILTER (b IS NOT NULL), []), "
        "coalesce(list_sort(list(DISTINCT k) FILTER (k IS NOT NULL)), []) FROM t GROUP BY k % 2",
    ),
    (
        "SELECT array_agg(j ORDER BY k DESC NULLS LAST, j) AS l, array_agg(DISTINCT b) FILTER (WHERE b > 1) "
        "AS d FROM t",
        "SELECT coalesce(list(j ORDER BY k DESC NULLS LAST, j) FILTER (j IS NOT NULL), []), "
        "coalesce(list_sort(list(DISTINCT b) FILTER (b > 1)), []) FROM t",
    ),
    (
        "SELECT k, x FROM t LATERAL VIEW explode(a) e AS x",
        "SELECT k, unnest(a) FROM t",
    ),
    (
        "SELECT k, x FROM t LATERAL VIEW OUTER explode(a) e AS x",
        "SELECT k, unnest(CASE WHEN len(a) > 0 THEN a ELSE [NULL] END) FROM t",
    ),
    (
        "SELECT k, x, n FROM t CROSS JOIN UNNEST(t.a) WITH ORDINALITY AS e(x, n)",
        "SELECT k, unnest(a), unnest(range(1, len(a) + 1)) FROM t WHERE len(a) > 0",
    ),
    (
        "SELECT x, COUNT(*) AS n FROM t, LATERAL explode(t.a) AS e(x) GROUP BY x",
        "SELECT x, COUNT(*) FROM (SELECT unnest(a) AS x FROM t) GROUP BY x",
    ),
    (
        "SELECT DISTINCT o.n, x FROM o LATERAL VIEW explode(o.a) e AS x JOIN t ON t.k = x",
        "SELECT DISTINCT n, x FROM (SELECT n, unnest(a) AS x FROM o) JOIN t ON t.k = x",
    ),
    (
        "SELECT k, explode(s.y) AS y FROM t WHERE k > 0",
        "SELECT k, unnest(s.y) FROM t WHERE k > 0",
    ),
    (
        "SELECT k, posexplode(a) AS (p, x) FROM t",
        "SELECT k, unnest(range(0, len(a)))::INT, unnest(a) FROM t WHERE len(a) > 0",
    ),
    (
        "SELECT x FROM t LATERAL VIEW explode(a) e AS x EXCEPT SELECT k FROM t",
        "SELECT x FROM (SELECT unnest(a) AS x FROM t) EXCEPT SELECT k FROM t",
    ),
]


def random_row(source: random.Random, table: str) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if source.random() < 0.2 else value

    numbers = [maybe(source.choice([0, 1, 2])) for _ in range(source.randint(0, 3))]
    if table == "o":
        return {"a": maybe(numbers), "n": maybe(source.randint(0, 2))}
    words = [maybe(source.choice(["", "x", "\0é"])) for _ in range(source.randint(0, 2))]
    pairs = [(key, maybe(source.choice([0.0, -0.0, math.nan, 1.5]))) for key in "qp" if source.random() < 0.5]
    json = ['{"p": {"q": "z"}, "r": 1}', '{"p": [1]}', '{"r": "é"}', "{}"]
    return {
        "k": maybe(source.randint(0, 3)),
        "a": maybe(numbers),
        "s": maybe({"x": maybe(source.randint(0, 1)), "y": maybe(words)}),
        "m": maybe(pairs),
        "u": maybe(str(uuid.UUID(int=source.randint(0, 2)))),
        "c": maybe(datetime.time(source.choice([0, 6, 23]), 30, 0, source.choice([0, 500]))),
        "j": maybe(source.choice(json)),
        "b": maybe(source.choice([0, 1, 255])),
        "w": maybe(source.choice([0, 2**32 - 1])),
    }


class Tables:
    """The rows as they should be, and DuckDB's answers over them."""

    def __init__(self, seed: int) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"t": [], "o": []}
        self.source = random.Random(seed)

    def batches(self, count: int) -> Iterator[dict[str, pa.Table]]:
        for _ in range(count):
            changes: dict[str, list[dict[str, Any]]] = {"t": [], "o": []}
            for _ in range(self.source.randint(1, 8)):
                table = self.source.choice(["t", "t", "o"])
                if self.rows[table] and self.source.random() < 0.4:
                    row = self.rows[table].pop(self.source.randrange(len(self.rows[table])))
                    changes[table].append({**row, "_change_type": "delete"})
                else:
                    row = random_row(self.source, table)
                    self.rows[table].append(row)
                    changes[table].append({**row, "_change_type": "insert"})
            yield {
                name: pa.Table.from_pylist(rows, ARROW[name].append(pa.field("_change_type", pa.string())))
                for name, rows in changes.items()
                if rows
            }

    def answer(self, sql: str) -> Counter[Any]:
        with duckdb.connect() as connection:
            for name, rows in self.rows.items():
                connection.register(name, pa.Table.from_pylist(rows, ARROW[name]))
            return multiset(connection.execute(sql).fetchall())


@pytest.mark.parametrize(("sql", "duck"), QUERIES)
def test_nested_values_are_what_duckdb_says(sql: str, duck: str | None, tmp_path: Path) -> None:
    for seed in (1, 2):
        check_three_ways(sql, duck or sql, SCHEMA, Tables(seed), tmp_path, f"seed {seed}")


def test_python_values_and_look_ups() -> None:
    view = crown.View("SELECT k, a, s, m, u, c, b FROM t", SCHEMA)
    row = (1, (1, None), {"x": 2}, {"p": 1.5}, uuid.UUID(int=7), datetime.time(1, 2, 3), None, 255, None)
    view.insert("t", [row])
    shown = (1, [1, None], {"x": 2, "y": None}, {"p": 1.5}, str(uuid.UUID(int=7)), datetime.time(1, 2, 3), 255)
    assert list(view) == [shown]
    assert shown in view
    assert (*shown[:1], [1], *shown[2:]) not in view
    view.insert("t", [dict.fromkeys(ARROW["t"].names) | {"a": [3], "s": (1, ["x"]), "m": [("p", None)]}])
    assert len(view) == 2
    view.delete("t", [row])
    assert list(view) == [(None, [3], {"x": 1, "y": ["x"]}, {"p": None}, None, None, None)]


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("a", ["x"], "expected INT"),
        ("a", 3, "expected ARRAY<INT>"),
        ("s", {"z": 1}, "no field 'z'"),
        ("s", (1,), "expected STRUCT"),
        ("m", {None: 1.0}, "NULL as a key"),
        ("m", [("p", 1.0), ("p", 2.0)], "key twice"),
        ("u", "not one", "expected UUID"),
        ("c", "12:00", "expected TIME"),
        ("b", -1, "out of range"),
        ("b", 256, "out of range"),
        ("w", 2**32, "out of range"),
    ],
)
def test_values_that_do_not_fit_are_refused(column: str, value: Any, why: str) -> None:
    view = crown.View("SELECT * FROM t", SCHEMA)
    row = [None] * len(ARROW["t"])
    row[ARROW["t"].get_field_index(column)] = value
    with pytest.raises(crown.CrownError, match=why):
        view.insert("t", [tuple(row)])
    assert len(view) == 0


def test_arrow_values_that_do_not_fit_are_refused_row_by_row() -> None:
    view = crown.View("SELECT a, b FROM t", {"t": {"a": "ARRAY<TINYINT>", "b": "uint8"}}, on_invalid="quarantine")
    rows = {"a": pa.array([[1], [300], [2]], pa.large_list(pa.int64())), "b": pa.array([1, 2, -1])}
    view.insert("t", pa.table(rows))
    assert list(view) == [([1], 1)]
    assert [one["reason"].split(":")[0].split("] ")[1] for one in view.rejected().to_pylist()] == [
        "column 'a'",
        "column 'b'",
    ]
    with pytest.raises(crown.CrownError, match="expected ARRAY<TINYINT>"):
        view.insert("t", pa.table({"a": ["x"], "b": [1]}))


def test_lists_of_every_arrow_kind_are_arrays() -> None:
    view = crown.View("SELECT a FROM t", "CREATE TABLE t (a ARRAY<INT>)")
    values = [[1, 2], None, [3, None]]
    for kind in (pa.list_(pa.int8()), pa.large_list(pa.int64()), pa.list_(pa.int32(), 2)):
        view.insert("t", pa.table({"a": pa.array([[0, 0], *values], kind)}).slice(1))
    assert multiset(view) == multiset((value,) for value in values * 3)


def test_an_index_outside_an_array_is_an_error_in_spark_and_null_elsewhere() -> None:
    view = crown.View("SELECT a[2] AS x FROM t", SCHEMA)
    with pytest.raises(crown.CrownError, match="index 2 is not in an array of 1 elements") as raised:
        view.insert("t", [(1, [5], *[None] * 7)])
    assert raised.value.code == "CROWN-ARRAY-INDEX"
    assert len(view) == 0
    other = crown.View("SELECT a[2] AS x FROM t", "CREATE TABLE t (a INT[], b UTINYINT)", dialect="duckdb")
    other.insert("t", [([5, 6], 1), ([5], None)])
    assert multiset(other) == multiset([(6,), (None,)])


def test_a_map_with_a_key_twice_is_an_error() -> None:
    view = crown.View("SELECT map(k, 1, 1, 2) AS m FROM t", SCHEMA)
    with pytest.raises(crown.CrownError, match="key twice") as raised:
        view.insert("t", [(1, *[None] * 8)])
    assert raised.value.code == "CROWN-MAP-KEY"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT s.z FROM t", "the struct has no field z"),
        ("SELECT a.x FROM t", "no table or alias a"),
        ("SELECT k[0] AS x FROM t", "INT has no elements"),
        ("SELECT a + 1 AS x FROM t", "ARRAY<INT>"),
        ("SELECT CAST(a AS STRING) AS x FROM t", "can't be converted to STRING"),
        ("SELECT k, x FROM t LATERAL VIEW explode(k) e AS x", "INT can't be unnested"),
        ("SELECT size(k) AS x FROM t", "expected an array or a map, not INT"),
    ],
)
def test_errors_name_types_as_they_are_written(sql: str, why: str) -> None:
    with pytest.raises(crown.SqlError, match=why):
        crown.View(sql, SCHEMA)


def test_nested_values_leave_the_dictionary_with_their_rows() -> None:
    view = crown.View("SELECT k, a, explode(a) AS x FROM t", SCHEMA)
    rows = [(number, [number, number + 1], *[None] * 7) for number in range(200)]
    view.insert("t", rows)
    held = view.stats()["interner"]["values"]
    view.delete("t", rows)
    assert len(view) == 0
    assert view.stats()["interner"]["values"] < held / 10


def test_explain_says_what_unnest_costs() -> None:
    view = crown.View("SELECT k, x FROM t LATERAL VIEW explode(a) e AS x", SCHEMA)
    assert "one row for each element of the array" in str(view.explain())


def test_skewness_and_kurtosis_are_those_of_spark() -> None:
    view = crown.View(
        "SELECT k, SKEWNESS(x) AS s, KURTOSIS(x) AS q FROM r GROUP BY k", "CREATE TABLE r (k INT, x DOUBLE)"
    )
    source, values = random.Random(3), dict[int, list[float]]()
    for _ in range(60):
        key = source.randint(0, 2)
        own = values.setdefault(key, [])
        if own and source.random() < 0.4:
            view.delete("r", [(key, own.pop(source.randrange(len(own))))])
        else:
            own.append(source.choice([1e6, 1e6 + 1, 1e6 + 2.5, -3.0]))
            view.insert("r", [(key, own[-1])])
        expected = {key: moments(own) for key, own in values.items() if own}
        got = {key: (s, q) for key, s, q in view}
        assert got.keys() == expected.keys()
        for key, pair in expected.items():
            for wanted, found in zip(pair, got[key], strict=True):
                assert (found is None) if wanted is None else found == pytest.approx(wanted, rel=1e-7, abs=1e-9)


def moments(values: list[float]) -> tuple[float | None, float | None]:
    mean = math.fsum(values) / len(values)
    second, third, fourth = (math.fsum((value - mean) ** power for value in values) for power in (2, 3, 4))
    if len(set(values)) == 1:
        return None, None
    count = len(values)
    return math.sqrt(count) * third / second**1.5, count * fourth / second**2 - 3


@pytest.mark.parametrize("array", ["a", "split(s, ',')"])
def test_the_element_before_the_first_is_an_error(array: str) -> None:
    """As in Spark, where TRY_ELEMENT_AT only forgives an index beyond the last."""
    schema = "CREATE TABLE t (k INT, a ARRAY<STRING>, s STRING)"
    view = crown.View(f"SELECT try_element_at({array}, k) AS e FROM t", schema)
    view.insert("t", [(1, ["x", "y"], "x,y"), (-1, ["x", "y"], "x,y"), (9, ["x", "y"], "x,y"), (0, None, None)])
    assert Counter(view) == {("x",): 1, ("y",): 1, (None,): 2}
    with pytest.raises(crown.CrownError) as caught:
        view.insert("t", [(0, ["x", "y"], "x,y")])
    assert caught.value.code == "CROWN-ARRAY-INDEX"


def test_fields_that_differ_only_in_case_are_ambiguous() -> None:
    schema = "CREATE TABLE r (s STRUCT<a: INT, A: INT>)"
    view = crown.View("SELECT s FROM r", schema)
    view.insert("r", [({"a": 1, "A": 2},)])
    assert list(view) == [({"a": 1, "A": 2},)]
    for sql in ("SELECT s.a FROM r", "SELECT s.`A` FROM r", "SELECT s['A'] FROM r"):
        with pytest.raises(crown.CrownError) as caught:
            crown.View(sql, schema)
        assert caught.value.code == "CROWN-SQL-AMBIGUOUS-COLUMN"
