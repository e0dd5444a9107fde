"""Graphs and social networks: shape, repeatability, and the readers' formats."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crown.errors import CrownError
from crown.workload import power_law_graph, read_edges, read_social_network, social_network


def test_graph_is_simple_and_repeatable() -> None:
    graph = power_law_graph(500, 5000, seed=1)
    assert graph.equals(power_law_graph(500, 5000, seed=1))
    assert not graph.equals(power_law_graph(500, 5000, seed=2))
    pairs = set(zip(graph["src"].to_pylist(), graph["dst"].to_pylist(), strict=True))
    assert len(pairs) == graph.num_rows == 5000
    assert all(src != dst and 0 <= src < 500 and 0 <= dst < 500 for src, dst in pairs)


@pytest.mark.parametrize("column", ["src", "dst"])
def test_graph_degrees_are_skewed(column: str) -> None:
    degrees = np.sort(np.bincount(power_law_graph(2000, 20000, seed=3)[column].to_numpy(), minlength=2000))
    assert degrees[-20:].sum() > 0.1 * 20000
    assert np.median(degrees) < 10


def test_dense_graph_is_completed() -> None:
    assert power_law_graph(10, 45, seed=1).num_rows == 45
    with pytest.raises(ValueError):
        power_law_graph(10, 46, seed=1)


@pytest.mark.parametrize("delimiter", ["\t", " ", ","])
def test_edge_list(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(f"# Directed graph\n# FromNodeId ToNodeId\n0{delimiter}4\n0{delimiter}5\n7{delimiter}0\n")
    assert read_edges(path).to_pydict() == {"src": [0, 0, 7], "dst": [4, 5, 0]}


def test_edge_list_compressed_and_in_time_order(tmp_path: Path) -> None:
    text = b"1\t2\t30\n3\t4\t10\n5\t6\t10\n"
    (tmp_path / "edges.tsv.gz").write_bytes(gzip.compress(text))
    with pa.output_stream(str(tmp_path / "edges.tsv.zst"), compression="zstd") as stream:
        stream.write(text)
    for name in ("edges.tsv.gz", "edges.tsv.zst"):
        assert read_edges(tmp_path / name)["src"].to_pylist() == [3, 5, 1]


def test_not_an_edge_list(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("hello\nworld\n")
    with pytest.raises(CrownError):
        read_edges(tmp_path / "words.txt")


def test_social_network_is_consistent_and_repeatable() -> None:
    network = social_network(0.003, seed=9)
    again = social_network(0.003, seed=9)
    assert all(network[name].equals(again[name]) for name in network)

    joined = network["person"]["created"].to_numpy()
    message = network["message"]
    written, creator = message["created"].to_numpy(), message["creator"].to_numpy()
    assert np.all(np.diff(written) >= 0)
    assert np.all(written > joined[creator])
    replies = message.filter(message["reply_of"].is_valid())
    assert 0.4 < replies.num_rows / message.num_rows < 0.8
    assert np.all(replies["reply_of"].to_numpy() < replies["id"].to_numpy())

    knows = network["knows"]
    pairs = set(zip(knows["p1"].to_pylist(), knows["p2"].to_pylist(), strict=True))
    assert len(pairs) == knows.num_rows
    assert all((p2, p1) in pairs and p1 != p2 for p1, p2 in pairs)
    met = knows["created"].to_numpy()
    assert np.all(met > np.maximum(joined[knows["p1"].to_numpy()], joined[knows["p2"].to_numpy()]))

    tagged = network["message_tag"]
    assert np.all(tagged["created"].to_numpy() == written[tagged["message"].to_numpy()])
    assert tagged["tag"].to_numpy().max() < network["tag"].num_rows


def test_social_network_grows_with_its_scale() -> None:
    small, large = (social_network(scale, seed=1) for scale in (0.001, 0.01))
    assert large["message"].num_rows == 10 * small["message"].num_rows


def test_ldbc_files(tmp_path: Path) -> None:
    files = {
        "person": "creationDateMs|personId|firstName|lastName|gender|birthdayMs\n"
        "5|1|Jan|Smith|male|0\n3|2|Al|Li|male|0\n",
        "person_knows_person": "creationDateMs|person1Id|person2Id\n9|1|2\n",
        "message": "creationDateMs|messageId|kind|length|creatorPersonId|replyOfMessageId|forumId\n"
        "11|8|P|4|1||3\n12|9|C|5|2|8|3\n",
        "message_hasTag_tag": "messageCreationDateMs|messageId|tagId\n11|8|0\n",
        "tag": 'tagId|name|url\n0|A_"quoted_name|http://x\n',
    }
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    network = read_social_network(tmp_path)
    assert network["person"]["id"].to_pylist() == [2, 1]
    assert sorted(zip(network["knows"]["p1"].to_pylist(), network["knows"]["p2"].to_pylist(), strict=True)) == [
        (1, 2),
        (2, 1),
    ]
    assert network["message"]["reply_of"].to_pylist() == [None, 8]
    assert network["tag"]["name"].to_pylist() == ['A_"quoted_name']
    assert {name: table.column_names for name, table in network.items()} == {
        name: list(table.column_names) for name, table in social_network(0.001, seed=1).items()
    }


def test_ldbc_files_missing_or_wrong(tmp_path: Path) -> None:
    with pytest.raises(CrownError, match=r"no person\.csv"):
        read_social_network(tmp_path)
    (tmp_path / "person.csv").write_text("id|name\n1|x\n")
    with pytest.raises(CrownError, match="personId"):
        read_social_network(tmp_path)
