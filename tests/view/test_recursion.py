"""WITH RECURSIVE: closures over cycles, hierarchies, parts lists; under insertions, deletions, failures and reloads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import crown
from crown.errors import CrownError, SqlError
from crown.ir.plan import RecursionStage, every_stage
from crown.workload.footprint import bytes_per_row
from tests.support.followed import Followed
from tests.support.judge import Change, Judge

SCHEMA = """
CREATE TABLE edge (src INT, dst INT);
CREATE TABLE start (id INT);
CREATE TABLE closed (id INT);
CREATE TABLE emp (id INT PRIMARY KEY, boss INT, name STRING);
CREATE TABLE part (whole STRING, piece STRING, quantity DECIMAL(10,2));
"""
CLOSURE = "r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)"
REACHED = "r AS (SELECT id FROM start UNION SELECT edge.dst FROM edge, r WHERE edge.src = r.id)"
QUERIES = {
    "closure": f"WITH RECURSIVE {CLOSURE} SELECT * FROM r",
    "closure by the left": "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT e.src, r.b FROM edge e "
    "JOIN r ON e.dst = r.a) SELECT a, COUNT(*) AS n FROM r GROUP BY a",
    "reached": f"WITH RECURSIVE {REACHED} SELECT id FROM r",
    "not reached": f"WITH RECURSIVE {REACHED} SELECT src FROM edge WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.id = src)",
    "reached, joined outside": f"WITH RECURSIVE {REACHED} SELECT r.id, e.dst, emp.name FROM r JOIN edge e ON "
    "e.src = r.id LEFT JOIN emp ON emp.id = r.id",
    "over a subquery": "WITH RECURSIVE r AS (SELECT id FROM start UNION SELECT x.dst FROM (SELECT r.id + 0 AS id FROM "
    "r WHERE id < 7) y JOIN (SELECT DISTINCT src, dst FROM edge) x ON x.src = y.id) SELECT id FROM r",
    "around what is closed": "WITH RECURSIVE r AS (SELECT id FROM start UNION SELECT e.dst FROM r JOIN edge e ON "
    "e.src = r.id WHERE NOT EXISTS (SELECT 1 FROM closed c WHERE c.id = e.dst)) SELECT id FROM r",
    "with an outer join": "WITH RECURSIVE r(id, tag) AS (SELECT id, 'start' FROM start UNION SELECT e.dst, "
    "COALESCE(emp.name, 'none') FROM r JOIN edge e ON e.src = r.id LEFT JOIN emp ON emp.id = e.dst) SELECT * FROM r",
    "two steps": "WITH RECURSIVE r AS (SELECT id FROM start UNION (SELECT e.dst FROM r, edge e WHERE e.src = r.id "
    "UNION ALL SELECT e.src FROM r, edge e WHERE e.dst = r.id AND e.src > 4)) SELECT id FROM r",
    "triangles": "WITH RECURSIVE r AS (SELECT id FROM start UNION SELECT f.dst FROM r JOIN edge e ON e.src = r.id JOIN "
    "edge f ON f.src = e.dst AND f.dst <> r.id) SELECT id FROM r",
    "distinct step": "WITH RECURSIVE r AS (SELECT id FROM start UNION SELECT DISTINCT e.dst FROM r JOIN edge e ON "
    "e.src = r.id) SELECT id FROM r",
    "limited depth": "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM start UNION SELECT e.dst, depth + 1 FROM r "
    "JOIN edge e ON e.src = r.id WHERE depth < 3) SELECT id, MIN(depth) AS depth FROM r GROUP BY id",
    "all paths of limited depth": "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM start UNION ALL SELECT e.dst, "
    "depth + 1 FROM r JOIN edge e ON e.src = r.id WHERE depth < 3) SELECT * FROM r",
    "all around what is closed": "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM start UNION ALL SELECT e.dst, "
    "depth + 1 FROM r JOIN edge e ON e.src = r.id LEFT JOIN closed c ON c.id = e.dst WHERE depth < 3 AND c.id IS NULL) "
    "SELECT id, COUNT(*) AS n FROM r GROUP BY id",
    "cross join": "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM start UNION ALL SELECT r.id, depth + 1 FROM r, "
    "closed WHERE depth < 2) SELECT * FROM r",
    "two recursions": f"WITH RECURSIVE {REACHED}, q AS (SELECT id FROM r UNION SELECT e.src FROM q JOIN edge e ON "
    "e.dst = q.id) SELECT q.id FROM q WHERE q.id NOT IN (SELECT id FROM r WHERE id IS NOT NULL)",
    "numbers": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6) SELECT n.i, start.id "
    "FROM n LEFT JOIN start ON start.id = n.i",
}


def changes(rng: random.Random, nodes: int, tables: dict[str, int]) -> list[list[Change]]:
    """Batches of few values, so that there are cycles and rows repeat; at last all rows go."""
    live: list[Change] = []
    result = []
    for _ in range(rng.randint(4, 8)):
        batch = []
        for _ in range(rng.randint(1, 8)):
            if live and rng.random() < 0.4:
                gone = live.pop(rng.randrange(len(live)))
                batch.append(Change(gone.table, gone.row, -1))
                continue
            table = rng.choice(list(tables))
            row = tuple(rng.choice([None, *range(nodes)]) for _ in range(tables[table]))
            live.append(Change(table, row))
            batch.append(live[-1])
        result.append(batch)
    result.append([Change(one.table, one.row, -1) for one in live])
    return result


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_random_changes(name: str, threads: int) -> None:
    for seed in range(5):
        rng = random.Random(f"{name} {seed}")
        judge = Judge(QUERIES[name], SCHEMA)
        followed = Followed(f"seed {seed}", crown.View(QUERIES[name], SCHEMA, threads=threads), single=seed % 4 == 3)
        for number, batch in enumerate(changes(rng, 8, {"edge": 2, "start": 1, "closed": 1})):
            delta = followed.apply(judge.as_arrow(batch))
            judge.apply(batch)
            followed.check_delta(judge, delta)
            followed.check(judge)
            if number == 2 + seed % 2:
                followed.reload()
                followed.check(judge)


def view(sql: str, **options: Any) -> crown.View:
    return crown.View(f"WITH RECURSIVE {sql}", SCHEMA, **options)


def rows(one: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(one, key=str)


def test_a_row_does_not_support_itself() -> None:
    one = view(f"{REACHED} SELECT id FROM r")
    one.apply({"start": [(1,)], "edge": [(1, 2), (2, 3), (3, 2)]})
    assert rows(one) == [(1,), (2,), (3,)]
    delta = one.delete("edge", [(1, 2)])
    assert rows(one) == [(1,)]
    assert sorted(row["id"] for row in delta.to_pylist()) == [2, 3]


def test_a_derivation_that_goes_does_not_hide_behind_one_that_comes() -> None:
    sql = f"WITH RECURSIVE {REACHED} SELECT id FROM r"
    one, judge = crown.View(sql, SCHEMA), Judge(sql, SCHEMA)
    judge.follow(one, [Change("start", (1,)), Change("edge", (1, 2)), Change("edge", (2, 3))])
    judge.follow(one, [Change("edge", (1, 2), -1), Change("edge", (3, 2))])
    assert rows(one) == [(1,)]


def test_a_change_that_leaves_the_result_has_no_delta() -> None:
    one = view(f"{REACHED} SELECT id FROM r")
    one.apply({"start": [(1,)], "edge": [(1, 2), (1, 3), (3, 2), (2, 4)]})
    assert one.delete("edge", [(1, 2)]).num_rows == 0


def test_an_organisation_with_depth_and_path() -> None:
    one = view(
        "org AS (SELECT id, name AS path, 0 AS depth FROM emp WHERE boss IS NULL UNION ALL "
        "SELECT e.id, org.path || '/' || e.name, depth + 1 FROM org JOIN emp e ON e.boss = org.id) "
        "SELECT path, depth FROM org"
    )
    one.insert("emp", [(1, None, "ada"), (2, 1, "bob"), (3, 2, "cyd"), (4, 2, "dan")])
    assert rows(one) == [("ada", 0), ("ada/bob", 1), ("ada/bob/cyd", 2), ("ada/bob/dan", 2)]
    delta = one.insert("emp", [(3, 1, "cyd")])  # an upsert: cyd moves up
    assert rows(one) == [("ada", 0), ("ada/bob", 1), ("ada/bob/dan", 2), ("ada/cyd", 1)]
    assert delta.num_rows == 2


def test_parts_of_parts_with_quantities() -> None:
    one = view(
        "bom(part, quantity) AS (SELECT piece, CAST(quantity AS DOUBLE) FROM part WHERE whole = 'car' UNION ALL "
        "SELECT p.piece, CAST(bom.quantity * p.quantity AS DOUBLE) FROM bom JOIN part p ON p.whole = bom.part) "
        "SELECT part, SUM(quantity) AS total FROM bom GROUP BY part"
    )
    one.insert("part", [("car", "axle", 2), ("axle", "wheel", 2), ("wheel", "bolt", 5), ("car", "wheel", 1)])
    assert rows(one) == [("axle", 2.0), ("bolt", 25.0), ("wheel", 5.0)]
    one.delete("part", [("car", "wheel", 1)])
    assert rows(one) == [("axle", 2.0), ("bolt", 20.0), ("wheel", 4.0)]


def test_union_all_counts_every_path() -> None:
    one = view("r AS (SELECT id FROM start UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r")
    levels = [(level, level + 1) for level in range(40) for _ in range(2)]
    one.apply({"start": [(0,)], "edge": levels})
    counted = one.to_arrow(multiplicity=True).to_pylist()
    assert {row["id"]: row["_multiplicity"] for row in counted} == {level: 2**level for level in range(41)}
    one.delete("edge", [(0, 1)])
    assert one.multiplicity((40,)) == 2**39 and len(one) == 2**40


def test_a_long_chain_has_no_limit_where_the_query_ends() -> None:
    one = view(f"{REACHED} SELECT id FROM r")
    one.apply({"start": [(0,)], "edge": [(n, n + 1) for n in range(12_000)]})
    assert len(one) == 12_001
    one.delete("start", [(0,)])
    assert len(one) == 0


ENDLESS = {
    "union all over a cycle": "r AS (SELECT id FROM start UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) "
    "SELECT id FROM r",
    "computed over a cycle": "r(id, depth) AS (SELECT id, 0 FROM start UNION SELECT e.dst, depth + 1 FROM r "
    "JOIN edge e ON e.src = r.id) SELECT id FROM r",
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_without_end_is_refused_and_undone(name: str, threads: int) -> None:
    one = view(ENDLESS[name], threads=threads)
    one.apply({"start": [(1,)], "edge": [(1, 2), (2, 3)]})
    before = rows(one), one.stats()["bytes"]
    with pytest.raises(CrownError, match="the recursive query r has not come to an end after 10000 rounds") as caught:
        one.apply({"edge": [(3, 1), (3, 4)]})
    assert caught.value.code == "CROWN-RECURSION-LIMIT"
    assert rows(one) == before[0]
    one.apply({"edge": [(3, 4)]})
    assert (4,) in rows(one)
    one.delete("edge", [(3, 4)])
    assert rows(one) == before[0]


def test_a_query_without_end_is_refused_when_it_is_made() -> None:
    with pytest.raises(CrownError) as caught:
        crown.View("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", SCHEMA)
    assert caught.value.code == "CROWN-RECURSION-LIMIT"


def test_a_deep_recursion_that_came_bit_by_bit_is_taken_back_and_loaded(tmp_path: Path) -> None:
    step = "SELECT e.dst, depth + 1 FROM r JOIN edge e ON e.src = r.id"
    one = view(
        f"r(id, depth) AS (SELECT id, 0 FROM start UNION ALL {step}) SELECT id, 100 / (depth - 10500) AS x FROM r"
    )
    one.apply({"start": [(0,)], "edge": [(n, n + 1) for n in range(9_000)]})
    one.apply({"edge": [(n, n + 1) for n in range(9_000, 10_400)]})
    assert len(one) == 10_401
    with pytest.raises(CrownError) as caught:  # beyond depth 10,500, where the stage above divides by 0
        one.apply({"start": [(10_000,)], "edge": [(n, n + 1) for n in range(10_400, 10_600)]})
    assert caught.value.code == "CROWN-DIVIDE-BY-ZERO"
    assert len(one) == 10_401
    one.save(tmp_path / "view")
    assert len(crown.View.load(tmp_path / "view")) == 10_401


def test_a_failure_in_a_round_is_undone() -> None:
    one = view(
        "r(id, x) AS (SELECT id, 100 FROM start UNION ALL SELECT e.dst, 100 DIV (7 - e.dst) FROM r JOIN edge e ON "
        "e.src = r.id) SELECT * FROM r"
    )
    one.apply({"start": [(0,)], "edge": [(n, n + 1) for n in range(4)]})
    before = rows(one)
    with pytest.raises(CrownError) as caught:
        one.apply({"start": [(3,)], "edge": [(n, n + 1) for n in range(4, 9)]})
    assert caught.value.code == "CROWN-DIVIDE-BY-ZERO"
    assert rows(one) == before
    one.delete("edge", [(1, 2)])
    assert rows(one) == [(0, 100), (1, 16)]


def test_strings_are_given_back() -> None:
    one = view(
        "r(p) AS (SELECT whole FROM part UNION SELECT part.piece FROM r JOIN part ON part.whole = r.p) SELECT p FROM r"
    )
    parts = [(f"part {n}", f"part {(n * 7 + 1) % 50}", 1) for n in range(50)]
    one.insert("part", parts)
    held = one.stats()["interner"]["values"]
    for number in range(5):
        one.insert("part", [("part 3", f"extra {number}", 1)])
        one.delete("part", [("part 3", f"extra {number}", 1)])
    assert one.stats()["interner"]["values"] == held
    one.delete("part", parts)
    assert len(one) == 0 and one.stats()["interner"]["values"] == 0


def test_memory_follows_what_is_there() -> None:
    one = view(f"{CLOSURE} SELECT * FROM r")
    edges = [(n, n + 1) for n in range(100)]
    one.insert("edge", edges)
    full = one.stats()["bytes"]
    for _ in range(5):
        one.delete("edge", edges[::2])
        one.insert("edge", edges[::2])
    assert one.stats()["bytes"] < 1.5 * full
    one.delete("edge", edges)
    assert len(one) == 0 and one.stats()["bytes"] < full / 10


def test_work_follows_the_change() -> None:
    """In a hierarchy a row has one derivation, so that a deletion takes away what hangs below it and no more."""
    one = view(f"{REACHED} SELECT id FROM r")
    one.apply({"start": [(1,)], "edge": [(n // 2, n) for n in range(2, 2**12)]})

    def work(batch: dict[str, Any]) -> int:
        before = one.stats()["updates"]
        one.apply(batch)
        return int(one.stats()["updates"] - before)

    leaf = {"edge": [{"src": 2**11 - 1, "dst": 2**12 - 1, "_change_type": "delete"}]}
    assert work(leaf) < 10
    assert work({"edge": [(2**11 - 1, 2**12 - 1)]}) < 10


def test_a_view_over_a_recursive_view() -> None:
    database = crown.Database(
        f"{SCHEMA} CREATE MATERIALIZED VIEW reached AS WITH RECURSIVE {REACHED} SELECT id FROM r; "
        "CREATE MATERIALIZED VIEW names AS SELECT emp.name FROM emp JOIN reached ON reached.id = emp.id; "
        "CREATE MATERIALIZED VIEW again AS WITH RECURSIVE s(n) AS (SELECT x.id FROM start x UNION SELECT f.dst "
        "FROM edge f, s WHERE f.src = s.n) SELECT COUNT(*) AS n FROM s",
        keep="all",
    )
    database.apply({"start": [(1,)], "edge": [(1, 2), (2, 1), (2, 3)], "emp": [(2, 1, "bob"), (4, 1, "dan")]})
    assert rows(database["names"]) == [("bob",)]
    assert rows(database["again"]) == [(3,)]
    stages = [stage for stage in database.explain().project.stages if isinstance(stage, RecursionStage)]
    assert len(stages) == 1, "the two views share it"
    database.execute(f"CREATE MATERIALIZED VIEW late AS WITH RECURSIVE {CLOSURE} SELECT a, b FROM r")
    assert len(database["late"]) == 6
    with pytest.raises(CrownError) as caught:
        database.execute(f"CREATE MATERIALIZED VIEW endless AS WITH RECURSIVE {ENDLESS['union all over a cycle']}")
    assert caught.value.code == "CROWN-RECURSION-LIMIT"
    database.apply({"edge": [(3, 4)]})
    assert rows(database["names"]) == [("bob",), ("dan",)]
    assert len(database["late"]) == 9
    database.execute("DROP VIEW late")
    database.execute("DROP VIEW names")
    database.execute("DROP VIEW again")
    assert rows(database["reached"]) == [(1,), (2,), (3,), (4,)]


def test_explain_says_what_a_round_and_a_deletion_cost() -> None:
    one = crown.View(QUERIES["around what is closed"], SCHEMA)
    text = " ".join(str(one.explain()).split())
    assert "runs in rounds until no new rows appear" in text
    assert "a deletion first removes every row that loses a derivation" in text
    assert "a change of c derives all rows anew" in text
    assert "10,000" not in text
    page = one.explain()
    trees = [stage.id for stage in every_stage(one.plan) if "." in stage.id]
    assert trees and all(tree in page.svg() for tree in trees[:1]) and "WITH RECURSIVE" in page.html()
    bounded = " ".join(str(view(ENDLESS["computed over a cycle"]).explain()).split())
    assert "more than 10,000 rounds is refused" in bounded
    assert set(bytes_per_row(one.plan)) == {"start", "edge", "closed"}


def test_types_are_widened() -> None:
    one = view(
        "r(a, b) AS (SELECT 1, NULL UNION ALL SELECT a + CAST(1 AS BIGINT), a FROM r WHERE a < 3) SELECT a, b FROM r"
    )
    assert [str(field.type) for field in one.to_arrow().schema] == ["int64", "int64"]
    assert rows(one) == [(1, None), (2, 1), (3, 2)]


REFUSED = {
    "the step reads r under an aggregate": "SELECT id FROM start UNION SELECT MAX(id) FROM r",
    "the step reads r under GROUP BY": "SELECT id FROM start UNION SELECT id FROM r GROUP BY id",
    "the step reads r under a window function": "SELECT id FROM start UNION SELECT RANK() OVER (ORDER BY id) FROM r",
    "the step reads r under LIMIT": "SELECT id FROM start UNION (SELECT id FROM r ORDER BY id LIMIT 1)",
    "the step reads r under EXCEPT": "SELECT id FROM start UNION (SELECT id FROM closed EXCEPT SELECT id FROM r)",
    "the step reads r on the optional side of a LEFT JOIN": "SELECT id FROM start UNION SELECT edge.dst FROM edge "
    "LEFT JOIN r ON edge.src = r.id",
    "the step reads r on the optional side of a RIGHT JOIN": "SELECT id FROM start UNION SELECT edge.dst FROM r "
    "RIGHT JOIN edge ON edge.src = r.id",
    "the step reads r on the optional side of a LEFT ANTI JOIN": "SELECT id FROM start UNION SELECT edge.dst FROM edge "
    "LEFT ANTI JOIN r ON edge.src = r.id",
    "the step reads r in a subquery of an expression": "SELECT id FROM start UNION SELECT dst FROM edge WHERE src "
    "NOT IN (SELECT id FROM r)",
    "the step joins the recursive query r with itself": "SELECT id FROM start UNION SELECT a.id FROM r a, r b",
    "the base of the recursive query r reads r": "SELECT id FROM r UNION SELECT id FROM start",
    "the recursive query r is not a UNION": "SELECT id FROM start EXCEPT SELECT id FROM r",
    "ORDER BY in a recursive query": "SELECT id FROM start UNION SELECT id FROM r ORDER BY 1",
    "the type of column id grows with each round": "SELECT CAST(id AS DECIMAL(4,2)) AS id FROM start UNION SELECT "
    "id * 1.5 FROM r",
    "the step reads r under DISTINCT": "SELECT id FROM start UNION ALL SELECT DISTINCT id FROM r",
    "the two sides have 1 and 2 columns": "SELECT id FROM start UNION SELECT id, id FROM r",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str) -> None:
    with pytest.raises(SqlError) as caught:
        view(f"r AS ({REFUSED[message]}) SELECT * FROM r")
    assert message in str(caught.value) and "^" in str(caught.value)


def test_other_refusals() -> None:
    with pytest.raises(SqlError, match="p reads q, which is defined after it"):
        view("p AS (SELECT id FROM start UNION SELECT id FROM q), q AS (SELECT id FROM p) SELECT * FROM q")
    with pytest.raises(SqlError, match="does more with rows of r"):
        view(
            "r AS (SELECT id FROM start UNION (SELECT e.dst FROM r, edge e WHERE e.src = r.id UNION ALL SELECT id FROM "
            "closed)) SELECT * FROM r"
        )
    with pytest.raises(SqlError, match="does more with rows of r"):
        view("r AS (SELECT id FROM start UNION SELECT (SELECT MAX(dst) FROM edge WHERE src < r.id) FROM r) SELECT 1")
    with pytest.raises(SqlError, match="no table in FROM has a column nothing"):
        view("r AS (SELECT id FROM start UNION SELECT nothing FROM r) SELECT 1 FROM start")


def test_a_name_of_its_own_inside_is_no_recursion() -> None:
    one = view("r AS (WITH r AS (SELECT id FROM start) SELECT id FROM r) SELECT id FROM r")
    one.insert("start", [(1,)])
    assert rows(one) == [(1,)]


def test_single_edges_of_a_network_come_and_go() -> None:
    rng = random.Random(4)
    one = view(f"{CLOSURE} SELECT * FROM r")
    edges: Counter[tuple[int, int]] = Counter()
    for _ in range(150):
        edge = (rng.randrange(12), rng.randrange(12))
        if edges[edge] and rng.random() < 0.6:
            edges[edge] -= 1
            one.delete("edge", [edge])
        else:
            edges[edge] += 1
            one.insert("edge", [edge])
        known = {edge for edge, count in edges.items() if count}
        reached = set(known)
        while True:
            more = reached | {(a, c) for a, b in reached for x, c in known if x == b}
            if more == reached:
                break
            reached = more
        assert set(one) == reached
