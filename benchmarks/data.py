"""Where the rows come from: a generator of the project by default, or a file that the user names."""

from __future__ import annotations

import hashlib
import json
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
        if self.graph:
            return read_edges(self.graph).select(["src", "dst"])
        return power_law_graph(max(100, round(0.15 * self._edges())), self._edges(), seed=SEED)

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
        key = {"data": asdict(self), "workload": workload, "share": share, "drain": drain}
        folder = Path(self.cache) / hashlib.sha1(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
        if not (folder / "stream.json").exists():
            self._fifo(workload, share, drain).save(folder)
        return folder.resolve()

    def _fifo(self, workload: str, share: float, drain: bool) -> Stream:
        tables = self.tables(workload)
        if "G" in tables:
            return of_changes(streams.count_window(tables, max(1, round(share * len(tables["G"]) + 0.5)), drain=drain))
        created = np.concatenate(
            [table["created"].to_numpy() for table in tables.values() if "created" in table.column_names]
        )
        static = tuple(name for name, table in tables.items() if "created" not in table.column_names)
        interval = int(share * (created.max() - created.min()))
        return of_changes(streams.time_window(tables, interval, time="created", static=static, drain=drain))
