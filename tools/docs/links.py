"""A hook of mkdocs: pages of the repository's root join the site, and links to its other files become plain text.

The pages in docs/ link to files next to them and to files of the repository (`../src/crown/...`), as readers on a code
host expect. The site has only the former, and CONTRIBUTING.md and CHANGELOG.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
JOINED = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for source, page in JOINED.items():
        text = (ROOT / source.removeprefix("../")).read_text(encoding="utf-8")
        # What these pages link to is seen from the root.
        text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _LINK.sub(_inside, markdown)


def _inside(found: re.Match[str]) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    return f"[{text}]({JOINED[target]}{anchor})" if target in JOINED else text
