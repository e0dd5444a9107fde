"""The chart of experiments that compare engines on several queries: a group of bars for each query."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.store import Result


def draw(result: Result, axes: Any, *, value: str, y: str, group: str = "workload", log: bool = True) -> None:
    """An engine without a value has no bar; one that a limit stopped is hatched; variants of one engine are paler."""
    from matplotlib.patches import Patch

    rows = [row for row in result.rows if row.get(value)]
    groups = list(dict.fromkeys(row[group] for row in result.rows))
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    most = max((sum(row[group] == name for row in rows) for name in groups), default=1)
    width = 0.85 / max(1, most)
    colours = _colours(engines)
    for index, name in enumerate(groups):
        own = [row for row in rows if row[group] == name]
        for position, row in enumerate(own):
            place = index + (position - (len(own) - 1) / 2) * width
            (bar,) = axes.bar([place], [row[value]], width, color=[colours[row["engine"]]])
            if not row["status"].startswith("ok"):
                bar.set(hatch="////", edgecolor=axes.get_facecolor(), linewidth=0)
    if log:
        axes.set_yscale("log")
        # From a power of ten below the least bar, so that even that one has a length.
        least = min((row[value] for row in rows), default=1)
        axes.set_ylim(bottom=10 ** math.floor(math.log10(least) - 0.3))
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.0f}" if number >= 1 else f"{number:g}")
        axes.yaxis.set_minor_formatter("")
    axes.set_ylabel(y)
    axes.set_xticks(range(len(groups)), groups)
    axes.tick_params(axis="x", labelsize=8)
    handles = [Patch(color=colours[engine], label=engine) for engine in engines]
    axes.legend(
        handles=handles,
        fontsize=7,
        ncols=min(5, len(handles)),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        frameon=False,
    )


def _colours(engines: list[str]) -> dict[str, tuple[float, float, float, float]]:
    """One colour for each engine; its variants, named after a comma, are ever paler."""
    from matplotlib.colors import to_rgba

    families = list(dict.fromkeys(engine.split(",")[0] for engine in engines))
    seen: dict[str, int] = {}
    colours = {}
    for engine in engines:
        family = engine.split(",")[0]
        seen[family] = seen.get(family, 0) + 1
        colours[engine] = to_rgba(f"C{families.index(family) % 10}", 1 - 0.25 * min(3, seen[family] - 1))
    return colours
