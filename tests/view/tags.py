"""Tables of tags and messages, and views over them, for tests of databases."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

SCHEMA = """
    CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
    CREATE TABLE message_tag (message BIGINT, tag BIGINT);
    CREATE TABLE knows (p1 BIGINT, p2 BIGINT, since INT);
"""
VIEWS = """
    CREATE VIEW tagged AS SELECT t.name, m.message FROM tag t JOIN message_tag m ON m.tag = t.id;
    CREATE MATERIALIZED VIEW by_tag AS SELECT name, COUNT(*) AS reach FROM tagged GROUP BY name;
    CREATE MATERIALIZED VIEW top_tags AS SELECT * FROM by_tag ORDER BY reach DESC LIMIT 2;
    CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM message_tag;
"""
ROWS: dict[str, list[tuple[object, ...]]] = {
    "tag": [(1, "joins"), (2, "trees"), (3, "bags")],
    "message_tag": [(10, 1), (11, 1), (12, 2), (13, 3), (14, 3)],
}


def rows(delta: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in delta.to_pylist()]
