"""Explain over what the planner really makes of queries: nothing breaks, nothing overlaps, nothing is left out."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from crown.ir.plan import TreeStage
from crown.plan import Explanation, explain, plan_with_report
from crown.sql import parse

GRAPH = "CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL);"
WAREHOUSE = """
CREATE TABLE region (r_id INT NOT NULL PRIMARY KEY, r_name STRING);
CREATE TABLE nation (n_id INT NOT NULL PRIMARY KEY, n_name STRING, n_region INT);
CREATE TABLE customer (c_id BIGINT NOT NULL PRIMARY KEY, c_name STRING, c_nation INT);
CREATE TABLE supplier (s_id BIGINT NOT NULL PRIMARY KEY, s_name STRING, s_nation INT);
CREATE TABLE part (p_id BIGINT NOT NULL PRIMARY KEY, p_brand STRING);
CREATE TABLE partsupp (ps_part BIGINT NOT NULL, ps_supplier BIGINT NOT NULL, ps_cost INT,
  PRIMARY KEY (ps_part, ps_supplier));
CREATE TABLE orders (o_id BIGINT NOT NULL PRIMARY KEY, o_customer BIGINT, o_date DATE);
CREATE TABLE lineitem (l_order BIGINT NOT NULL, l_line INT NOT NULL, l_part BIGINT, l_supplier BIGINT, l_price INT,
  l_due DATE, l_received DATE, PRIMARY KEY (l_order, l_line));
CREATE TABLE complaint (customer BIGINT, topic STRING);
"""
TWELVE = """
SELECT o.o_id, c.c_name, n1.n_name, n2.n_name AS supplier_nation, l.l_line, p.p_brand, s.s_name, ps.ps_cost
FROM orders o
JOIN customer c ON c.c_id = o.o_customer
JOIN nation n1 ON n1.n_id = c.c_nation
JOIN region r1 ON r1.r_id = n1.n_region
JOIN lineitem l ON l.l_order = o.o_id
JOIN part p ON p.p_id = l.l_part
JOIN partsupp ps ON ps.ps_part = l.l_part AND ps.ps_supplier = l.l_supplier
JOIN supplier s ON s.s_id = l.l_supplier
JOIN nation n2 ON n2.n_id = s.s_nation
JOIN region r2 ON r2.r_id = n2.n_region
WHERE r1.r_name = 'EUROPE' AND r2.r_name = 'ASIA' AND o.o_date < DATE '1995-03-15'
  AND EXISTS (SELECT 1 FROM lineitem late WHERE late.l_order = o.o_id AND late.l_due < late.l_received)
  AND NOT EXISTS (SELECT 1 FROM complaint k WHERE k.customer = c.c_id)
"""
QUERIES = {
    "one table": (GRAPH, "SELECT src FROM g WHERE dst > 3"),
    "three hop": (
        GRAPH,
        "SELECT a.src, b.src AS s2, c.src AS s3, c.dst FROM g a, g b, g c WHERE a.dst = b.src AND b.dst = c.src",
    ),
    "cross product": (GRAPH, "SELECT a.src, b.dst FROM g a, g b"),
    "star of twelve": (
        GRAPH,
        f"SELECT {', '.join(f'g{i}.dst AS d{i}' for i in range(12))}, g0.src"
        f" FROM {', '.join(f'g g{i}' for i in range(12))}"
        f" WHERE {' AND '.join(f'g0.src = g{i}.src' for i in range(1, 12))}",
    ),
    "path of twelve": (
        GRAPH,
        f"SELECT g0.src, g11.dst FROM {', '.join(f'g g{i}' for i in range(12))}"
        f" WHERE {' AND '.join(f'g{i}.dst = g{i + 1}.src' for i in range(11))}",
    ),
    "triangle": (
        GRAPH,
        "SELECT a.src, b.src AS s2 FROM g a, g b, g c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src",
    ),
    "twelve atoms": (WAREHOUSE, TWELVE),
    "outer join, aggregates and union": (
        WAREHOUSE,
        "SELECT n.n_name, SUM(l.l_price), COUNT(*), MAX(o.o_date) FROM customer c "
        "JOIN orders o ON c.c_id = o.o_customer "
        "JOIN lineitem l ON l.l_order = o.o_id LEFT JOIN nation n ON c.c_nation = n.n_id GROUP BY n.n_name "
        "HAVING COUNT(*) > 10 UNION ALL SELECT p_brand, 0, 1, NULL FROM part",
    ),
    "anti join and top": (
        WAREHOUSE,
        "SELECT c.c_name FROM customer c WHERE c.c_id NOT IN (SELECT customer FROM complaint) "
        "ORDER BY c.c_name LIMIT 5",
    ),
    "global aggregate": (GRAPH, "SELECT COUNT(*) FROM g a JOIN g b ON a.dst = b.src"),
}


def explained(name: str, cells: int = 1) -> Explanation:
    schema, sql = QUERIES[name]
    return explain(*plan_with_report(parse(sql, schema), cells=cells))


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    found = []
    for rect in ElementTree.fromstring(svg).findall("./{*}g[{*}title]/{*}rect") + ElementTree.fromstring(svg).findall(
        "./{*}rect"
    ):
        if set(rect.get("class", "").split()) & {"box", "plate"}:
            x, y, width, height = (float(rect.get(side, "0")) for side in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_every_atom_is_in_text_and_picture(name: str) -> None:
    explanation = explained(name)
    text, svg = str(explanation), explanation.svg()
    assert text.startswith("A change ") and "\n\nGUARANTEE" in text
    for stage in explanation.plan.stages:
        if isinstance(stage, TreeStage):
            assert f"TREE of {stage.id}" in text
            for atom in stage.atoms:
                assert f" {atom.name}(" in text
                assert f">{atom.name}</tspan>" in svg


@pytest.mark.parametrize("name", QUERIES)
def test_nothing_overlaps(name: str) -> None:
    boxes = rectangles(explained(name).svg())
    assert boxes
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


@pytest.mark.parametrize("cells", [1, 8, 12])
@pytest.mark.parametrize("name", QUERIES)
def test_page_and_json_for_any_number_of_cells(name: str, cells: int) -> None:
    explanation = explained(name, cells)
    assert explanation.html().endswith("</html>")
    data = json.loads(explanation.json())
    assert data["report"]["distribution"]["cells"] == explanation.report.distribution.cells
    assert "outputs" in str(explanation)


def test_twelve_atoms_fit_a_screen() -> None:
    width, height = (
        float(v) for v in ElementTree.fromstring(explained("twelve atoms").svg()).get("viewBox", "").split()[2:]
    )
    assert width < 1300
    assert height < 1000
