"""The chart that most experiments share: one line for each engine over a parameter."""

from __future__ import annotations

from typing import Any

from benchmarks.store import Result


def draw(result: Result, axes: Any, *, value: str, x: str, y: str, log_x: bool = True) -> None:
    for name in dict.fromkeys(row["engine"] for row in result.rows):
        points = [(row["parameter"], row[value]) for row in result.rows if row["engine"] == name and row.get(value)]
        if points:
            axes.plot([point[0] for point in points], [point[1] for point in points], marker="o", label=name)
    if log_x:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=8)
