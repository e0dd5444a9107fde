"""How to test a view of your own: DuckDB recomputes it after every batch. Run with `pytest examples/testing`."""

from __future__ import annotations

import random
from collections.abc import Iterator

import crown
from crown.testing import Change, Judge, check

SCHEMA = """CREATE TABLE customer (id BIGINT PRIMARY KEY, name STRING);
            CREATE TABLE orders (id BIGINT, customer BIGINT, cents BIGINT)"""
REVENUE = """SELECT c.name, COUNT(*) AS orders, SUM(o.cents) AS cents
             FROM orders o JOIN customer c ON c.id = o.customer GROUP BY c.name"""


def test_a_few_batches() -> None:
    view = check(
        REVENUE,
        SCHEMA,
        [
            {"customer": [(1, "ann"), (2, "bob")]},
            {"orders": [(10, 1, 500), (11, 2, 700), (12, 1, 300)]},
            {"orders": [{"id": 10, "customer": 1, "cents": 500, "_change_type": "delete"}]},
            {"customer": [(2, "bert")]},  # a new row for a primary key replaces the old one
        ],
    )
    assert sorted(view) == [("ann", 1, 300), ("bert", 1, 700)]


def test_many_random_batches() -> None:
    view, judge = crown.View(REVENUE, SCHEMA), Judge(REVENUE, SCHEMA)
    for batch in random_batches(seed=7):
        judge.follow(view, batch)


def random_batches(seed: int) -> Iterator[list[Change]]:
    """Orders of five customers; about a third of the changes are deletions."""
    generator = random.Random(seed)
    yield [Change("customer", (number, f"customer {number}")) for number in range(5)]
    stored: list[tuple[int, int, int]] = []
    for batch in range(20):
        changes = []
        for number in range(10):
            if stored and generator.random() < 0.35:
                changes.append(Change("orders", stored.pop(generator.randrange(len(stored))), -1))
            else:
                stored.append((10 * batch + number, generator.randrange(6), generator.randrange(1000)))
                changes.append(Change("orders", stored[-1]))
        yield changes
