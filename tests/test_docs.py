"""Links between the project's pages lead somewhere, and what they show is what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crown
from benchmarks.workloads import SOCIAL_SCHEMA

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Written by `make bench`, so not there before its first run.
GENERATED = {"docs/benchmarks.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert [m for m in missing if str((page.parent / m).resolve().relative_to(ROOT)) not in GENERATED] == []


def test_the_explained_example_is_what_explain_says() -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    sql = re.search(r"```sql\n(.*?)```", page, flags=re.DOTALL)
    assert sql is not None
    assert f"```\n{crown.View(sql[1], SOCIAL_SCHEMA).explain()}\n```" in page
