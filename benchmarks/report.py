"""docs/benchmarks.md and its pictures, made from the stored results and from nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import engines, experiments, store
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
    "answer": "answer",
}


def write() -> Path:
    """Writes the page and one picture for each stored experiment; gives the page's path."""
    parts = [
        "# Benchmarks\n",
        "Made by `crown bench report` from the files in `benchmarks/results/`; each says how to repeat it. "
        "All engines of a table ran on the same stream, one after the other, under the same limits; answers were "
        "compared and a difference fails the run. A run that hit a limit shows the rate up to there (hatched in the "
        "pictures).\n",
        _engines(),
    ]
    stored = {name: result for name in experiments.NAMES if (result := store.load(name)) is not None}
    elapsed = sum(result.elapsed_seconds or 0 for result in stored.values())
    parts.append(f"All experiments of this page together took {elapsed / 60:.0f} minutes.\n")
    parts += [_section(name, result) for name, result in stored.items()]
    PAGE.write_text("\n".join(parts))
    return PAGE


def _engines() -> str:
    lines = ["| engine | what it is |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {text} |" for name, text in engines.TITLES.items()), ""])


def _section(name: str, result: Result) -> str:
    module = experiments.experiment(name)
    draw(result, PICTURES)
    machine = ", ".join(f"{key} {value}" for key, value in result.machine.items())
    lines = [
        f"## {module.TITLE}\n",
        f"![{name}](images/bench-{name}.svg)\n",
        _table(result.rows, getattr(module, "COLUMNS", {})),
        "",
        *([_ratios(result.ratios), ""] if result.ratios else []),
        f"Repeat: `{result.command}`. Data: {_words(result.data)}. Limits: {_words(result.limits)}. "
        f"Machine: {machine}; {result.date}. {_took(result)}\n",
    ]
    versions = {row["engine"].split(",")[0]: row["version"] for row in result.rows if row.get("version")}
    if versions:
        lines.append(f"Versions: {_words(versions)}.\n")
    return "\n".join(lines)


def _took(result: Result) -> str:
    return f"The experiment took {result.elapsed_seconds:,.0f} s." if result.elapsed_seconds else ""


def draw(result: Result, folder: Path = PICTURES) -> Path:
    """The chart of one experiment, as a file in `folder`."""
    import matplotlib

    matplotlib.use("svg")
    # A fixed salt and no date: the same result draws the same file.
    matplotlib.rcParams["svg.hashsalt"] = "crown"
    from matplotlib import pyplot

    module = experiments.experiment(result.experiment)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"bench-{result.experiment}.svg"
    figure, axes = pyplot.subplots(figsize=(getattr(module, "WIDTH", 8), 4.2), layout="constrained")
    module.chart(result, axes)
    axes.set_title(module.TITLE, fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def _table(rows: list[dict[str, Any]], more: dict[str, str]) -> str:
    """`more`: columns that the experiment has beyond the usual ones, before what is said in words."""
    words = ("status", "answer")
    columns = {key: COLUMNS[key] for key in COLUMNS if key not in words} | more | {key: COLUMNS[key] for key in words}
    shown = [key for key in columns if any(row.get(key) is not None for row in rows)]
    lines = ["| " + " | ".join(columns[key] for key in shown) + " |", "|" + "---|" * len(shown)]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in shown) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _ratios(ratios: dict[str, float]) -> str:
    return "Ratios: " + "; ".join(f"{name} {_cell(float(value))}" for name, value in ratios.items()) + "."


def _words(facts: dict[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
