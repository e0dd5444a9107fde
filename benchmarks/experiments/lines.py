"""The chart that most experiments share: one line for each engine over a parameter."""

from __future__ import annotations

from typing import Any

from benchmarks.store import Result


def draw(result: Result, axes: Any, *, value: str, x: str, y: str, log_x: bool = True, log_y: bool = True) -> None:
    """A point that a limit cut short is hollow: it stands for the part that was done."""
    for name in dict.fromkeys(row["engine"] for row in result.rows):
        rows = [row for row in result.rows if row["engine"] == name and row.get(value)]
        if not rows:
            continue
        (line,) = axes.plot([row["parameter"] for row in rows], [row[value] for row in rows], marker="o", label=name)
        cut = [row for row in rows if not row["status"].startswith("ok")]
        axes.plot(
            [row["parameter"] for row in cut],
            [row[value] for row in cut],
            linestyle="",
            marker="o",
            markerfacecolor=axes.get_facecolor(),
            color=line.get_color(),
        )
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.12g}")
        axes.xaxis.set_minor_formatter("")
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.12g}")
        low, high = axes.get_ylim()
        # Within one power of ten there would be no number on the axis at all.
        axes.yaxis.set_minor_formatter("{x:,.12g}" if high / low < 20 else "")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=8)
