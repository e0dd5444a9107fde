"""docs/benchmarks.md and its pictures, made from the stored results and from nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import experiments, store
from benchmarks.store import Result

PAGE = Path("docs/benchmarks.md")
PICTURES = Path("docs/images")
COLUMNS = {
    "workload": "query",
    "parameter": "parameter",
    "engine": "engine",
    "updates_per_second": "updates/s",
    "seconds": "seconds",
    "peak_mb": "peak MiB",
    "status": "status",
}


def write() -> Path:
    """Writes the page and one picture for each stored experiment; gives the page's path."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Benchmarks\n",
        "Made by `crown bench report` from the files in `benchmarks/results/`; each says how to repeat it. "
        "All engines of a table ran on the same stream, one after the other, under the same limits; answers were "
        "compared and a difference fails the run. A run that hit a limit shows the rate up to there.\n",
    ]
    for name in experiments.NAMES:
        result = store.load(name)
        if result is not None:
            parts.append(_section(name, result))
    PAGE.write_text("\n".join(parts))
    return PAGE


def _section(name: str, result: Result) -> str:
    module = experiments.experiment(name)
    _draw(module, result, PICTURES / f"bench-{name}.svg")
    machine = ", ".join(f"{key} {value}" for key, value in result.machine.items())
    lines = [
        f"## {module.TITLE}\n",
        f"![{name}](images/bench-{name}.svg)\n",
        _table(result.rows),
        "",
        f"Repeat: `{result.command}`. Data: {_words(result.data)}. Limits: {_words(result.limits)}. "
        f"Machine: {machine}; {result.date}.\n",
    ]
    versions = {row["engine"].split(",")[0]: row["version"] for row in result.rows if row.get("version")}
    if versions:
        lines.append(f"Versions: {_words(versions)}.\n")
    return "\n".join(lines)


def _draw(module: Any, result: Result, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    # A fixed salt and no date: the same result draws the same file.
    matplotlib.rcParams["svg.hashsalt"] = "crown"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    module.chart(result, axes)
    axes.set_title(module.TITLE, fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _table(rows: list[dict[str, Any]]) -> str:
    shown = [key for key in COLUMNS if any(row.get(key) is not None for row in rows)]
    lines = ["| " + " | ".join(COLUMNS[key] for key in shown) + " |", "|" + "---|" * len(shown)]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in shown) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _words(facts: dict[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
