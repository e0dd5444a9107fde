"""Workloads: how hard a log of updates is (`profile`), and generators of tables and streams.

Start with `lifespan` (when rows live) and `enclosureness` (definitions 5.1 and 5.6 of the paper); `log` defines the
format of an update log; `streams` turns the tables of `graph` and `social` into changes.
"""

from __future__ import annotations

from crown.workload.enclosureness import enclosureness, tree_enclosureness
from crown.workload.graph import GRAPH_SCHEMA, power_law_graph, read_edges
from crown.workload.log import read_log
from crown.workload.profile import WorkloadProfile, profile
from crown.workload.social import SOCIAL_SCHEMA, read_social_network, social_network

__all__ = [
    "GRAPH_SCHEMA",
    "SOCIAL_SCHEMA",
    "WorkloadProfile",
    "enclosureness",
    "power_law_graph",
    "profile",
    "read_edges",
    "read_log",
    "read_social_network",
    "social_network",
    "tree_enclosureness",
]
