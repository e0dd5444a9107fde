"""Bytes of a row, measured on made-up rows, against those of real ones."""

from __future__ import annotations

import pytest

import crown
from crown.plan import plan
from crown.sql import parse
from crown.workload.footprint import bytes_per_row

SCHEMA = """CREATE TABLE r (a BIGINT, b BIGINT, s STRING);
            CREATE TABLE t (b BIGINT PRIMARY KEY, d DECIMAL(10,2), x DATE, y TIMESTAMP, z BOOLEAN, w DOUBLE)"""


def test_the_estimate_is_near_the_size_of_a_view() -> None:
    sql = "SELECT r.a, t.w FROM r JOIN t ON r.b = t.b"
    sizes = bytes_per_row(plan(parse(sql, SCHEMA)))
    view = crown.View(sql, SCHEMA)
    rows = 50_000
    view.insert("r", [(number, number, "x") for number in range(rows)])
    view.insert("t", [(number, None, None, None, None, 0.5) for number in range(rows)])
    assert view.stats()["bytes"] / rows == pytest.approx(sum(sizes.values()), rel=0.6)


def test_selections_and_windows_do_not_hide_the_cost() -> None:
    sql = "SELECT r.a, r.s, t.d, t.x, t.y, t.z FROM r JOIN t ON r.b = t.b WHERE r.s = 'rare' AND t.w > 1e9"
    described = parse(sql, SCHEMA, windows={"r": {"rows": 10}})
    sizes = bytes_per_row(plan(described))
    assert min(sizes.values()) > 16
