"""A hook of mkdocs: pages of the repository's root join the site, and links to its other files become plain text.

The pages in docs/ link to files next to them and to files of the repository (`../src/crown/...`), as readers on a code
host expect. The site has only the former, CONTRIBUTING.md and CHANGELOG.md, and
the notebooks of examples/ as pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from notebooks import SCRIPTS, page

ROOT = Path(__file__).parents[2]
JOINED = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md"}
TUTORIAL = re.compile(r"\.\./examples/notebooks/(\w+)\.(?:py|ipynb)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for source, name in JOINED.items():
        text = (ROOT / source.removeprefix("../")).read_text(encoding="utf-8")
        # What these pages link to is seen from the root.
        text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
        files.append(File.generated(config, name, content=text))
    for script in SCRIPTS.glob("*.py"):
        text = page(script.read_text(encoding="utf-8"))
        files.append(File.generated(config, f"tutorial-{script.stem.replace('_', '-')}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _LINK.sub(_inside, markdown)


def _inside(found: re.Match[str]) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    if tutorial := TUTORIAL.fullmatch(target):
        return f"[{text}](tutorial-{tutorial[1].replace('_', '-')}.md)"
    return f"[{text}]({JOINED[target]}{anchor})" if target in JOINED else text
