"""Outer joins through a view: one tree, every door, DuckDB as judge after every batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import crown
from crown.ir.plan import TreeStage
from crown.plan import plan
from crown.sql import parse
from tests.support.followed import Followed
from tests.support.judge import Change, Judge

SCHEMA = """
CREATE TABLE a (id BIGINT NOT NULL, k BIGINT, j BIGINT, x STRING);
CREATE TABLE b (k BIGINT, v BIGINT, w STRING);
CREATE TABLE c (k BIGINT NOT NULL, y BIGINT, PRIMARY KEY (k));
CREATE TABLE d (k BIGINT, l BIGINT, z DOUBLE)
"""
TABLES = {"a": "nkks", "b": "kks", "c": "nk", "d": "kkf"}

ONE_TREE = [
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.id, b.k AS bk, b.v, b.w FROM a LEFT JOIN b ON b.k = a.k AND b.v > 1",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.x = 's1'",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.j = b.v",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.x = 's1'",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON TRUE",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON FALSE",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k + 1 = b.k",
    "SELECT a.x, b.v FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT DISTINCT a.x, b.w FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT DISTINCT a.x FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT b.v, a.id FROM b RIGHT JOIN a ON a.k = b.k",
    "SELECT a.id, b.v, c.y, d.z FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.j = c.k LEFT JOIN d ON d.k = a.id",
    "SELECT a.id, b.v, c.y, d.z FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.v = c.k LEFT JOIN d ON d.k = c.y",
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN (b LEFT JOIN c ON c.k = b.v) ON a.k = b.k",
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN (b LEFT JOIN c ON TRUE) ON a.k = b.k",
    "SELECT a.id, b.v, d.l FROM a JOIN d ON a.id = d.k LEFT JOIN b ON d.l = b.k",
    "SELECT a.id, b.v, d.l FROM a LEFT JOIN b ON a.k = b.k JOIN d ON a.id = d.k",
    "SELECT a.id, p.v AS v1, q.v AS v2 FROM a LEFT JOIN b AS p ON a.k = p.k LEFT JOIN b AS q ON a.j = q.k",
    "SELECT a.id, s.one, s.e FROM a LEFT JOIN (SELECT k, 1 AS one, COALESCE(v, 9) AS e FROM b) AS s ON a.k = s.k",
    "SELECT a.id, s.n, s.t FROM a LEFT JOIN (SELECT k, COUNT(*) AS n, SUM(v) AS t FROM b GROUP BY k) AS s ON a.k = s.k",
    "SELECT a.id, s.e FROM a LEFT JOIN "
    "(SELECT b.k, COALESCE(c.y, 7) AS e FROM b LEFT JOIN c ON b.v = c.k) AS s ON a.k = s.k",
    "SELECT a.id, COALESCE(b.v, 0) AS v, b.v IS NULL AS no FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k WHERE b.v IS NULL OR b.v > 1",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k WHERE COALESCE(b.v, a.j) < 3",
    "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
    "SELECT a.id FROM a LEFT JOIN c ON a.k = c.k WHERE c.k IS NULL",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 1",
    "SELECT a.x, COUNT(*) AS n, COUNT(b.v) AS m, SUM(b.v) AS s FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.x",
    "SELECT b.w, COUNT(*) AS n, SUM(a.j) AS s FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.w",
    "SELECT a.x, b.w, AVG(b.v) AS m FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.x, b.w",
    "SELECT COUNT(*) AS n, COUNT(b.k) AS m, SUM(a.j * b.v) AS p, SUM(COALESCE(b.v, 1)) AS q "
    "FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.x, SUM(COALESCE(b.v, a.k)) AS s FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.x",
    "SELECT a.x, SUM(c.y) AS s, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.v = c.k GROUP BY a.x",
    "SELECT a.x, MIN(b.v) AS lo, COUNT(DISTINCT b.w) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.x",
    "SELECT COALESCE(b.w, 'none') AS w, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY COALESCE(b.w, 'none')",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM d WHERE d.k = a.id)",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k ORDER BY b.v, a.id LIMIT 4",
    "SELECT a.id, d.z FROM a LEFT JOIN d ON a.k = d.k AND a.j = d.l AND d.z > 0.5 AND a.x <> 's0'",
]
SEVERAL_TREES = {
    # Two tables of the kept side in ON, an optional side of two tables, a condition that reads the
    # optional side.
    "SELECT a.id, b.v, c.y FROM a JOIN b ON a.id = b.v LEFT JOIN c ON c.k = a.k AND c.y = b.k": 2,
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN (b JOIN c ON b.v = c.k) ON a.k = b.k": 2,
    "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = b.v)": 2,
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = COALESCE(b.v, 1)": 2,
    "SELECT a.id, b.v, c.y FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.j AND b.v IS NULL": 3,
    "SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k": 2,
    "SELECT a.id, b.v, d.z FROM a FULL JOIN b ON a.k = b.k LEFT JOIN d ON d.k = b.v": 2,
}
WAYS: list[dict[str, Any]] = [{}, {"threads": 2}, {"threads": 3}, {"threads": 4}, {"deltas": False}]


def trees(sql: str) -> int:
    return sum(isinstance(stage, TreeStage) for stage in plan(parse(sql, SCHEMA)).stages)


def random_row(rng: random.Random, domains: str) -> tuple[Any, ...]:
    def value(domain: str) -> Any:
        if domain != "n" and rng.random() < 0.15:
            return None
        number = rng.randint(0, 3)
        return {"s": f"s{number}", "f": number / 2}.get(domain, number)

    return tuple(value(domain) for domain in domains)


def random_batch(rng: random.Random, judge: Judge) -> list[Change]:
    changes = []
    for name, domains in TABLES.items():
        live = list(judge.tables[name].elements())
        for row in rng.sample(live, rng.randint(0, len(live)) if rng.random() < 0.4 else 0):
            changes.append(Change(name, row, -1))
        rows = [random_row(rng, domains) for _ in range(rng.randint(0, 4))]
        if name == "c":  # has a key
            taken = {row[0] for row in live}
            rows = list({row[0]: row for row in rows if row[0] not in taken}.values())
        changes += [Change(name, row) for row in rows]
    return changes


def follow(sql: str, rng: random.Random, batches: int = 6) -> None:
    judge = Judge(sql, SCHEMA)
    way = rng.choice(WAYS)
    views = [
        Followed("one cell", crown.View(sql, SCHEMA)),
        Followed(str(way), crown.View(sql, SCHEMA, **way), pulled="deltas" in way),
        Followed("single updates", crown.View(sql, SCHEMA), single=True),
    ]
    for number in range(batches):
        batch = random_batch(rng, judge)
        if number == batches - 1:
            batch = [Change(n, row, -1) for n in TABLES for row in judge.tables[n].elements()]
        for one in views:
            one.last = one.apply(judge.as_arrow(batch))  # type: ignore[attr-defined]
        judge.apply(batch)
        for one in views:
            one.check_delta(judge, one.last)  # type: ignore[attr-defined]
            one.check(judge)
        if number == batches // 2:
            for one in views:
                one.reload()
                one.check(judge)


@pytest.mark.parametrize("sql", ONE_TREE)
def test_outer_joins_by_key_are_one_tree(sql: str, rng: random.Random) -> None:
    nested = sql.count("GROUP BY k")
    assert trees(sql) == 1 + nested
    follow(sql, rng)


@pytest.mark.parametrize("sql", SEVERAL_TREES)
def test_other_outer_joins_are_a_tree_for_each_case(sql: str, rng: random.Random) -> None:
    assert trees(sql) == SEVERAL_TREES[sql]
    follow(sql, rng)


def star(children: int) -> tuple[str, str]:
    """A table with a key to each of `children` others, all joined by LEFT JOIN."""
    keys = ", ".join(f"k{i} BIGINT" for i in range(children))
    schema = f"CREATE TABLE fact (id BIGINT NOT NULL, {keys});"
    schema += "".join(f"CREATE TABLE d{i} (id BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id));" for i in range(children))
    shown = ", ".join(f"d{i}.v AS v{i}" for i in range(children))
    joins = " ".join(f"LEFT JOIN d{i} ON fact.k{i} = d{i}.id" for i in range(children))
    return f"SELECT fact.id, {shown} FROM fact {joins}", schema


def test_twenty_outer_joins_are_one_tree(rng: random.Random) -> None:
    sql, schema = star(20)
    (tree,) = [stage for stage in plan(parse(sql, schema)).stages if isinstance(stage, TreeStage)]
    assert len(tree.atoms) == 21
    assert [node.edge for node in tree.nodes].count("optional") == 20
    judge, views = Judge(sql, schema), [crown.View(sql, schema), crown.View(sql, schema, threads=3)]
    for number in range(6):
        batch = [
            Change("fact", (number * 10 + i, *(rng.choice([None, rng.randint(0, 3)]) for _ in range(20))))
            for i in range(rng.randint(0, 4))
        ]
        for i in range(20):
            live = list(judge.tables[f"d{i}"].elements())
            batch += [Change(f"d{i}", row, -1) for row in live if rng.random() < 0.5]
            fresh = {rng.randint(0, 3) for _ in range(rng.randint(0, 2))} - {row[0] for row in live}
            batch += [Change(f"d{i}", (key, rng.choice([None, number]))) for key in sorted(fresh)]
        changes = judge.as_arrow(batch)
        deltas = [view.apply(changes) for view in views]
        judge.apply(batch)
        for view, delta in zip(views, deltas, strict=True):
            judge.check_delta(delta)
            judge.check_result(view.to_arrow())
            assert len(view) == judge.result.total()


def steps(view: crown.View) -> int:
    """What the trees have done so far: rows that moved between views, and counters that changed."""
    nodes = [node for stage in view.stats()["stages"] for node in stage.get("nodes", ())]
    return sum(node["moves"] + node["counter_changes"] for node in nodes)


def cost(view: crown.View, change: Callable[[], object]) -> int:
    before = steps(view)
    change()
    return steps(view) - before


def test_a_change_among_twenty_outer_joins_costs_the_same_in_tables_of_any_size() -> None:
    sql, schema = star(20)
    costs, sizes = [], []
    for rows in (100, 1000):
        view = crown.View(sql, schema)
        view.insert("fact", [(i, *[i] * 20) for i in range(rows)])
        for child in range(20):
            view.insert(f"d{child}", [(i, i) for i in range(0, rows, 2)])
        sizes.append(view.stats()["bytes"])
        changes = [
            partial(view.insert, "d3", [(7, 1)]),
            partial(view.insert, "d3", [(7, 2)]),
            partial(view.delete, "d3", [(7, 2)]),
            partial(view.insert, "fact", [(rows, *[3] * 20)]),
            partial(view.delete, "fact", [(rows, *[3] * 20)]),
        ]
        costs.append([cost(view, change) for change in changes])
    assert costs[0] == costs[1]
    assert max(costs[0]) <= 4 * 21
    assert sizes[1] < 12 * sizes[0], "space is linear in the tables"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a",
        "SELECT a.id FROM a WHERE a.j = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "SELECT a.id, a.k IN (SELECT b.k FROM b WHERE b.v > 0) AS m FROM a",
        "SELECT a.id, (SELECT COUNT(*) FROM b WHERE b.k = a.k) AS n FROM a",
        "SELECT a.id, (SELECT MAX(v) FROM b WHERE b.k = a.k) AS n FROM a",
    ],
)
def test_a_mark_costs_the_same_in_tables_of_any_size(sql: str) -> None:
    costs = []
    for rows in (100, 1000):
        view = crown.View(sql, SCHEMA)
        view.insert("a", [(i, i, 0, "x") for i in range(rows)])
        view.insert("b", [(i, 1, "w") for i in range(0, rows, 2)])
        changes = [
            partial(view.insert, "b", [(7, 1, "w")]),
            partial(view.insert, "b", [(7, 2, "w")]),
            partial(view.delete, "b", [(7, 1, "w"), (7, 2, "w")]),
            partial(view.insert, "a", [(rows, 8, 0, "x")]),
            partial(view.delete, "a", [(rows, 8, 0, "x")]),
        ]
        costs.append([cost(view, change) for change in changes])
    assert costs[0] == costs[1]
    assert max(costs[0]) <= 12


def test_a_match_changes_the_rows_of_its_key_alone() -> None:
    view = crown.View("SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k", SCHEMA)
    assert view.insert("a", [(1, 5, 0, "x"), (2, 5, 0, "x"), (3, 6, 0, "x"), (4, None, 0, "x")]).num_rows == 4
    first = view.insert("b", [(5, 10, "w")]).to_pylist()
    assert sorted((r["id"], str(r["v"]), r["_change_type"]) for r in first) == [
        (1, "10", "insert"),
        (1, "None", "delete"),
        (2, "10", "insert"),
        (2, "None", "delete"),
    ]
    assert view.insert("b", [(5, 11, "w")]).num_rows == 2
    assert view.delete("b", [(5, 10, "w")]).num_rows == 2
    assert view.delete("b", [(5, 11, "w")]).num_rows == 4
    assert sorted(view, key=str) == [(1, None), (2, None), (3, None), (4, None)]


def test_a_row_of_nulls_is_a_match() -> None:
    view = crown.View("SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k", SCHEMA)
    view.insert("a", [(1, 5, 0, "x")])
    assert view.insert("b", [(5, None, "w")]).num_rows == 0
    assert view.insert("b", [(5, None, "v")]).to_pylist() == [
        {"id": 1, "v": None, "_change_type": "insert", "_multiplicity": 1}
    ]
    assert view.multiplicity((1, None)) == 2
    view.delete("b", [(5, None, "w"), (5, None, "v")])
    assert view.multiplicity((1, None)) == 1


def random_query(rng: random.Random) -> str:
    """Joins of every kind, mostly LEFT, by keys of any table before, under any SELECT."""
    columns = {"a": ["id", "k", "j"], "b": ["k", "v"], "c": ["k", "y"], "d": ["k", "l"]}
    known: list[str] = []
    text = ""
    for number in range(rng.randint(2, 6)):
        table = rng.choice(list(columns))
        own = [f"t{number}.{name}" for name in columns[table]]
        if not known:
            text = f"{table} AS t{number}"
        else:
            kind = rng.choices(["LEFT", "INNER", "RIGHT", "FULL"], [7, 2, 1, 1])[0]
            on = [f"{rng.choice(known)} = {rng.choice(own)}"]
            on += [f"{rng.choice(known)} = {rng.choice(own)}"] * (rng.random() < 0.2)
            on += [f"{rng.choice(own)} <> {rng.randint(0, 3)}"] * (rng.random() < 0.2)
            on += [f"{rng.choice(known)} > {rng.randint(0, 3)}"] * (rng.random() < 0.2)
            on += [f"{rng.choice(known)} IS NULL"] * (rng.random() < 0.1)
            text += f" {kind} JOIN {table} AS t{number} ON {' AND '.join(on)}"
        known += own
    one, other = rng.choice(known), rng.choice(known)
    filters = ["", "", f"{one} IS NULL", f"{one} > 1", f"{one} IS NULL OR {one} < {other}", f"COALESCE({one}, 0) < 2"]
    where = rng.choice(filters)
    text += f" WHERE {where}" if where else ""
    shown = [rng.choice([c, c, f"COALESCE({c}, 9)"]) for c in rng.choices(known, k=rng.randint(1, 3))]
    if rng.random() < 0.5:
        items = ", ".join(f"{item} AS o{i}" for i, item in enumerate(shown))
        return f"SELECT {rng.choice(['', 'DISTINCT '])}{items} FROM {text}"
    forms = ["COUNT(*)", "COUNT({0})", "SUM({0})", "SUM({0} * {1})", "SUM(COALESCE({0}, 1))", "MAX({0})"]
    totals = [rng.choice(forms).format(rng.choice(known), rng.choice(known)) for _ in range(2)]
    items = ", ".join(f"{item} AS o{i}" for i, item in enumerate([*shown, *totals]))
    return f"SELECT {items} FROM {text} GROUP BY {', '.join(dict.fromkeys(shown))}"


@pytest.mark.parametrize("number", range(30))
def test_random_outer_joins(number: int, rng: random.Random) -> None:
    sql = random_query(rng)
    try:
        parse(sql, SCHEMA)
    except crown.CrownError as error:
        pytest.skip(f"{error.code}: {sql}")
    follow(sql, rng, batches=4)


COMMAS = [
    "SELECT a.id, b.v, d.l FROM a JOIN b RIGHT JOIN d ON b.k = d.k",
    "SELECT a.id, b.v, d.l FROM a, b RIGHT JOIN d ON b.k = d.k",
    "SELECT a.id, b.v, d.l FROM a, b full join d ON b.k = d.k",
    "SELECT a.id, b.v, d.l FROM a, (SELECT v FROM b) AS b NATURAL LEFT JOIN (SELECT k, l FROM d) AS d",
]


@pytest.mark.parametrize("sql", COMMAS)
def test_a_comma_before_a_join_is_joined_first_as_in_spark(sql: str) -> None:
    view, judge = crown.View(sql, SCHEMA), Judge(sql, SCHEMA)
    rows: list[tuple[str, tuple[Any, ...]]] = [("a", (1, 1, 1, "x")), ("a", (2, 2, 1, "x")), ("b", (1, 5, "w"))]
    rows += [("d", (1, 7, 0.5)), ("d", (9, 8, 0.5))]
    judge.follow(view, [Change(table, row, 1) for table, row in rows])
    judge.follow(view, [Change("b", (1, 5, "w"), -1)])


@pytest.mark.parametrize("sql", COMMAS)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mysql"])
def test_where_a_comma_comes_after_joins_it_is_refused(sql: str, dialect: str) -> None:
    with pytest.raises(crown.CrownError, match="JOIN after a comma is not supported"):
        crown.View(sql, SCHEMA, dialect=dialect)
