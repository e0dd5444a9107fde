"""Views saved in older formats: loaded and gone on with, or refused with the reason."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import crown
from crown.plan.cells import layout
from crown.view import engines

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMA = """CREATE TABLE r (a BIGINT, b STRING); CREATE TABLE s (b STRING PRIMARY KEY, c DECIMAL(30,2));
            CREATE TABLE w (b STRING, at BIGINT) WINDOW (ROWS 5)"""
SQL = "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS total FROM r JOIN s ON r.b = s.b JOIN w ON w.b = r.b GROUP BY r.b"


def filled(threads: int) -> crown.View:
    """What the files in `fixtures` hold. They are named after their format, and no present version can write them."""
    view = crown.View(SQL, SCHEMA, threads=threads)
    view.insert("r", [(n, f"k{n % 5}") for n in range(12)])
    view.insert("s", [(f"k{n}", n) for n in range(5)])
    view.insert("w", [(f"k{n % 5}", n) for n in range(9)])
    return view


def go_on(view: crown.View) -> list[tuple[str, int]]:
    """Deletions of old rows, an upsert, and rows that push old ones out of the window."""
    deltas = [
        view.delete("r", [(0, "k0"), (7, "k2")]),
        view.insert("s", [("k1", 100), ("k9", 9)]),
        view.insert("w", [("k3", 100), ("k3", 101)]),
        view.insert("r", [(1, "k9"), (2, "k3")]),
    ]
    return [(str(sorted(map(str, delta.to_pylist()))), delta.num_rows) for delta in deltas]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("format_", [2])
def test_a_view_of_an_older_format_goes_on(format_: int, threads: int, tmp_path: Path) -> None:
    old, new = crown.View.load(FIXTURES / f"view-{format_}-threads-{threads}.crown"), filled(threads)
    assert sorted(old) == sorted(new)
    assert go_on(old) == go_on(new)
    # Saved again it has the present format.
    old.save(tmp_path / "view.crown")
    assert sorted(crown.View.load(tmp_path / "view.crown")) == sorted(new)
    assert described(tmp_path / "view.crown")["format"] > format_


def described(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        about: dict[str, Any] = json.loads(archive.read("view.json"))
    return about


def renumbered(source: Path, target: Path, format_: Any) -> Path:
    with zipfile.ZipFile(source) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["view.json"] = json.dumps({**json.loads(parts["view.json"]), "format": format_}).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return target


@pytest.mark.parametrize(
    "format_, hint",
    [
        (1, "create the view again"),
        (0, "create the view again"),
        (4, "the version of Crown that saved it"),
        (99, "newer"),
    ],
)
def test_formats_that_this_version_does_not_read(format_: int, hint: str, tmp_path: Path) -> None:
    path = renumbered(FIXTURES / "view-2-threads-1.crown", tmp_path / "view.crown", format_)
    with pytest.raises(crown.StateError, match=f"has format {format_}; this version reads 2 to 3") as refusal:
        crown.View.load(path)
    assert refusal.value.code == "CROWN-STATE-FORMAT" and hint in str(refusal.value)


def test_rows_stay_in_the_cells_where_they_were_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """A version that spreads rows in another way must not look for old ones there."""
    sql = "SELECT a.x, b.y FROM r a JOIN s b ON a.k = b.k"
    schema = "CREATE TABLE r (k INT, x INT); CREATE TABLE s (k INT, y INT)"
    rows = [(rng.randrange(9), rng.randrange(9)) for _ in range(60)]
    view = crown.View(sql, schema, threads=3)
    view.insert("r", rows)
    view.save(tmp_path / "view.crown")

    def otherwise(plan: Any, cells: int, **options: Any) -> layout.Layout:
        return layout.lay_out(crown.View(sql.replace("a.k = b.k", "a.x = b.y"), schema).plan, cells, **options)

    monkeypatch.setattr(engines, "lay_out", otherwise)
    loaded = crown.View.load(tmp_path / "view.crown")
    for follower in (view, loaded):
        follower.insert("s", rows)
    assert sorted(loaded) == sorted(view) and len(view) > 60
