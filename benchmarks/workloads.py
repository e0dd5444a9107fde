"""The queries of the paper's appendix, as SQL, with the tables they read."""

from __future__ import annotations

from dataclasses import dataclass

GRAPH_SCHEMA = "CREATE TABLE G (src BIGINT NOT NULL, dst BIGINT NOT NULL);"
COMB_SCHEMA = GRAPH_SCHEMA + "CREATE TABLE V1 (v BIGINT NOT NULL); CREATE TABLE V2 (v BIGINT NOT NULL);"
SOCIAL_SCHEMA = """
CREATE TABLE person (id BIGINT NOT NULL PRIMARY KEY, first_name STRING, last_name STRING, created BIGINT);
CREATE TABLE knows (p1 BIGINT NOT NULL, p2 BIGINT NOT NULL, created BIGINT);
CREATE TABLE message (
  id BIGINT NOT NULL PRIMARY KEY, creator BIGINT NOT NULL, reply_of BIGINT, length BIGINT, created BIGINT
);
CREATE TABLE message_tag (message BIGINT NOT NULL, tag BIGINT NOT NULL, created BIGINT);
CREATE TABLE tag (id BIGINT NOT NULL PRIMARY KEY, name STRING);
"""


@dataclass(frozen=True)
class Workload:
    """`title` says what the query finds, and in brackets what the paper calls it.

    `{filter}` in the SQL is the threshold of the workload's selection (0 keeps everything).
    """

    name: str
    title: str
    tables: tuple[str, ...]
    schema: str
    sql: str
    filter: int = 0

    @property
    def plain_title(self) -> str:
        """The title without the paper's name for the query."""
        return self.title.partition(" (")[0]

    def text(self, filter: int | None = None) -> str:
        return self.sql.format(filter=self.filter if filter is None else filter)


def _graph(name: str, title: str, sql: str, filter: int = 0) -> Workload:
    return Workload(name, title, ("G",), GRAPH_SCHEMA, sql, filter)


def _social(name: str, title: str, tables: tuple[str, ...], sql: str, filter: int = 100) -> Workload:
    return Workload(name, title, tables, SOCIAL_SCHEMA, sql, filter)


_DUMBBELL = """FROM G G1, G G2, G G3, G G4, G G5, G G6, G G7
WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G1.src AND G5.dst = G6.src AND G6.dst = G7.src
  AND G7.dst = G5.src AND G4.src = G3.dst AND G4.dst = G5.src"""
_FRIENDS = """FROM tag t, message m, message_tag mt, knows k1, knows k2
WHERE m.id = mt.message AND mt.tag = t.id AND k1.p2 = k2.p1 AND m.creator = k2.p2 AND m.reply_of IS NULL
  AND k1.p1 < {filter}"""

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _graph(
            "three_hop",
            "Paths of three edges (3-Hop)",
            "SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D FROM G G1, G G2, G G3 "
            "WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst > {filter}",
            32684,
        ),
        Workload(
            "three_hop_tables",
            "Paths of three edges over three tables (3-Hop)",
            ("g1", "g2", "g3"),
            "".join(f"CREATE TABLE g{i} (src BIGINT NOT NULL, dst BIGINT NOT NULL);" for i in (1, 2, 3)),
            "SELECT g1.src AS A, g2.src AS B, g3.src AS C, g3.dst AS D FROM g1, g2, g3 "
            "WHERE g1.dst = g2.src AND g2.dst = g3.src",
        ),
        _graph(
            "four_hop",
            "Paths of four edges (4-Hop)",
            "SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D, G4.dst AS E FROM G G1, G G2, G G3, G G4 "
            "WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G4.src AND G4.dst > {filter}",
            60000,
        ),
        _graph(
            "four_hop_project",
            "Edge pairs inside paths of four (4-Hop project)",
            "SELECT DISTINCT G2.src AS B, G3.src AS C, G3.dst AS D FROM G G1, G G2, G G3, G G4 "
            "WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G4.src",
        ),
        Workload(
            "two_comb",
            "Paths between two sets of nodes (2-Comb)",
            ("G", "V1", "V2"),
            COMB_SCHEMA,
            "SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D FROM G G1, G G2, G G3, V1, V2 "
            "WHERE G1.dst = G2.src AND G2.dst = G3.src AND V1.v = G1.src AND V2.v = G3.dst",
        ),
        _graph(
            "star",
            "Counts per node of a four-way star (Star)",
            "SELECT G1.src AS src, COUNT(*) AS n FROM G G1, G G2, G G3, G G4 "
            "WHERE G1.src = G2.src AND G1.src = G3.src AND G1.src = G4.src GROUP BY G1.src",
        ),
        _graph(
            "dumbbell",
            "Two triangles and the edge between (Dumbbell)",
            "SELECT G4.src AS P, G1.dst AS X, G2.dst AS Y, G4.dst AS Q, G5.dst AS U, G6.dst AS W " + _DUMBBELL,
        ),
        _graph(
            "dumbbell_project",
            "Edges between two triangles (Dumbbell project)",
            "SELECT DISTINCT G4.src AS P, G4.dst AS Q " + _DUMBBELL,
        ),
        _social(
            "snb_q1",
            "Messages of friends (SNB Q1)",
            ("person", "message", "knows"),
            "SELECT p.id AS person, p.first_name, p.last_name, m.id AS message, k.p1 AS friend "
            "FROM person p, message m, knows k WHERE p.id = m.creator AND k.p2 = p.id",
        ),
        _social(
            "snb_q2",
            "Friends of friends' tagged messages (SNB Q2)",
            ("tag", "message", "message_tag", "knows"),
            "SELECT k1.p1 AS a, k1.p2 AS b, k2.p2 AS c, t.id AS tag, m.id AS message " + _FRIENDS,
        ),
        _social(
            "snb_q3",
            "The same, excluding oneself (SNB Q3)",
            ("tag", "message", "message_tag", "knows"),
            "SELECT k1.p1 AS a, k1.p2 AS b, k2.p2 AS c, t.id AS tag, m.id AS message "
            + _FRIENDS
            + " AND k2.p2 <> k1.p1",
        ),
        _social(
            "snb_q4",
            "Friends' messages per tag (SNB Q4)",
            ("tag", "message", "message_tag", "knows"),
            "SELECT t.name, t.id AS tag, COUNT(DISTINCT m.id) AS messages "
            "FROM tag t, message m, message_tag mt, knows k "
            "WHERE m.id = mt.message AND mt.tag = t.id AND m.creator = k.p2 AND m.reply_of IS NULL AND k.p1 < {filter} "
            "GROUP BY t.name, t.id",
        ),
    )
}
