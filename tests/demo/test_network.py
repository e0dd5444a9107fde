"""The demonstration's stream: its batches hold every change, and a view over them ends where the final tables are."""

from __future__ import annotations

from collections import Counter

import duckdb

import crown
from crown.demo.network import SQL, network


def test_the_view_over_the_batches_is_the_query_over_the_final_tables() -> None:
    social = network(0.002, seed=7)
    batches = list(social.batches(4))
    assert sum(changes.num_rows for batch in batches for _, changes in batch) == social.updates
    final = social.final_tables()
    schema = {name: rows.schema for name, rows in final.items()}
    view = crown.View(SQL, schema=schema)
    view.apply(list(social.static.items()))
    for batch in batches:
        view.apply(batch)
    with duckdb.connect() as connection:
        for name, rows in final.items():
            connection.register(name, rows)
        expected = connection.execute(SQL).fetchall()
    assert len(expected) > 100
    assert Counter(view) == Counter(expected)
