"""Profiles of logs: every form of log, kinds of streams, and enclosureness under a query's trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

from crown.errors import CrownError
from crown.ir.expression import Call, Column, Literal
from crown.ir.plan import Atom, Binding, Node, Plan, TreeStage, Variable
from crown.ir.tables import Table, TableColumn, Window
from crown.plan.explain.report import Candidate, ConjunctionReport, Distribution, Report
from crown.types import BOOLEAN, INT64
from crown.workload import power_law_graph, profile, streams


def three_hop(
    tables: tuple[str, str, str] = ("g1", "g2", "g3"), *, least: int | None = None, key: tuple[str, ...] = ()
) -> tuple[Plan, Report]:
    """a -g1- b -g2- c -g3- d with two trees: g2 in the middle (height 2), and the chain (height 3)."""
    ends = ("ab", "bc", "cd")
    atoms = tuple(
        Atom(
            name=f"e{number}",
            source=table,
            bindings=tuple(Binding(v, Column(c, INT64)) for v, c in zip(pair, ("src", "dst"), strict=True)),
            filter=None if least is None else Call("ge", (Column("src", INT64), Literal(least, INT64)), BOOLEAN),
            not_null=tuple(pair),
        )
        for number, (table, pair) in enumerate(zip(tables, ends, strict=True), 1)
    )

    def node(atom: int, parent: int | None, shared: str) -> Node:
        return Node(atoms[atom].name, atoms[atom].variables, atom, parent, (shared,) if shared else (), True)

    middle = Candidate((node(1, None, ""), node(0, 0, "b"), node(2, 0, "c")), 2, 2.0)
    chain = Candidate((node(0, None, ""), node(1, 0, "b"), node(2, 1, "c")), 3, 3.0)
    stage = TreeStage(
        id="$result",
        variables=tuple(Variable(v, INT64, False) for v in "abcd"),
        atoms=atoms,
        nodes=middle.nodes,
        outputs=("a", "b", "c", "d"),
        mode="bag",
    )
    columns = (TableColumn("src", INT64, False), TableColumn("dst", INT64, False))
    plan = Plan(
        sql="...",
        tables=tuple(Table(name, columns, primary_key=key) for name in dict.fromkeys(tables)),
        stages=(stage,),
        columns=tuple(TableColumn(v, INT64, False) for v in "abcd"),
        bag=True,
    )
    conjunction = ConjunctionReport(
        stage="$result",
        query_class="free-connex",
        class_without_keys="free-connex",
        width=1,
        height=2,
        atoms=("e1", "e2", "e3"),
        outputs=("a", "b", "c", "d"),
        added=(),
        bags=(),
        candidates=(middle, chain),
        considered=2,
        exhaustive=True,
        space="O(N)",
        delay="O(1)",
        guarantees=(),
        why_not_better=(),
        improvements=(),
    )
    distribution = Distribution(1, (), (), (), True, "one cell", ())
    return plan, Report("...", (conjunction,), (), distribution)


EDGES = power_law_graph(40, 300, seed=2)


def changes(rows: list[tuple[Any, ...]], names: list[str]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


LOG = changes(
    [("r", "insert", 1, None), ("s", "insert", None, "x"), ("s", "delete", None, "x"), ("r", "delete", 1, None)],
    ["_table", "_change_type", "a", "b"],
)


def test_every_form_of_log_is_read_alike(tmp_path: Path) -> None:
    by_table = {
        "r": changes([("insert", 0, 1), ("delete", 3, 1)], ["_change_type", "_sequence", "a"]),
        "s": changes([("insert", 1, "x"), ("delete", 2, "x")], ["_change_type", "_sequence", "b"]),
    }
    pyarrow.parquet.write_table(LOG, tmp_path / "log.parquet")
    pyarrow.csv.write_csv(LOG, tmp_path / "log.csv")
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, table in by_table.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    expected = profile(LOG)
    assert expected.updates == 4
    assert expected.profiles() == {"r": "fifo", "s": "fifo"}
    assert expected.kind == "arbitrary"
    for source in (by_table, tmp_path / "log.parquet", str(tmp_path / "log.csv"), folder):
        assert profile(source) == expected


def test_all_change_types_and_rows_from_before() -> None:
    log = changes(
        [(None, 7), ("update_preimage", 7), ("update_postimage", 8), ("insert", 9), ("delete", 8)],
        ["_change_type", "a"],
    )
    got = profile({"r": log})
    (table,) = got.tables
    assert (table.insertions, table.deletions, table.tuples, table.kind) == (2, 2, 3, "fifo")
    assert profile({"r": log.slice(0, 1)}).kind == "static"


def test_columns_of_a_change_feed_are_not_the_row() -> None:
    log = changes([("insert", 1, 7), ("delete", 2, 7)], ["_change_type", "_commit_version", "a"])
    assert profile({"r": log}).tables[0].tuples == 1


def test_a_column_may_be_null_throughout() -> None:
    log = pa.table({"_table": ["graph"] * 2, "src": pa.nulls(2, pa.int64()), "dst": [1, 2]})
    assert profile(log, three_hop(("graph", "graph", "graph"))).updates == 2


@pytest.mark.parametrize(
    "log, message",
    [
        (changes([("insert", 1)], ["_change_type", "a"]), "_table"),
        ({"r": pa.table({"a": [1]}), "s": pa.table({"a": [1]})}, "_sequence"),
        ({"r": pa.table({"a": [1], "_change_type": ["upsert"]})}, "upsert"),
        ("no/such/file.parquet", "does not exist"),
    ],
)
def test_logs_that_are_none(log: Any, message: str) -> None:
    with pytest.raises(CrownError, match=message):
        profile(log)


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_text("not parquet")
    with pytest.raises(CrownError, match="can't be read"):
        profile(tmp_path / "log.parquet")


def test_fifo_suits_the_tree_of_height_two() -> None:
    """Also for a self-join, whose updates reach three atoms."""
    stream = streams.count_window({"graph": EDGES}, 60)
    got = profile(stream, three_hop(("graph", "graph", "graph")))
    assert [tree.tree for tree in got.trees] == ["e2(e1, e3)", "e1(e2(e3))"]
    assert got.trees[0].enclosureness == 1.0
    assert got.trees[1].enclosureness > 2
    assert got.suggested() == (got.trees[0],)


def test_insertion_only_is_one_under_every_tree() -> None:
    stream = streams.insertion_only(dict.fromkeys(("g1", "g2", "g3"), EDGES))
    got = profile(stream, three_hop())
    assert [tree.enclosureness for tree in got.trees] == [1.0, 1.0]


def test_the_log_can_suggest_another_tree() -> None:
    """Short lives of e1 are bad below e2, whose rows live long, and harmless above it."""
    stream = streams.enclosing(EDGES.slice(0, 200), EDGES.slice(0, 1), window=150, steps=3)
    got = profile({"g1": stream["g1"], "g2": stream["g2"]}, three_hop())
    worst, better = got.trees[0], got.trees[1]
    assert worst.enclosureness > 3 * better.enclosureness
    assert got.suggested() == (better,)
    assert "Use e1(e2(e3))" in str(got)
    assert got.to_json()["suggested"] == {"$result": "e1(e2(e3))"}


def test_filters_decide_what_counts() -> None:
    """Edges below the filter's bound never reach the atoms: their lives don't make the tree any harder."""
    lower = EDGES.filter(pa.compute.less(EDGES["src"], 20)).slice(0, 1)
    outer = EDGES.filter(pa.compute.greater_equal(EDGES["src"], 20)).slice(0, 100)
    stream = streams.enclosing(outer, lower, window=80, steps=3)
    assert profile(stream, three_hop()).trees[0].enclosureness > 5
    assert profile(stream, three_hop(least=20)).trees[0].enclosureness == 1.0


def test_upserts_end_the_old_row() -> None:
    log = {"graph": pa.table({"src": [1, 1, 1, 2], "dst": [5, 6, 6, 5]})}
    loose = profile(log, three_hop(("graph", "graph", "graph")))
    keyed = profile(log, three_hop(("graph", "graph", "graph"), key=("src",)))
    assert (loose.tables[0].kind, loose.tables[0].tuples) == ("insert_only", 3)
    assert (keyed.tables[0].kind, keyed.tables[0].tuples, keyed.tables[0].deletions) == ("fifo", 3, 1)


def test_conditions_hang_on_every_considered_tree() -> None:
    plan, report = three_hop()
    (stage,) = plan.stages
    assert isinstance(stage, TreeStage)
    blocked = Atom("b", "blocked", (Binding("c", Column("node", INT64)),), not_null=("c",))
    below = Atom("w", "witness", (Binding("c", Column("node", INT64)),), not_null=("c",))
    condition = Node("b", ("c",), 3, 0, ("c",), False, "anti")
    deeper = Node("w", ("c",), 4, 3, ("c",), False)
    extended = replace(stage, atoms=(*stage.atoms, blocked, below), nodes=(*stage.nodes, condition, deeper))
    tables = [Table(name, (TableColumn("node", INT64, False),)) for name in ("blocked", "witness")]
    plan = replace(plan, tables=(*plan.tables, *tables), stages=(extended,))
    flicker = {
        "_change_type": ["insert", "delete"] * 50,
        "node": [1] * 100,
        "_sequence": list(range(10, 110)),
    }
    edge = pa.table({"src": [1], "dst": [1], "_sequence": [0]})
    got = profile({"blocked": pa.table(flicker), "g1": edge, "g2": edge}, (plan, report))
    assert [tree.tree for tree in got.trees] == ["e2(e1, e3, b(w))", "e1(e2(e3, b(w)))"]
    # 50 tuples of `blocked`, each inside the lifespan of the one tuple of g2, and in the chain of
    # that of g1 too.
    assert [tree.enclosureness for tree in got.trees] == [1.0, 100 / 52]


def with_window(window: Window) -> tuple[Plan, Report]:
    plan, report = three_hop(("graph", "graph", "graph"))
    return replace(plan, tables=(replace(plan.tables[0], window=window),)), report


def test_count_windows_are_part_of_the_log() -> None:
    """The same as the stream with explicit deletions."""
    windowed = profile({"graph": EDGES}, with_window(Window(rows=60)))
    explicit = profile(streams.count_window({"graph": EDGES}, 60, drain=False), three_hop(("graph", "graph", "graph")))
    assert windowed == explicit
    assert windowed.kind == "fifo"


def test_time_windows_are_part_of_the_log() -> None:
    """Rows more than 5 behind the newest `src` leave, several at once; one that comes too late never was."""
    sources = [0, 1, 2, 3, 9, 4, 1, 30]
    log = {"graph": pa.table({"src": sources, "dst": list(range(8))})}
    (table,) = profile(log, with_window(Window(interval=5, column="src"))).tables
    # 0, 1, 2, 3 leave with 9; 4 is 5 behind 9 and stays until 30 comes, 1 is too late; 9 and 4
    # leave with 30.
    assert (table.insertions, table.deletions, table.tuples, table.kind) == (7, 6, 7, "fifo")


def test_windows_yield_to_explicit_deletions() -> None:
    stream = streams.count_window({"graph": EDGES}, 60)
    assert profile(stream, with_window(Window(rows=10))) == profile(stream, three_hop(("graph", "graph", "graph")))


def test_missing_column_and_missing_table() -> None:
    with pytest.raises(CrownError, match="dst"):
        profile({"graph": pa.table({"src": [1]})}, three_hop(("graph", "graph", "graph")))
    got = profile({"g1": EDGES}, three_hop())
    assert [note for note in got.notes if "g2" in note]
