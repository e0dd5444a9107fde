"""Where the rows come from: a generator of the project by default, or a file that the user names."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.stream import Stream, of_changes
from benchmarks.workloads import WORKLOADS
from crown.workload import streams
from crown.workload.graph import power_law_graph, read_edges
from crown.workload.social import read_social_network, social_network

SEED = 20231
EPINIONS_NODES = 75_888
STREAMS = 2  # to be raised when the same key shall stand for another stream


@dataclass(frozen=True)
class Data:
    """`scale` multiplies the generated data: 1 is 500 thousand edges, or the social network of factor 0.03."""

    graph: str | None = None  # path of a SNAP edge list
    social: str | None = None  # folder of LDBC SNB CSV files
    scale: float = 0.2
    cache: str = "artifacts/streams"

    def describe(self) -> dict[str, object]:
        """What a reader needs to repeat the run; paths are reduced to their last part."""
        return {
            "graph": Path(self.graph).name if self.graph else f"power law, {self._edges()} edges, seed {SEED}",
            "social": Path(self.social).name
            if self.social
            else f"generated, factor {0.03 * self.scale:g}, seed {SEED}",
        }

    def _edges(self) -> int:
        return round(500_000 * self.scale)

    def edges(self) -> pa.Table:
        """Each pair once, in order of arrival: a graph is a set of edges."""
        if self.graph:
            return _distinct(read_edges(self.graph).select(["src", "dst"]))
        return power_law_graph(max(100, round(0.15 * self._edges())), self._edges(), seed=SEED)

    def threshold(self, workload: str) -> int:
        """The workload's filter; on graphs it is made for Epinions' node numbers and keeps the same share of others."""
        chosen = WORKLOADS[workload]
        return chosen.filter * self._nodes() // EPINIONS_NODES if chosen.tables == ("G",) else chosen.filter

    @functools.cache  # noqa: B019  one entry for each of the few objects of a run
    def _nodes(self) -> int:
        """One more than the largest node number."""
        edges = self.edges()
        return 1 + int(max(edges["src"].to_numpy().max(), edges["dst"].to_numpy().max()))

    def tables(self, workload: str) -> dict[str, pa.Table]:
        """The tables that the workload reads, rows in order of arrival."""
        names = WORKLOADS[workload].tables
        if "G" not in names:
            network = read_social_network(self.social) if self.social else social_network(0.03 * self.scale, seed=SEED)
            return {name: network[name] for name in names}
        edges = self.edges()
        tables = {"G": edges}
        if "V1" in names:
            # As in the paper: the endpoints are a random tenth of the nodes.
            generator = np.random.default_rng(SEED)
            nodes = np.unique(np.r_[edges["src"].to_numpy(), edges["dst"].to_numpy()])
            for name in ("V1", "V2"):
                tables[name] = pa.table(
                    {"v": np.sort(generator.choice(nodes, max(1, len(nodes) // 10), replace=False))}
                )
        return tables

    def fifo(self, workload: str, *, share: float = 0.2, drain: bool = True) -> Path:
        """A FIFO stream: a count window of `share` of the edges, or a time window of that share of the time."""
        return self.saved(lambda: self._fifo(workload, share, drain), workload, "share", share, drain)

    def window(self, workload: str, size: int) -> Path:
        """A FIFO stream with a count window of `size` rows in each table."""
        return self.saved(
            lambda: of_changes(streams.count_window(self.tables(workload), size)), workload, "window", size
        )

    def insertions(self, workload: str, most: int) -> Path:
        """The first `most` rows of each table come and stay."""
        tables = {name: table.slice(0, most) for name, table in self.tables(workload).items()}
        return self.saved(lambda: of_changes(streams.insertion_only(tables)), workload, "insertions", most)

    def saved(self, make: Callable[[], Stream], *key: object) -> Path:
        """The folder of a stream, made when it is asked for the first time."""
        name = hashlib.sha1(json.dumps([STREAMS, asdict(self), *key], sort_keys=True).encode()).hexdigest()[:12]
        folder = Path(self.cache) / name
        if not (folder / "stream.json").exists():
            make().save(folder)
        return folder.resolve()

    def _fifo(self, workload: str, share: float, drain: bool) -> Stream:
        tables = self.tables(workload)
        if "G" in tables:
            return of_changes(streams.count_window(tables, max(1, round(share * len(tables["G"]) + 0.5)), drain=drain))
        created = np.concatenate(
            [table["created"].to_numpy() for table in tables.values() if "created" in table.column_names]
        )
        # Tags have no time, and people do not leave because they came long ago.
        static = tuple(
            name for name, table in tables.items() if name == "person" or "created" not in table.column_names
        )
        interval = int(share * (created.max() - created.min()))
        return of_changes(streams.time_window(tables, interval, time="created", static=static, drain=drain))


def _distinct(edges: pa.Table) -> pa.Table:
    """The first row of each pair."""
    pairs = np.stack([edges["src"].to_numpy(), edges["dst"].to_numpy()])
    _, first = np.unique(pairs, axis=1, return_index=True)
    return edges if len(first) == len(edges) else edges.take(pa.array(np.sort(first)))
