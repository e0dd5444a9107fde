"""What the views of a database share: stages are stored once, and figures say who reads them."""

from __future__ import annotations

import re

import crown
from tests.view.tags import ROWS, SCHEMA, VIEWS


def test_equal_stages_are_kept_once() -> None:
    db = crown.Database(
        SCHEMA
        + """
        CREATE MATERIALIZED VIEW a AS SELECT x.p1, COUNT(*) AS n FROM knows x JOIN knows y ON x.p2 = y.p1 GROUP BY x.p1;
        CREATE MATERIALIZED VIEW b AS SELECT k.p1 AS who, COUNT(*) + 1 AS m
            FROM knows k JOIN knows l ON k.p2 = l.p1 GROUP BY k.p1;
        CREATE MATERIALIZED VIEW c AS SELECT MAX(n) AS most FROM a;
        """
    )
    trees = [stage for stage in db.stats()["stages"] if stage["kind"] == "tree"]
    assert ["a", "b", "c"] in [stage["shared_by"] for stage in trees]
    assert "share" in str(db.explain("SELECT q.p1, COUNT(*) FROM knows q JOIN knows r ON q.p2 = r.p1 GROUP BY q.p1"))
    db.insert("knows", [(1, 2, 0), (2, 3, 0), (2, 4, 0)])
    assert (list(db["a"]), list(db["b"]), list(db["c"])) == ([(1, 2)], [(1, 3)], [(2,)])
    db.drop("b")
    db.insert("knows", [(2, 5, 0)])
    assert (list(db["a"]), list(db["c"])) == ([(1, 3)], [(3,)])


def test_three_views_over_the_same_tables_take_little_more_than_one() -> None:
    views = {
        "v1": "SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1",
        "v2": "SELECT x.p1 AS source, y.p2 AS target FROM knows x JOIN knows y ON x.p2 = y.p1",
        "v3": "SELECT a.p1, b.p2 FROM knows a JOIN knows b ON a.p2 = b.p1 ORDER BY p1",
    }
    changes = {"knows": [(n % 300, n % 301, n) for n in range(6000)]}
    schema = SCHEMA + "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};" for name, sql in views.items())
    db = crown.Database(schema)
    db.apply(changes)
    alone = []
    for name in views:
        one = crown.Database(SCHEMA + f"CREATE MATERIALIZED VIEW {name} AS {views[name]}")
        one.apply(changes)
        alone.append(one.stats()["bytes"])
    print(db.stats()["bytes"], alone)
    assert db.stats()["bytes"] <= 1.5 * max(alone)


def test_stats_say_who_shares_what(threads: int) -> None:
    db = crown.Database(SCHEMA + VIEWS, threads=threads)
    db.apply(ROWS)
    stats = db.stats()
    assert set(stats["views"]) == {"by_tag", "top_tags", "total"}
    if threads == 1:
        assert "top_tags" in stats["views"]["by_tag"]["shared_with"]
    for view in stats["views"].values():
        assert 0 <= view["own_bytes"] <= view["bytes"] <= stats["bytes"]
        assert view["stages"]
    for stage in stats["stages"]:
        assert all(node["rows"] >= 0 for node in stage["nodes"])


def test_views_with_one_tree_take_the_state_of_one() -> None:
    """Different columns, names, orders and limits over one join; another tree stores its rows separately."""
    join = "FROM tag t JOIN message_tag m ON m.tag = t.id JOIN knows k ON k.p1 = m.message"
    queries = [
        f"SELECT t.name, m.message, k.p2 {join}",
        f"SELECT t.name AS n, m.message + 1 AS next, k.p2 AS person {join}",
        f"SELECT t.name, m.message, k.p2 {join} ORDER BY 1, 2, 3",
    ]
    tags, rows = [(n, f"name of tag {n}") for n in range(50)], [(n % 700, n % 50) for n in range(2000)]
    known = [(n % 700, n, n) for n in range(2000)]

    def state(*chosen: str) -> int:
        views = "".join(f"CREATE MATERIALIZED VIEW v{n} AS {sql};" for n, sql in enumerate(chosen))
        db = crown.Database(SCHEMA + views)
        for table, data in (("tag", tags), ("message_tag", rows), ("knows", known)):
            db.insert(table, data)
        return db.stats()["bytes"]

    alone = [state(sql) for sql in queries]
    assert state(*queries) <= 1.5 * max(alone)
    other = f"SELECT t.name, COUNT(*) AS n {join} GROUP BY t.name"
    assert max(alone) < state(*queries, other) < sum(alone) + state(other)


def test_a_view_that_is_explained_has_other_stages_than_the_project() -> None:
    """What is shared has the project's id everywhere, and what would be added one that no stage has."""
    db = crown.Database(
        "CREATE TABLE r (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM r GROUP BY a"
    )
    own = {stage.id for stage in db.explain().project.stages}
    text = str(db.explain("SELECT b, MAX(a) AS m FROM r GROUP BY b"))
    added = re.findall(r"^  add \w+ (\S+)$", text, flags=re.MULTILINE)
    assert added and not own & set(added)
    assert set(re.findall(r"\$\w+", text)) == set(added)
    text = str(db.explain("SELECT MAX(s) AS m FROM v"))
    shared = re.findall(r"^  share (\S+) with v$", text, flags=re.MULTILINE)
    added = re.findall(r"^  add \w+ (\S+)$", text, flags=re.MULTILINE)
    assert set(shared) == own and added and not own & set(added)
    assert set(re.findall(r"\$\w+", text)) == {*shared, *added}
