"""Which nodes of a running stream are those that the console draws."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import crown
from crown.plan import plan
from crown.spark.flow.topology import lay_out, lay_out_views
from crown.spark.pipeline.figures import NodeFigures
from crown.sql import parse

SCHEMA = {
    "person": {"id": "BIGINT", "city": "STRING"},
    "knows": {"p1": "BIGINT", "p2": "BIGINT"},
    "likes": {"who": "BIGINT", "what": "STRING"},
}
HOPS = "SELECT k.p1, COUNT(*) AS n FROM knows k JOIN knows further ON further.p1 = k.p2 GROUP BY k.p1"
LIKED = "SELECT p.city, l.what FROM person p JOIN likes l ON l.who = p.id WHERE l.what <> 'nothing'"


def report(view: crown.View) -> str:
    """What a cell says of its engine."""
    (hot,) = view._engine.hot_keys(3)
    return json.dumps({"stages": view.stats()["stages"], "hot_keys": hot})


@pytest.mark.parametrize("views", [{"hops": HOPS}, {"liked": LIKED, "hops": HOPS}], ids=["one", "two"])
def test_figures_of_cells_are_summed_by_the_nodes_of_each_view(views: dict[str, str]) -> None:
    topology = lay_out(views["hops"], SCHEMA, 1) if len(views) == 1 else lay_out_views(views, SCHEMA, 1)
    running: Any = SimpleNamespace(engine="jvm", topology=topology, spark=None)
    own = crown.View(HOPS, SCHEMA)
    cell = crown.View.from_plan(topology.cell)
    for view in (own, cell):
        view.insert("knows", [(n, 7) for n in range(40)] + [(7, n) for n in range(3)])
    figures, drawn = NodeFigures(running), plan(parse(HOPS, SCHEMA))
    assert figures.note == "figures come with the next batch"
    figures.add([{"cell": 0, "figures": report(cell)}], 2.0)
    nodes, rates, hot = figures.of_view("hops", drawn)
    expected = [node for stage in own.stats()["stages"] for node in stage.get("nodes", ())]
    assert [node.rows for node in nodes.values()] == [node["rows"] for node in expected]
    assert not rates, "there was no batch before"
    assert any(key.key.endswith("= 7") and key.rows == 40 for key in hot)
    figures.add([{"cell": number, "figures": report(cell)} for number in range(2)], 2.0)
    hot = figures.of_view("hops", drawn)[2]
    assert len({(key.node, key.key) for key in hot}) == len(hot), "a key of two cells is listed once"
    figures.add([{"cell": 0, "figures": None}], 2.0)
    figures.add([{"cell": 0, "figures": report(cell)}], 2.0)
    cell.insert("knows", [(100, 7)])
    figures.add([{"cell": 0, "figures": report(cell)}], 2.0)
    nodes, rates, _ = figures.of_view("hops", drawn)
    assert {rate.updates for rate in rates.values()} == {0.0, 0.5}
    assert sum(rate.work for rate in rates.values()) == pytest.approx(1.0)
    figures.add([{"cell": 0, "figures": None}], 2.0)
    assert not figures.of_view("hops", drawn)[0], "nobody looked: what was known is old"
