"""The data and query of the demonstration: tags by their reach, in a network whose rows expire.

Persons and tags stay. Friendships and messages are inserted in order of time and deleted after a while, so the stream
has inserts and deletes in about equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from crown.changes import CHANGE_TYPE, INSERT
from crown.workload.social import social_network
from crown.workload.streams import Stream, TableBatch, batches, time_window

STATIC = ("person", "tag")
SQL = """\
SELECT t.name AS tag, COUNT(*) AS deliveries, SUM(m.length) AS characters
FROM tag t
JOIN message_tag mt ON mt.tag = t.id
JOIN message m ON m.id = mt.message
JOIN knows k ON k.p1 = m.creator
JOIN person p ON p.id = k.p2
GROUP BY t.name"""
MEANING = "for each tag: how many times a message with it reached a friend of its author, and how many characters"

_DAY = 86_400_000


@dataclass(frozen=True)
class Network:
    """`static` tables exist from the start; `stream` has the changes of the others."""

    static: dict[str, pa.Table]
    stream: Stream

    @property
    def updates(self) -> int:
        return sum(changes.num_rows for changes in self.stream.values())

    def batches(self, count: int) -> Iterator[TableBatch]:
        """Return the stream in `count` batches of equal size."""
        return batches(self.stream, -(-self.updates // count))

    def final_tables(self) -> dict[str, pa.Table]:
        """Return all tables as they are after the last change, computed from the stream alone."""
        return {**self.static, **{name: _survivors(changes) for name, changes in self.stream.items()}}


def network(scale: float, *, seed: int, days: int = 300) -> Network:
    """Return a generated network of about LDBC SNB's `scale`, in which rows older than `days` are deleted."""
    tables = social_network(scale, seed=seed)
    changing = {name: rows for name, rows in tables.items() if name not in STATIC}
    return Network(
        static={name: tables[name] for name in STATIC},
        stream=time_window(changing, days * _DAY, time="created", drain=False),
    )


def _survivors(changes: pa.Table) -> pa.Table:
    """Return the rows that were inserted more often than deleted."""
    columns = [name for name in changes.column_names if not name.startswith("_")]
    came = pc.equal(changes[CHANGE_TYPE].cast(pa.string()), INSERT)
    weights = pc.if_else(came, pa.scalar(1), pa.scalar(-1))
    counted = changes.select(columns).append_column("weight", weights).group_by(columns).aggregate([("weight", "sum")])
    return counted.filter(pc.greater(counted["weight_sum"], 0)).select(columns)
