"""Tutorials are Python scripts with cells (`# %%`): they run as they are, and become notebooks and pages of the site.

python tools/docs/notebooks.py        writes examples/notebooks/*.ipynb anew
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parents[2] / "examples" / "notebooks"
_CELL = re.compile(r"(?m)^# %%(?: \[(\w+)\])?[^\n]*\n")


def cells(script: str) -> list[tuple[str, str]]:
    """Return the cells of a script as (kind, text), kind is `markdown` or `code`.

    >>> cells("# %% [markdown]\\n# # Title\\n#\\n# Text\\n\\n# %%\\nprint(1)\\n")
    [('markdown', '# Title\\n\\nText'), ('code', 'print(1)')]
    """
    _, *parts = _CELL.split(script)
    found = []
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        if kind == "markdown":
            found.append(("markdown", re.sub(r"(?m)^# ?", "", text).strip()))
        elif text.strip():
            found.append(("code", text.strip("\n").rstrip()))
    return found


def notebook(script: str) -> str:
    """Return the script as a Jupyter notebook, without outputs."""
    made = [_cell(number, kind, text) for number, (kind, text) in enumerate(cells(script))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def page(script: str) -> str:
    """Return the script as a page in Markdown."""
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells(script))


if __name__ == "__main__":
    for path in SCRIPTS.glob("*.py"):
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")
