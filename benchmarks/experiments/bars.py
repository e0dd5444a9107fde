"""The chart of experiments that compare engines on several queries: a group of bars for each query."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.store import Result


def draw(result: Result, axes: Any, *, value: str, y: str, group: str = "workload", log: bool = True) -> None:
    """An engine without a value has a gap; one that a limit stopped is hatched."""
    from matplotlib import colormaps

    groups = list(dict.fromkeys(row[group] for row in result.rows))
    names = list(dict.fromkeys(row["engine"] for row in result.rows if row.get(value)))
    width = 0.85 / max(1, len(names))
    # The usual ten colours would come twice when there are many engines.
    colours = [f"C{position}" for position in range(10)] if len(names) <= 10 else colormaps["tab20"].colors
    for position, name in enumerate(names):
        rows = [row for row in result.rows if row["engine"] == name and row.get(value)]
        places = [groups.index(row[group]) + position * width for row in rows]
        bars = axes.bar(places, [row[value] for row in rows], width, label=name, color=colours[position % len(colours)])
        for bar, row in zip(bars, rows, strict=True):
            if not row["status"].startswith("ok"):
                bar.set(hatch="////", edgecolor="white")
    if log:
        axes.set_yscale("log")
        # From a power of ten below the least bar, so that even that one has a length.
        least = min((row[value] for row in result.rows if row.get(value)), default=1)
        axes.set_ylim(bottom=10 ** math.floor(math.log10(least) - 0.3))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter("")
    axes.set_ylabel(y)
    centres = [index + 0.425 - width / 2 for index in range(len(groups))]
    axes.set_xticks(centres, groups, rotation=15 if len(groups) > 5 else 0)
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(fontsize=7, ncols=min(4, len(names)), loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
