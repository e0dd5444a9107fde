"""Many views over one social network: the queries of the experiment `views`.

Four shapes take turns: messages per tag, friends of friends per person, messages of friends, and tagged messages per
person. Each view has another filter. `peers/*/src/views.rs` has the same views as plans.
"""

from __future__ import annotations

from benchmarks.workloads import SOCIAL_SCHEMA

SCHEMA = SOCIAL_SCHEMA
# Their stream is that of a query that reads the same tables.
STREAM = "snb_q2"
SHAPES = (
    "SELECT t.name, t.id AS tag, COUNT(*) AS n FROM tag t JOIN message_tag mt ON mt.tag = t.id "
    "JOIN message m ON m.id = mt.message WHERE m.creator % 16 <> {key} GROUP BY t.name, t.id",
    "SELECT a.p1, COUNT(*) AS n FROM knows a JOIN knows b ON b.p1 = a.p2 GROUP BY a.p1 HAVING COUNT(*) > {key}",
    "SELECT k.p1, m.id AS message FROM knows k JOIN message m ON m.creator = k.p2 WHERE k.p1 % 16 = {key}",
    "SELECT m.creator, COUNT(*) AS n FROM message m JOIN message_tag mt ON mt.message = m.id "
    "WHERE mt.tag % 16 <> {key} GROUP BY m.creator",
)
# The same with each join as a view of its own, which the peers' plans have, too.
JOINS = {
    "tagged": "SELECT m.creator, mt.tag FROM message m JOIN message_tag mt ON mt.message = m.id",
    "friend_messages": "SELECT k.p1, m.id AS message FROM knows k JOIN message m ON m.creator = k.p2",
}
SHAPES_OVER_JOINS = (
    "SELECT t.name, t.id AS tag, COUNT(*) AS n FROM tag t JOIN tagged ON tagged.tag = t.id "
    "WHERE tagged.creator % 16 <> {key} GROUP BY t.name, t.id",
    SHAPES[1],
    "SELECT p1, message FROM friend_messages WHERE p1 % 16 = {key}",
    "SELECT creator, COUNT(*) AS n FROM tagged WHERE tag % 16 <> {key} GROUP BY creator",
)


def queries(count: int, shapes: tuple[str, ...] = SHAPES) -> list[str]:
    """Return so many queries; the shapes take turns."""
    return [shapes[number % len(shapes)].format(key=number // len(shapes)) for number in range(count)]


def joins(queries: list[str]) -> dict[str, str]:
    """Return those of the joins that the queries read."""
    return {name: sql for name, sql in JOINS.items() if any(name in query for query in queries)}
