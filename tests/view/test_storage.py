"""Saved views on disk: written at once or not at all, and never believed when they are read."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crown
from crown import _kernel

SCHEMA = """CREATE TABLE r (a BIGINT, b STRING); CREATE TABLE s (b STRING PRIMARY KEY, c DECIMAL(30,2));
            CREATE TABLE w (b STRING, at BIGINT) WINDOW (ROWS 5)"""
JOIN = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
QUERIES = {
    "join": JOIN,
    "window": "SELECT r.a, w.at FROM r JOIN w ON r.b = w.b",
    "sum": "SELECT r.b, SUM(r.a) AS total, COUNT(*) AS n FROM r GROUP BY r.b",
    "top": "SELECT r.a FROM r ORDER BY r.a LIMIT 3",
    "outer": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.b = s.b",
    "cycle": "SELECT x.a FROM r x JOIN r y ON x.b = y.b JOIN r z ON y.a = z.a AND z.b = x.b",
    "union": "SELECT b FROM r UNION SELECT b FROM s",
}


def filled(sql: str = JOIN, **options: Any) -> crown.View:
    view = crown.View(sql, SCHEMA, **options)
    view.insert("r", [(n, f"k{n % 5}") for n in range(40)])
    view.insert("s", [(f"k{n}", n) for n in range(5)])
    view.insert("w", [(f"k{n % 5}", n) for n in range(9)])
    return view


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def refuse(path: Path) -> crown.StateError:
    with pytest.raises(crown.StateError) as refusal:
        crown.View.load(path)
    return refusal.value


# Writing


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    view = filled()
    for _ in range(3):
        view.save(tmp_path / "view.crown")
    assert os.listdir(tmp_path) == ["view.crown"]
    assert sorted(crown.View.load(tmp_path / "view.crown")) == sorted(view)


def test_links_in_the_way_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in ("view.crown.partial", "view.crown"):
        (tmp_path / name).symlink_to(precious)
    filled().save(tmp_path / "view.crown")
    assert precious.read_text() == "precious"
    assert not (tmp_path / "view.crown").is_symlink()
    crown.View.load(tmp_path / "view.crown")


def test_permissions_follow_the_umask_and_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "view.crown"
    before = os.umask(0o027)
    try:
        filled().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    filled().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("place", ["missing/view.crown", "", "file/view.crown"])
def test_places_that_can_not_be_written_to(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(crown.StateError, match="CROWN-STATE-WRITE"):
        filled().save(tmp_path / place)
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "view.crown"
    filled().save(path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(crown.StateError, match="No space left"):
        filled(QUERIES["sum"]).save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["view.crown"]


def test_file_and_directory_reach_the_disk_before_and_after_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    sync, replace = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        steps.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def noted_replace(source: Any, target: Any) -> None:
        steps.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    filled().save(tmp_path / "view.crown")
    assert steps == ["file", "name", "directory"]


def test_two_savers_to_one_path_both_succeed(tmp_path: Path) -> None:
    path = tmp_path / "view.crown"
    failures: list[BaseException] = []

    def save(view: crown.View) -> None:
        try:
            for _ in range(20):
                view.save(path)
                crown.View.load(path)
        except BaseException as error:
            failures.append(error)

    savers = [threading.Thread(target=save, args=(filled(sql),)) for sql in (JOIN, QUERIES["sum"], QUERIES["top"])]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join()
    assert not failures and os.listdir(tmp_path) == ["view.crown"]


SAVER = """
import sys
import crown
view = crown.View("SELECT a FROM r", "CREATE TABLE r (a BIGINT)")
view.insert("r", [(n,) for n in range(int(sys.argv[2]))])
print("ready", flush=True)
while True:
    view.save(sys.argv[1])
"""


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_leaves_the_old_file_or_the_new(tmp_path: Path, rng: random.Random, rounds: int) -> None:
    path = tmp_path / "view.crown"
    sizes = [20_000, 50_000]
    for size in sizes * rounds:
        process = subprocess.Popen([sys.executable, "-c", SAVER, str(path), str(size)], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            while not path.exists():
                time.sleep(0.001)
            time.sleep(rng.random() / 20)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert len(crown.View.load(path)) in sizes


def test_names_of_tables_are_no_paths(tmp_path: Path) -> None:
    path = tmp_path / "view.crown"
    schema = "CREATE TABLE `../a/b` (k BIGINT PRIMARY KEY, x BIGINT); CREATE TABLE u (k BIGINT, y BIGINT)"
    view = crown.View("SELECT t.x, u.y FROM `../a/b` t JOIN u ON t.k = u.k", schema, threads=2)
    view.insert("../a/b", [(1, 10)])
    view.insert("u", [(1, 20)])
    view.save(path)
    assert list(crown.View.load(path)) == [(10, 20)]


# Reading


def about(**changed: Any) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        parts["view.json"] = json.dumps({**json.loads(parts["view.json"]), **changed}).encode()

    return change


def without(*fields: str) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        kept = {key: value for key, value in json.loads(parts["view.json"]).items() if key not in fields}
        parts["view.json"] = json.dumps(kept).encode()

    return change


def text(value: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda parts: parts.update({"view.json": value})


def plan(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    def apply(parts: dict[str, bytes]) -> None:
        described = json.loads(parts["view.json"])
        decoded = json.loads(described["plan"])
        change(decoded)
        parts["view.json"] = json.dumps({**described, "plan": json.dumps(decoded)}).encode()

    return apply


def deep_order(parts: dict[str, bytes]) -> None:
    """An ORDER BY of 5,000 calls within each other, as text: Python's own encoder would give up."""
    call = '{"kind": "call", "function": "negate", "type": "int64", "arguments": ['
    column = '{"kind": "column", "name": "a", "type": "int64"}'
    nested = call * 5_000 + column + "]}" * 5_000
    order = f'"order": [{{"expression": {nested}, "descending": false, "nulls_first": false}}]'
    described = json.loads(parts["view.json"])
    described["plan"] = described["plan"].replace('"order": []', order)
    assert order in described["plan"]
    parts["view.json"] = json.dumps(described).encode()


FIRST = "state/engine/000000.arrow"
DAMAGE: dict[str, Callable[[dict[str, bytes]], Any]] = {
    "no description": lambda parts: parts.pop("view.json"),
    "no state": lambda parts: [parts.pop(name) for name in list(parts) if name.startswith("state/")],
    "no header": lambda parts: parts.pop(FIRST),
    "no last chunk": lambda parts: parts.pop(sorted(parts)[-2]),
    "a foreign part": lambda parts: parts.update({"more.txt": b""}),
    "a part with a path": lambda parts: parts.update({"state/../../etc/000000.arrow": b""}),
    "an empty chunk": lambda parts: parts.update({FIRST: b""}),
    "a header of nonsense": lambda parts: parts.update({FIRST: b"\xff" * 100}),
    "a header that asks for 2 GB": lambda parts: parts.update({FIRST: b"\xff\xff\xff\xff\xff\xff\xff\x7f"}),
    "no JSON": text(b"{"),
    "not UTF-8": text(b"\xff\xfe"),
    "another kind of JSON": text(b"[1]"),
    "JSON null": text(b"null"),
    "JSON too deep": text(b"[" * 100_000),
    "a number of 10,000 digits": text(b'{"format": ' + b"9" * 10_000 + b"}"),
    "another format": about(format=99),
    "the format as a list": about(format=[1]),
    "threads beyond all bounds": about(threads=10**30),
    "more threads than parts": about(threads=1000),
    "no threads": about(threads=0),
    "negative threads": about(threads=-1),
    "threads as text": about(threads="2"),
    "threads as a boolean": about(threads=True),
    "threads as a fraction": about(threads=1.5),
    "deltas as a number": about(deltas=1),
    "another policy": about(on_invalid="skip"),
    "a policy as a list": about(on_invalid=["raise"]),
    "no plan": without("plan"),
    "no tables": without("tables"),
    "no options": without("threads", "deltas", "on_invalid"),
    "tables as a list": about(tables=[["r", ["a"]]]),
    "tables of numbers": about(tables={"r": [1, 2]}),
    "tables without columns": about(tables={"r": [], "s": []}),
    "a report of nonsense": about(report="{}"),
    "a report that is no text": about(report=[1]),
    "a report too deep": about(report="[" * 100_000),
    "plan is no text": about(plan={"version": 1}),
    "plan is empty": about(plan=""),
    "plan is a list": about(plan="[]"),
    "plan too deep": about(plan="[" * 100_000),
    "plan of another version": plan(lambda plan: plan.update(version=2)),
    "plan without stages": plan(lambda plan: plan.update(stages=[])),
    "stage of another kind": plan(lambda plan: plan["stages"][0].update(kind="glue")),
    "stages as a word": plan(lambda plan: plan.update(stages="abc")),
    "atoms of nothing": plan(lambda plan: plan["stages"][0].update(atoms=[])),
    "a node without atom": plan(lambda plan: plan["stages"][0]["nodes"][0].update(atom=99)),
    "a node of its own parent": plan(lambda plan: [node.update(parent=0) for node in plan["stages"][0]["nodes"]]),
    "a huge parent": plan(lambda plan: plan["stages"][0]["nodes"][-1].update(parent=2**63)),
    "a column as a number": plan(lambda plan: plan["tables"][0]["columns"][0].update(name=7)),
    "an unknown type": plan(lambda plan: plan["tables"][0]["columns"][0].update(type="int65")),
    "another type": plan(lambda plan: plan["tables"][0]["columns"][0].update(type="string")),
    "a key as a word": plan(lambda plan: plan["tables"][0].update(primary_key="ab")),
    "updates beyond floats": plan(lambda plan: plan["tables"][0].update(updates=10**400)),
    "updates as text": plan(lambda plan: plan["tables"][0].update(updates="nan")),
    "an order too deep": deep_order,
    "a literal as a list": plan(
        lambda plan: plan["stages"][0]["atoms"][0].update(filter={"kind": "literal", "value": [1], "type": "boolean"})
    ),
    "columns of nothing": plan(lambda plan: plan.update(columns=[])),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_views_are_refused(tmp_path: Path, damage: str, threads: int) -> None:
    path = tmp_path / "view.crown"
    filled(threads=threads).save(path)
    parts = members(path)
    if threads > 1 and FIRST not in parts:
        parts = {name.replace("cell-0", "engine"): data for name, data in parts.items()}
        rewrite(path, {name.replace("engine", "cell-0"): data for name, data in parts.items()})
        crown.View.load(path)
    DAMAGE[damage](parts)
    if threads > 1:
        parts = {name.replace("/engine/", "/cell-0/"): data for name, data in parts.items()}
    rewrite(path, parts)
    assert refuse(path).code.startswith("CROWN-STATE-")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    empty = tmp_path / "empty"
    empty.touch()
    for path in (tmp_path / "missing", tmp_path, fifo, empty, Path("/dev/zero")):
        refuse(path)


def test_compressed_and_repeated_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "view.crown"
    filled().save(path)
    parts = members(path)
    rewrite(path, {**parts, "state/engine/000009.arrow": b"\0" * (1 << 28)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20 and "compressed" in str(refuse(path))
    rewrite(path, parts)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(FIRST, parts[FIRST])
    assert "twice" in str(refuse(path))


def test_the_state_of_another_view_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    filled(JOIN).save(one)
    filled(QUERIES["sum"]).save(other)
    rewrite(one, {**members(other), "view.json": members(one)["view.json"]})
    refuse(one)


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    match rng.randrange(5):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            start = rng.randrange(len(data))
            del changed[start : start + rng.choice([1, 4, 100])]
        case 2:
            start = rng.randrange(len(data))
            changed[start:start] = rng.randbytes(rng.choice([1, 8]))
        case _:
            for _ in range(rng.choice([1, 1, 3, 20])):
                changed[rng.randrange(len(data))] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(changed)


def scrambled(value: Any, rng: random.Random) -> Any:
    """JSON data with one thing changed somewhere."""
    odd = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "", "x", "int64", "string", [], {}, [1], {"a": 1}]
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: scrambled(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.95:
        place = rng.randrange(len(value))
        match rng.randrange(12):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return [*value, value[place]]
            case _:
                return [*value[:place], scrambled(value[place], rng), *value[place + 1 :]]
    return rng.choice(odd)


def offered(path: Path, expected: list[Any] | None, where: str) -> bool:
    """Whether the file was opened. Then it answers, as before if `expected` is known, or raises `CrownError`s."""
    try:
        view = crown.View.load(path)
    except crown.StateError:
        return False
    try:
        rows = sorted(view, key=repr)
        assert expected is None or rows == expected, where
        view.insert("r", [(7, "k1")])
        view.to_arrow()
        len(view)
        view.schema  # noqa: B018
    except crown.CrownError as error:
        refusal = error
    else:
        return True
    assert refusal.code != "CROWN-INTERNAL", f"{where}: {refusal}"
    return True


@pytest.mark.parametrize("count", [300, pytest.param(6_000, marks=pytest.mark.slow)])
def test_fuzzed_files(tmp_path: Path, rng: random.Random, count: int) -> None:
    """Bytes of the file, of one part (with a right checksum), or the JSON of the plan are changed."""
    path = tmp_path / "view.crown"
    saved = []
    for sql in QUERIES.values():
        for threads in (1, 2):
            view = filled(sql, threads=threads)
            view.save(path)
            saved.append((path.read_bytes(), members(path), sorted(view, key=repr)))
    opened = 0
    for number in range(count):
        data, parts, rows = rng.choice(saved)
        where = f"file {number}"
        kind = rng.randrange(4)
        if kind == 0:
            path.write_bytes(damaged(data, rng))
            opened += offered(path, rows, where)
        elif kind == 1:
            victim = rng.choice([name for name in parts if parts[name]])
            rewrite(path, {**parts, victim: damaged(parts[victim], rng)})
            opened += offered(path, rows if victim != "view.json" else None, where)
        else:
            described = json.loads(parts["view.json"])
            if kind == 2:
                described = scrambled({key: value for key, value in described.items() if key != "sql"}, rng)
            else:
                described["plan"] = json.dumps(scrambled(json.loads(described["plan"]), rng))
            rewrite(path, {**parts, "view.json": json.dumps(described).encode()})
            opened += offered(path, None, where)
    assert opened < count


@pytest.mark.parametrize("count", [300, pytest.param(6_000, marks=pytest.mark.slow)])
def test_fuzzed_plans(rng: random.Random, count: int, capfd: pytest.CaptureFixture[str]) -> None:
    """The kernel takes a plan as data: it works, or is a `PlanError`."""
    from crown.ir.serial import to_json

    plans = [json.loads(to_json(crown.View(sql, SCHEMA).plan)) for sql in QUERIES.values()]
    for _ in range(count):
        text = json.dumps(scrambled(rng.choice(plans), rng))
        codes = []
        try:
            _kernel.Engine(text).save()
        except crown.CrownError as error:
            codes.append(error.code)
        assert "CROWN-INTERNAL" not in codes, text
    assert "panicked" not in capfd.readouterr().err


def test_deep_expressions_are_saved_and_loaded(tmp_path: Path) -> None:
    parts = " || ".join(["b"] * 100)
    view = crown.View(f"SELECT {parts} AS x FROM r", SCHEMA)
    view.insert("r", [(1, "k")])
    view.save(tmp_path / "view.crown")
    assert list(crown.View.load(tmp_path / "view.crown")) == [("k" * 100,)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_stops_a_save_is_what_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Also in the middle of a member of the archive; nothing stays behind."""
    view = crown.View("SELECT a FROM r", "CREATE TABLE r (a INT)")

    def stop(self: object, data: bytes) -> int:
        raise error

    monkeypatch.setattr("zipfile._ZipWriteFile.write", stop)
    with pytest.raises(error):
        view.save(tmp_path / "view")
    assert list(tmp_path.iterdir()) == []
