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


def queries(count: int) -> list[str]:
    """Return so many queries; the shapes take turns."""
    return [SHAPES[number % len(SHAPES)].format(key=number // len(SHAPES)) for number in range(count)]
