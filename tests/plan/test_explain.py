"""Explain: the card's lines, the drawn tree, the picture's geometry, the page and the JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import crown
from crown.ir.plan import Plan
from crown.plan import explain, from_json, plan_with_report
from crown.plan.explain.report import Report
from crown.sql import parse
from tests.support import plans

SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = {
    "three hop": plans.three_hop(),
    "three hop on eight cells": plans.three_hop(8),
    "four hop": plans.four_hop(),
    "dumbbell": plans.dumbbell(),
    "twelve atoms": plans.twelve_atoms(),
    "wide star": plans.star(12),
}


def test_the_card_comes_first_and_is_complete() -> None:
    text = str(explain(*plans.three_hop(8)))
    sentence, card = text.split("\n\n")[:2]
    assert sentence.startswith("A change takes")
    assert card.startswith("GUARANTEE\n  class              free-connex thanks to primary keys (acyclic without")
    for line in (
        "height             2",
        "space              O(N)",
        "delay              O(1)",
        "O(λ)   arbitrary updates: a row may come and go",
        "also maintained    m.id (determined by the primary key of message",
        "why not better     not q-hierarchical",
        "to make it better  declare the tables insert_only or fifo",
        "cells              8 = b: 4 x c: 2",
        "g1: 2 cells, a cell holds 25%",
        "outputs            not disjoint: c is shared among cells",
        "merged by          distinct",
    ):
        assert line in text
    assert max(len(line) for line in text.splitlines()) <= 110


def test_the_tree_is_drawn_with_keys_and_views() -> None:
    text = str(explain(*plans.four_hop()))
    drawn = text[text.index("  ● [c]") : text.index("\n\nALTERNATIVES")].splitlines()
    assert [line.rstrip() for line in drawn] == [
        "  ● [c]                          = keys in all of g2, g3",
        "  ├─(c)─ ● g2(b, c) : graph      = g2 ⋉ g1",
        "  │  └─(b)─ ● g1(a, b) : graph",
        "  └─(c)─ ● g3(c, d) : graph      = g3 ⋉ g4",
        "     └─(d)─ ● g4(d, e) : graph",
    ]


def test_existence_edges_and_filters_in_the_drawn_tree() -> None:
    text = str(explain(*plans.twelve_atoms()))
    assert "└╌(custkey) not exists╌ ○ complaint(custkey)" in text
    assert "└╌(partkey, suppkey) exists╌ ○ partsupp(partkey, suppkey)" in text
    assert "= customer ⋉ n1 ▷ complaint" in text
    assert "where partkey < 23" in text


def test_alternatives_and_stages() -> None:
    text = str(explain(*plans.dumbbell()))
    assert "17 trees compared, all of them" in text
    assert "→      2        7  g7(left, right)" in text
    assert "$left    bag: delta joins of g1, g2, g3" in text
    assert "COUNT(DISTINCT)    O(1) per changed row; loses sampling without enumeration" in text


def rectangles(svg: str, style: str) -> list[tuple[float, float, float, float]]:
    """Those of the tree itself: the legend's are inside moved groups."""
    root = ElementTree.fromstring(svg)
    found = []
    for group in root:
        if group.get("transform"):
            continue
        for rect in group.iter(f"{SVG}rect"):
            if style in rect.get("class", "").split():
                x, y, width, height = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
                found.append((x, y, x + width, y + height))
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_overlaps_or_leaves_the_picture(name: str) -> None:
    plan, report = SAMPLES[name]
    svg = explain(plan, report).svg()
    root = ElementTree.fromstring(svg)
    width, height = (float(v) for v in root.get("viewBox", "").split()[2:])
    nodes, plates = rectangles(svg, "box"), rectangles(svg, "plate")
    (tree,) = [stage for stage in plan.stages if hasattr(stage, "nodes")]
    assert len(nodes) == len(tree.nodes)
    assert len(plates) == len(tree.nodes) - 1
    everything = nodes + plates
    for left, top, right, bottom in everything:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for number, one in enumerate(everything):
        for other in everything[number + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)
    assert width <= 1250


@pytest.mark.parametrize("name", SAMPLES)
def test_text_fits_its_box(name: str) -> None:
    svg = explain(*SAMPLES[name]).svg()
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        if group.get("transform") or box is None:
            continue
        for text in group.findall(f"{SVG}text"):
            assert len("".join(text.itertext())) * 7.2 <= float(box.get("width", "0"))


def test_kinds_are_visible() -> None:
    svg = explain(*plans.twelve_atoms()).svg()
    assert len(rectangles(svg, "connex")) == 7
    assert len(rectangles(svg, "generalised")) == 2
    assert svg.count('class="edge anti"') == 3  # two edges and one in the legend
    assert svg.count('class="edge exists"') == 2
    assert len(rectangles(explain(*plans.dumbbell()).svg(), "bag")) == 2


class Page(HTMLParser):
    """Checks that tags are balanced, and collects the text and what the page would load."""

    VOID = frozenset({"meta", "rect", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.loaded: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_whole_and_needs_nothing_else(name: str) -> None:
    html = explain(*SAMPLES[name]).html()
    page = Page(html)
    assert page.loaded == []
    assert not re.search(r"url\(|@import|<script", html)
    for words in ("Guarantee", "Why not better", "What would make it better", "Alternatives", "Cells"):
        assert words in page.text
    assert "Result" not in page.text
    assert "name = 'from <b>' AND x < 3" in page.text


def test_the_page_shows_result_rows() -> None:
    page = Page(explain(*plans.three_hop()).html(result=[(1, 2, "<i>", None)]))
    assert "<i>" in page.text
    assert "NULL" in page.text
    many = Page(explain(*plans.three_hop()).html(result=((i, 0, 0, 0) for i in range(10_000))))
    assert "The first 500 rows." in many.text


@pytest.mark.parametrize("name", SAMPLES)
def test_json_holds_report_and_plan(name: str) -> None:
    plan, report = SAMPLES[name]
    data = json.loads(explain(plan, report).json())
    assert from_json(json.dumps(data["plan"])) == plan
    assert data["report"]["conjunctions"][0]["space"] == "O(N)"


def test_several_conjunctions_are_told_apart() -> None:
    plan, report = plans.three_hop()
    text = str(explain(plan, Report(report.sql, report.conjunctions * 2, (), report.distribution)))
    assert text.count("GUARANTEE of $tree, $tree") == 1
    other = replace(report.conjunctions[0], stage="$tree", height=7)
    text = str(explain(plan, Report(report.sql, (*report.conjunctions, other), (), report.distribution)))
    assert text.count("GUARANTEE of $tree") == 2


def test_no_conjunction_at_all() -> None:
    plan, report = plans.three_hop()
    empty = explain(Plan(plan.sql, (), (), (), bag=False), Report(plan.sql, (), (), report.distribution))
    assert "CELLS" in str(empty)
    ElementTree.fromstring(empty.svg())
    Page(empty.html())


def page_of(sql: str, schema: str) -> str:
    return explain(*plan_with_report(parse(sql, schema))).html()


TABLES = "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)"


def test_the_page_says_it_in_a_sentence_then_draws_it_then_gives_the_card() -> None:
    html = page_of("SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b", TABLES)
    assert "<h1>A change takes constant time; memory grows with the tables; the result is read row by row" in html
    places = [html.index(part) for part in ("<h1>", "<svg", "<h2>Guarantee</h2>", "<h2>Query</h2>")]
    assert places == sorted(places)


def test_trees_with_the_same_card_share_it() -> None:
    branch = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
    html = page_of(f"{branch} UNION ALL {branch}", TABLES)
    assert html.count("<dt>class</dt>") == 1
    assert "Guarantee of $tree1, $tree3" in html
    assert "<dt>trees</dt><dd>2<small>" in html


@pytest.mark.parametrize(
    "sql, said",
    [
        ("SELECT x.a, y.b, z.b AS c FROM r x JOIN r y ON x.b = y.a JOIN r z ON y.b = z.a", "time proportional to λ"),
        (
            "SELECT x.a, y.a AS b FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a",
            "memory may grow to O(N",
        ),
        ("SELECT a, MIN(b) FROM r GROUP BY a", "with the stored part of the result"),
        (
            "SELECT a, COUNT(*) AS n FROM r GROUP BY a HAVING COUNT(*) > 2",
            "may visit rows that are not in it",
        ),
    ],
)
def test_the_sentence_promises_no_more_than_the_card(sql: str, said: str) -> None:
    assert said in page_of(sql, TABLES).split("</h1>")[0]


@pytest.mark.parametrize(
    ("sql", "legend"),
    [
        ("SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.b", "only decides existence"),
        ("SELECT r.a, r.b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)", "only decides existence"),
        ("SELECT r.a, r.b FROM r JOIN s ON r.b = s.b JOIN r z ON z.a = s.c", "carries counts"),
        ("SELECT r.b, SUM(s.c) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.b", "carries counts and sums"),
        (
            "SELECT r.b, SUM(s.c) AS n FROM r JOIN s ON r.b = s.b WHERE EXISTS (SELECT 1 FROM s z WHERE z.c = r.a) "
            "GROUP BY r.b",
            "carries counts and sums, or decides existence",
        ),
    ],
)
def test_the_legend_says_what_nodes_without_output_are_for(sql: str, legend: str) -> None:
    svg = crown.View(sql, "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)").explain().svg()
    assert f">{legend}</text>" in svg
