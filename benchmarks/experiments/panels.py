"""Small multiples: one panel for each query, one bar for each engine, Crown first.

Each engine has at most one bar in a panel, that of its best run: the query as it is, or as its user could rewrite it,
which the bar then says. Crown always runs the query as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.store import Result
from benchmarks.workloads import WORKLOADS

ENGINES = {
    "crown": "Crown",
    "differential": "Differential dataflow",
    "dbsp": "DBSP (Feldera)",
    "flink": "Flink SQL",
    "pathway": "Pathway",
    "duckdb": "DuckDB (recompute)",
}
ACCENT, OTHERS = "#e8590c", "#8a94a6"
_PANEL = (3.55, 1.75)  # inches
_OWN_RUN = "crown"  # one delta for each batch, as all others


def draw(result: Result, workloads: Sequence[str], *, columns: int, title: str, note: str) -> Any:
    """Return the figure. A hatched bar did not finish in time: it shows the rate up to that point."""
    from matplotlib import pyplot
    from matplotlib.ticker import NullLocator

    lines = math.ceil(len(workloads) / columns)
    size = (_PANEL[0] * columns, _PANEL[1] * lines + 1.0)
    figure, grid = pyplot.subplots(lines, columns, figsize=size, sharex=True, squeeze=False, layout="constrained")
    rows = [row for row in result.rows if row["workload"] in workloads]
    rates = [row["updates_per_second"] for row in rows if row["updates_per_second"]]
    for place, axes in enumerate(grid.flat):
        if place >= len(workloads):
            axes.set_axis_off()
            continue
        _panel(axes, [row for row in rows if row["workload"] == workloads[place]], named=place % columns == 0)
        axes.set_title(WORKLOADS[workloads[place]].plain_title, fontsize=9, loc="left", fontweight="bold")
    axes = grid[0][0]
    axes.set_xscale("log")
    axes.set_xlim(10 ** math.floor(math.log10(min(rates))), 30 * max(rates))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda number, _: _short(number))
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(f"updates per second (log scale)\n{note}", fontsize=8)
    return figure


def best(rows: list[dict[str, Any]], engine: str) -> dict[str, Any] | None:
    """Return the fastest run of the engine; of those without a rate, any; None if there is none."""
    own = [row for row in rows if row["engine"].split(",")[0] == engine]
    if engine == "crown":
        own = [row for row in own if row["engine"] == _OWN_RUN]
    right = [row for row in own if not (row.get("answer") or "").startswith("wrong")]
    return max(right, key=lambda row: row["updates_per_second"] or 0, default=None)


def _panel(axes: Any, rows: list[dict[str, Any]], *, named: bool) -> None:
    import matplotlib

    for place, engine in enumerate(ENGINES):
        row = best(rows, engine)
        rate = row["updates_per_second"] if row is not None else None
        colour = ACCENT if engine == "crown" else OTHERS
        said = "not run" if row is None else "did not finish"
        if rate:
            assert row is not None
            (bar,) = axes.barh([place], [rate], 0.72, color=[colour])
            if not row["status"].startswith("ok"):
                bar.set(hatch="//////", edgecolor=matplotlib.rcParams["axes.facecolor"], linewidth=0)
            said = _short(rate) + (" rewritten" if "rewritten" in row["engine"] else "")
        axes.annotate(
            said,
            (rate or 0, place),
            xycoords="data" if rate else ("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            fontweight="bold" if engine == "crown" else "normal",
            color=colour if engine == "crown" else matplotlib.rcParams["text.color"],
        )
    axes.set_yticks(range(len(ENGINES)), list(ENGINES.values()) if named else [""] * len(ENGINES), fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)


def _short(number: float) -> str:
    """
    >>> _short(1_729_118), _short(96_300), _short(386)
    ('1.7M', '96K', '386')
    """
    for unit, factor in (("M", 1e6), ("K", 1e3)):
        if number >= factor:
            return f"{number / factor:.2g}{unit}" if number < 100 * factor else f"{number / factor:.0f}{unit}"
    return f"{number:.0f}"
