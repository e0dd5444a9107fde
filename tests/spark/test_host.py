"""The engine host without Spark: marks, rebuilding, death, damage, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crown.errors import StateError
from crown.plan import plan, to_json
from crown.spark.flow.chunks import Chunk, log_blobs, log_chunks, pack, read_blob, snapshot_chunks, write_blob
from crown.spark.host import client, launch
from crown.spark.host.client import CellEngine
from crown.sql import parse
from tests.spark.streams import wait_until

PLAN = json.dumps({"tables": [{"columns": [{"name": "a"}, {"name": "b"}]}]})


@pytest.fixture
def host_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host of this very process (there is no JVM above it), with the stand-in engine."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("CROWN_SPARK_ENGINE", "tests.spark.stand_in:Echo")
    client._drop()
    yield tmp_path / f"crown-{os.getuid()}"
    client._drop()
    for process in launch._started:
        process.kill()
        process.wait()
    launch._started.clear()


def changes(*rows: tuple[int, int]) -> pa.Buffer:
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    return write_blob(table.to_batches(), table.schema)


def deltas(blobs: Iterator[bytes]) -> list[tuple[int, int]]:
    return [(row["a"], row["b"]) for blob in blobs for row in read_blob(blob).read_all().to_pylist()]


def engine() -> CellEngine:
    return CellEngine("query", "cells", 3, PLAN, "raise")


def test_a_kept_engine_is_used_and_a_missing_one_rebuilt(host_directory: Path) -> None:
    cell = engine()
    first, second = changes((1, 2)), changes((3, 4))
    assert deltas(cell.apply((0, ""), "t1", [("g", first)], list)) == [(1, 2)]

    def unwanted() -> list[Chunk]:
        raise AssertionError("the host has this engine")

    assert deltas(cell.apply((1, "t1"), "t2", [("g", second)], unwanted)) == [(3, 4)]
    assert cell.result["stats"]["stages"][0]["rows"] == 2
    # A second attempt at the same batch: the engine has moved on, so it is rebuilt from the log.
    assert deltas(cell.apply((1, "t1"), "t3", [("g", second)], lambda: log_chunks(1, [("g", first)]))) == [(3, 4)]
    assert cell.result["stats"]["stages"][0]["rows"] == 2
    # The first attempt's engine is gone: nobody can go on from it.
    saved = cell.save((2, "t3"))
    with pytest.raises(StateError, match="CROWN-ENGINE-TAKEN"):
        cell.save((2, "t2"))
    # From a snapshot and a log after it.
    state = [*snapshot_chunks(2, saved), *log_chunks(3, [("g", first)])]
    assert deltas(cell.apply((3, "t9"), "t10", [("g", first)], lambda: state)) == [(1, 2)]
    assert cell.result["stats"]["stages"][0]["rows"] == 4


def test_socket_and_directory_are_private(host_directory: Path) -> None:
    list(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list))
    (directory,) = host_directory.iterdir()
    assert stat.S_IMODE(host_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "host.sock").stat().st_mode) == 0o600


def _open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


OBSTACLES: dict[str, Callable[[Path], Any]] = {
    "a file": lambda place: place.write_text("precious"),
    "a link": lambda place: place.symlink_to(place.parent),
    "a dangling link": lambda place: place.symlink_to(place.parent / "nowhere"),
    "a directory that others can write": _open_to_all,
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_is_in_the_way_is_left_alone(
    host_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    """Anyone may take a name in /tmp first: that must neither lead the host there nor keep it from starting."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    OBSTACLES[obstacle](host_directory)
    before = host_directory.lstat()
    assert deltas(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list)) == [(1, 2)]
    assert host_directory.lstat().st_ino == before.st_ino and not (tmp_path / "nowhere").exists()
    (directory,) = (home / ".crown").iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700 and (directory / "host.sock").exists()


def test_a_directory_with_a_long_name(host_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a socket has room for about 100 bytes only."""
    deep = tmp_path / ("deep" * 40)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert deltas(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list)) == [(1, 2)]
    (directory,) = (deep / host_directory.name).iterdir()
    assert (directory / "host.sock").exists()


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_without_any_private_place_the_reason_is_told(
    host_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    OBSTACLES[obstacle](host_directory)
    with pytest.raises(StateError, match="CROWN-HOST-DIRECTORY") as refusal:
        list(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list))
    assert str(host_directory) in str(refusal.value)


def test_a_killed_host_is_replaced(host_directory: Path) -> None:
    cell = engine()
    first = changes((1, 2))
    list(cell.apply((0, ""), "t1", [("g", first)], list))
    (process,) = launch._started
    process.send_signal(signal.SIGKILL)
    process.wait()
    log = list(log_chunks(1, [("g", first)]))
    assert deltas(cell.apply((1, "t1"), "t2", [("g", changes((5, 6)))], lambda: log)) == [(5, 6)]
    assert cell.result["stats"]["stages"][0]["rows"] == 2
    (directory,) = host_directory.iterdir()
    assert sorted(path.name for path in directory.iterdir()) == ["host.log", "host.sock", "lock"]


def test_a_host_that_dies_again_and_again_names_cell_and_cause(host_directory: Path) -> None:
    with pytest.raises(StateError, match=r"cell 3 \(cells\): the engine host died") as failure:
        list(engine().apply((0, ""), "t1", [("g", changes((-1, 0)))], list))
    assert failure.value.code == "CROWN-HOST-DIED"


def test_out_of_memory_names_cell_and_cause(host_directory: Path) -> None:
    with pytest.raises(StateError, match=r"cell 3 \(cells\): the cell does not fit") as failure:
        list(engine().apply((0, ""), "t1", [("g", changes((-2, 0)))], list))
    assert failure.value.code == "CROWN-HOST-MEMORY"
    # The host goes on.
    assert deltas(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list)) == [(1, 2)]


def test_a_memory_limit_ends_the_host_not_the_machine(host_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CROWN_SPARK_ENGINE")
    monkeypatch.setenv("CROWN_HOST_MEMORY", "300m")
    sql = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    graph = plan(parse(sql, {"g": {"src": "int64", "dst": "int64"}}))
    table = pa.table({"src": pa.array(range(3_000_000), pa.int64()), "dst": pa.array(range(3_000_000), pa.int64())})
    cell = CellEngine("query", "cells", 5, to_json(graph), "raise")
    with pytest.raises(StateError, match=r"cell 5 \(cells\)") as failure:
        list(cell.apply((0, ""), "t1", [("g", write_blob(table.to_batches(), table.schema))], list))
    assert failure.value.code in ("CROWN-HOST-DIED", "CROWN-HOST-MEMORY")
    assert "memory" in str(failure.value)


def test_a_corrupt_chunk_names_cell_and_chunk(host_directory: Path) -> None:
    good = list(log_chunks(1, [("g", changes((1, 2)))]))
    damaged = Chunk(2, False, zlib.crc32(b"other"), good[0].data)
    with pytest.raises(StateError, match=r"cell 3 .*chunk 1 is corrupt") as failure:
        list(engine().apply((2, "t"), "u", [("g", changes((1, 2)))], lambda: [*good, damaged]))
    assert failure.value.code == "CROWN-STATE-CORRUPT"


def test_a_host_that_cannot_start_says_why(host_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StateError, match="could not start") as failure:
        list(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list))
    assert failure.value.code == "CROWN-HOST-START"


def test_a_host_of_another_version_is_refused(host_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list))
    client._drop()
    monkeypatch.setattr(launch, "VERSION", -1)
    with pytest.raises(StateError) as failure:
        list(engine().apply((1, "t1"), "t2", [("g", changes((1, 2)))], list))
    assert failure.value.code == "CROWN-HOST-PROTOCOL"


@pytest.mark.parametrize("idle", [False, True])
def test_the_host_leaves_without_a_trace(host_directory: Path, idle: bool) -> None:
    """When its executor is gone, and when nobody asks for long."""
    script = textwrap.dedent(
        """
        import sys, time
        from crown.spark.host import launch
        connection = launch.connect()
        print(launch._started[0].pid, flush=True)
        if sys.argv[1] == "True":
            connection.close()
            time.sleep(600)
        """
    )
    environment = {**os.environ, "TMPDIR": str(host_directory.parent), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"CROWN_HOST_IDLE": "1"} if idle else {}
    worker = subprocess.Popen([sys.executable, "-c", script, str(idle)], stdout=subprocess.PIPE, env=environment)
    try:
        assert worker.stdout is not None
        host = int(worker.stdout.readline())
        if not idle:
            worker.wait()
        assert wait_until(lambda: not host_directory.exists() or not list(host_directory.iterdir()))
        if not idle:
            assert wait_until(lambda: not Path(f"/proc/{host}").exists())
    finally:
        worker.kill()
        worker.wait()


def test_what_killed_hosts_left_is_swept(host_directory: Path) -> None:
    host_directory.mkdir(mode=0o700)
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    stale = host_directory / f"{dead.pid}-12345"
    stale.mkdir()
    (stale / "host.log").write_text("old")
    list(engine().apply((0, ""), "t1", [("g", changes((1, 2)))], list))
    assert not stale.exists()


def test_log_chunks_keep_order_and_size() -> None:
    blobs = [(f"table{i % 3}", os.urandom(300_000)) for i in range(20)]
    chunks = list(log_chunks(7, blobs))
    assert [(table, bytes(blob)) for chunk in chunks for table, blob in log_blobs(chunk)] == blobs
    assert all(len(chunk.data) < 1.6e6 for chunk in chunks)
    assert len(chunks) < 10


def test_pack_joins_small_batches_and_cuts_large_ones() -> None:
    table = pa.table({"a": pa.array(range(400_000), pa.int64())})
    for batches in (table.to_batches(), table.to_batches(max_chunksize=100)):
        packed = list(pack(batches))
        assert sum(rows for rows, _ in packed) == 400_000
        assert 3 <= len(packed) <= 5
        assert pa.concat_tables(read_blob(blob).read_all() for _, blob in packed).equals(table)
