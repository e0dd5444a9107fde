"""The pictures show what was measured: the best right run of each engine, hatched if it was stopped, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import report, store
from benchmarks.experiments import panels

pytest.importorskip("matplotlib")


def row(engine: str, rate: float | None, *, workload: str = "star", status: str = "ok", answer: str = "same") -> Any:
    return {
        "engine": engine,
        "workload": workload,
        "status": status,
        "updates_per_second": rate,
        "answer": answer,
    }


ROWS = [
    row("crown, each update", 900.0),
    row("crown", 700.0),
    row("pairwise", 1.0),
    row("flink", 10.0),
    row("flink, MultiJoin", 5000.0, answer="wrong on the first 5,000 updates"),
    row("flink, rewritten by hand", 50.0, status="not done in 10 s"),
    row("duckdb", None, status="not done in 10 s"),
]


def test_an_engine_has_one_bar_for_its_best_right_answer() -> None:
    chosen = {engine: panels.best(ROWS, engine) for engine in panels.ENGINES}
    named = {engine: found and found["engine"] for engine, found in chosen.items()}
    assert named == {
        "crown": "crown",
        "differential": None,
        "dbsp": None,
        "flink": "flink, rewritten by hand",
        "pathway": None,
        "duckdb": "duckdb",
    }


def test_pictures_are_drawn_light_and_dark(tmp_path: Path) -> None:
    rows = [{**given, "workload": workload} for workload in ("star", "three_hop") for given in ROWS]
    result = store.Result("runtime", "", {}, {}, rows)
    assert report.draw(result, tmp_path) == tmp_path / "bench-runtime.svg"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"bench-{name}{mode}.svg" for name in ("runtime", "summary") for mode in ("", "-dark")}
    light, dark = ((tmp_path / f"bench-runtime{mode}.svg").read_text() for mode in ("", "-dark"))
    assert report.DARK["figure.facecolor"] in dark
    assert report.DARK["figure.facecolor"] not in light
    assert light.count("<pattern") >= 1  # the hatch of the run that was stopped


def test_panels_show_crown_first_and_six_engines_at_most() -> None:
    from matplotlib import pyplot

    figure = panels.draw(store.Result("runtime", "", {}, {}, ROWS), ["star"], columns=1, title="t", note="n")
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "Crown" and len(labels) <= 6
    assert axes.yaxis_inverted()
    said = [text.get_text() for text in axes.texts]
    assert said == ["700", "not run", "not run", "50 rewritten", "not run", "did not finish"]
    assert "updates per second" in figure.get_supxlabel()
    pyplot.close(figure)
