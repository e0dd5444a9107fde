"""Directed graphs: a power-law generator, and a reader for SNAP edge lists."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from crown.errors import SchemaError

GRAPH_SCHEMA = "CREATE TABLE graph (src BIGINT NOT NULL, dst BIGINT NOT NULL, PRIMARY KEY (src, dst));"

_EDGE_COLUMNS = ("src", "dst", "timestamp", "rating")


def power_law_graph(nodes: int, edges: int, *, seed: int, exponent: float = 2.7) -> pa.Table:
    """Distinct directed edges (`src`, `dst`) without self-loops, in random order of arrival.

    In- and out-degrees follow a power law with this exponent; nodes with many in-edges tend to have many out-edges, as
    in real networks, which is why these have so many long paths. The same arguments always give the same graph.
    """
    if edges > nodes * (nodes - 1) // 2:
        raise ValueError(f"{edges} edges are too many for {nodes} nodes: at most half of all pairs")
    generator = np.random.default_rng(seed)
    found: npt.NDArray[np.int64] = np.empty(0, np.int64)
    popular = generator.permutation(nodes)
    blurred = popular[np.argsort(np.log(np.arange(1, nodes + 1)) + generator.normal(0, 1.0, nodes))]
    source, target = (_Popularity(ranking, exponent, generator) for ranking in (popular, blurred))
    attempts = 0
    while len(found) < edges:
        # Popular pairs repeat more and more often as the graph fills up; a uniform draw then
        # completes it.
        attempts += 1
        flat = attempts > 20
        draw = 2 * (edges - len(found)) + 16
        src = generator.integers(0, nodes, draw) if flat else source.draw(draw)
        dst = generator.integers(0, nodes, draw) if flat else target.draw(draw)
        pairs = np.r_[found, (src * nodes + dst)[src != dst]]
        _, first = np.unique(pairs, return_index=True)
        found = pairs[np.sort(first)][:edges]
    found = generator.permutation(found)
    return pa.table({"src": found // nodes, "dst": found % nodes})


class _Popularity:
    """Draws nodes with probability falling as a power of their place in `ranking`."""

    def __init__(self, ranking: npt.NDArray[np.int64], exponent: float, generator: np.random.Generator) -> None:
        weights = np.arange(1, len(ranking) + 1, dtype=np.float64) ** (-1.0 / (exponent - 1.0))
        self._cumulative = np.cumsum(weights) / weights.sum()
        self._node = ranking
        self._generator = generator

    def draw(self, count: int) -> npt.NDArray[np.int64]:
        ranks = np.searchsorted(self._cumulative, self._generator.random(count))
        return self._node[np.minimum(ranks, len(self._node) - 1)]


def read_edges(path: str | os.PathLike[str], *, columns: tuple[str, ...] = _EDGE_COLUMNS) -> pa.Table:
    """A SNAP edge list: lines of numbers separated by tabs, spaces or commas, `#` comments first; `.gz` and `.zst` too.

    `columns` name the fields from the left; a file with fewer fields has the first names only. With a `timestamp`
    the rows come in its order, which is their order of arrival.
    """
    with pa.input_stream(str(Path(path)), compression="detect") as stream:
        text = stream.read()
    begin = 0
    while text[begin : begin + 1] in (b"#", b"%"):
        line_end = text.find(b"\n", begin)
        begin = len(text) if line_end < 0 else line_end + 1
    first_line = text[begin : text.find(b"\n", begin) % (len(text) + 1)].decode()
    delimiter = next((d for d in "\t, " if d in first_line), None)
    if delimiter is None:
        raise SchemaError(f"{path} is not an edge list", code="CROWN-DATA-FILE", reason="its first line has one field")
    names = list(columns[: len(first_line.rstrip("\r\n").split(delimiter))])
    table = pyarrow.csv.read_csv(
        pa.BufferReader(memoryview(text)[begin:]),
        read_options=pyarrow.csv.ReadOptions(column_names=names),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
    )
    if "timestamp" in names:
        # A stable order: rows of one moment stay as they are in the file.
        table = table.take(pa.array(np.argsort(table["timestamp"].to_numpy(), kind="stable")))
    return table
